import functools

import numpy as np
import pytest

from commsim.core.cost import Framing
from commsim.core.network import HOST
from commsim.packets.transports.spraying import Spraying
from commsim.pages.fabric.figures_of_messages import times_figure, times_table
from commsim.pages.figure import drawn_table
from commsim.pages.figures_of_study import make_figures
from commsim.prediction.inputs import load_network
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import PATTERNS
from commsim.traffic.slowdown import alone
from commsim.traffic.traffic_report import study_of_traffic

NETWORK = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps")


@functools.cache
def played(pattern, sample=1e-6):
    messages = PATTERNS[pattern](8, 300_000, seed=1, **({"senders": 7} if pattern == "incast" else {}))
    spraying = Spraying("nscc", "mixed", 16, sample=sample)
    run = run_messages(NETWORK, messages, spraying)
    return run, run.received / alone(run.layout, messages, Framing(4096, 64))


def test_the_table_has_the_mean_and_shares_of_completion_times():
    rng = np.random.default_rng(3)
    times = rng.uniform(1, 2, 1000)
    table = times_table(times, times + 1, times * 2)
    at = table["messages"].text().index
    received = table["received_s"].values
    assert received[at("mean")] == pytest.approx(times.mean())
    assert (received[at("least")], received[at("most")]) == (times.min(), times.max())
    assert np.count_nonzero(times <= received[at("99 %")]) == 990
    np.testing.assert_allclose(table["finished_s"].values, received + 1)


def test_both_distributions_have_every_message():
    run, _ = played("permutation")
    shown = drawn_table(times_figure(run.received, run.finished))
    assert shown["share"].values[-1] == 1
    assert sorted(shown["completion_time_s"].values) == sorted([*run.received, *run.finished])


def test_a_page_of_an_incast_shows_the_full_queue_and_the_packets_that_it_trimmed():
    run, slower = played("incast")
    study = study_of_traffic("incast", NETWORK, run, slower, {})
    figures = {figure.name: figure for figure in make_figures(study)[0]}
    assert set(figures) == {"times", "slowdown", "queues", "packets", "fullest", "ways"}
    fullest = figures["fullest"].table
    # all seven meet at the receiver's port, which stays full longer than any other
    links, filled = np.array(fullest["link"].text()), fullest["share_of_room"].values
    mean = {link: filled[links == link].mean() for link in set(links)}
    to_hosts = np.where(NETWORK.kind[NETWORK.dst] == HOST, run.results[0].link_bytes, 0)
    busiest_host = NETWORK.link_name(int(np.argmax(to_hosts)))
    assert max(mean, key=mean.get) == busiest_host
    assert 0.5 < filled.max() <= 1
    counted = figures["packets"].table
    said = np.array(counted["packets"].text())
    for name, key in (("trimmed", "n_trimmed"), ("marked", "n_marked")):
        assert 0 < counted["count"].values[said == name].sum() <= run.counters[key]


def test_samples_end_with_what_links_sent():
    run, _ = played("permutation", 1e-7)
    taken = run.samples(NETWORK)
    assert (taken.sent[-1] <= run.results[0].link_bytes).all()
    assert taken.sent[-1].sum() > 0.9 * run.results[0].link_bytes.sum()
    peak = run.tables.fabric.link["peak"]
    assert (taken.queued.max(axis=0)[run.layout.ways.links] <= peak + 4160).all()


def test_a_run_that_was_not_looked_at_says_what_is_left_out():
    run, slower = played("permutation", 0.0)
    figures, left_out = make_figures(study_of_traffic("p", NETWORK, run, slower, {}))
    assert [figure.name for figure in figures] == ["times", "slowdown"]
    assert "less than twice" in left_out["queues"]
