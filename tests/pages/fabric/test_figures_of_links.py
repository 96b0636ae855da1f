import numpy as np
import pytest

from commsim.packets.link_samples import LinkSamples
from commsim.pages.fabric import figures_of_links as figures
from commsim.pages.figure import NothingToDraw, drawn_table
from commsim.prediction.inputs import load_network

NETWORK = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us")
STAR = load_network("star:n_hosts=4,bandwidth=100Gbps,latency=1us")


def samples(network, *, n=300, seed=1, room=np.inf):
    """Each link sends some of what it can and queues something, at times that are not equally far apart."""
    rng = np.random.default_rng(seed)
    times = np.r_[0.0, np.cumsum(rng.uniform(0.5e-6, 1.5e-6, n - 1))]
    step = np.diff(times)[:, np.newaxis] * network.bandwidth * rng.uniform(0, 1, (n - 1, network.n_links))
    sent = np.concatenate((np.zeros((1, network.n_links), np.int64), np.cumsum(step.astype(np.int64), axis=0)))
    queued = rng.integers(0, 10_000, (n, network.n_links))
    counts = {"sent again": np.cumsum(rng.integers(0, 5, n)), "trimmed": np.zeros(n, np.int64)}
    counts["sent again"][0] = 0
    return LinkSamples(times, queued, sent, counts, np.full(network.n_links, room))


@pytest.mark.parametrize("n", [2, 3, 120, 121, 1000])
def test_parts_cover_all_samples_once(n):
    edges = samples(NETWORK, n=n).parts(120)
    assert edges[0] == 0
    assert edges[-1] == n - 1
    assert (np.diff(edges) > 0).all()
    assert len(edges) <= 121


def test_the_deepest_queue_is_in_the_curves_and_no_mean_is_above_it():
    taken = samples(NETWORK)
    table = figures.queues(NETWORK, taken).table
    names = np.array(table["queues"].text())
    depth = table["queue_B"].values
    assert depth.max() == taken.queued[:-1].max()
    for kind in ("at hosts", "between switches", "switches to hosts"):
        fullest, mean = (depth[names == f"{kind}, {word}"] for word in ("fullest", "mean"))
        assert (mean <= fullest).all()
        assert mean.max() > 0


def test_ways_of_a_switch_add_up_to_what_it_sent_upwards():
    taken = samples(NETWORK)
    figure = figures.ways(NETWORK, taken)
    table = figure.table
    first = taken.parts(figures.MAX_PARTS)
    lasts = np.tile(np.diff(taken.times[first]), table.n_rows // (len(first) - 1))
    links = np.array([f"{a}:{b}" for a, b in zip(table["switch"].text(), table["to"].text(), strict=True)])
    assert set(table["switch"].text()) == {"leaf0", "leaf1"}
    for i in range(NETWORK.n_links):
        name = NETWORK.link_name(i)
        if name in set(links):
            carried = (table["load"].values * lasts)[links == name].sum() * NETWORK.bandwidth[i]
            assert carried == pytest.approx(taken.sent[first[-1], i])
    assert len(set(links)) == 4  # two uplinks of two leaves


def test_a_switch_that_sends_all_over_one_of_two_links_is_said_to_be_uneven():
    taken = samples(NETWORK)
    up = [i for i in range(NETWORK.n_links) if NETWORK.link_name(i).startswith("leaf0:spine")]
    taken.sent[:, up[1]] = 0
    assert "at most 2 times the mean" in figures.ways(NETWORK, taken).caption


def test_full_queues_are_shown_against_their_room():
    taken = samples(NETWORK, room=20_000.0)
    table = drawn_table(figures.fullest(NETWORK, taken))
    assert table["share_of_room"].values.max() == taken.queued[:-1].max() / 20_000


def test_queues_without_an_end_are_shown_in_bytes():
    """Shares of a room without an end were 3.7e-15 in the table."""
    taken = samples(NETWORK)
    figure = figures.fullest(NETWORK, taken)
    assert "in bytes, since some buffers have no end" in figure.caption
    assert figure.roles["value"] == "queue_B"
    assert drawn_table(figure)["queue_B"].values.max() == taken.queued[:-1].max()
    assert "share_of_room" not in figure.table


def test_packets_are_counted_once():
    taken = samples(NETWORK)
    figure = figures.packet_counts(taken)
    assert figure.table["count"].values.sum() == taken.counts["sent again"][-1]
    assert set(figure.table["packets"].text()) == {"sent again"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: figures.ways(STAR, samples(STAR)), "two links to choose from"),
        (lambda: figures.queues(STAR, samples(STAR, n=1)), "less than twice"),
        (lambda: figures.packet_counts(LinkSamples(np.arange(3.0), *[np.zeros((3, 8), np.int64)] * 2,
                                                   {"lost": np.zeros(3)}, np.ones(8))), "no packet was lost"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_says_why(make, why):
    with pytest.raises(NothingToDraw, match=why):
        make()
