import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_fabric import PlainFabric

from commsim.core.errors import InputError
from commsim.packets.links.equal_cost_links import ways_of
from commsim.packets.links.loss_kernel import mix
from commsim.packets.transports.spraying import BALANCINGS, Spraying
from commsim.packets.transports.transports import TRANSPORTS
from commsim.traffic.host_messages import run_messages
from commsim.traffic.patterns import HostMessages, all_to_all, incast, outcast, permutation
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star
from topologies.three_tier import three_tier

RATE, HOP, MTU, HEADER = 50e9, 1e-6, 4160, 64


def messages(*rows):
    src, dst, size, start = zip(*rows, strict=True)
    return HostMessages(
        np.array(src, np.int32), np.array(dst, np.int32), np.array(size, np.int64), np.array(start, float)
    )


def small(**more):
    return leaf_spine(4, 4, 4, bandwidth=RATE, latency=HOP, **more)


@pytest.mark.parametrize(("dst", "hops"), [(1, 2), (5, 4)])
@pytest.mark.parametrize("transport", ["nscc", "window"])
def test_one_message_takes_its_bytes_and_its_hops(dst, hops, transport):
    n = 40
    run = run_messages(small(), messages((0, dst, n * (MTU - HEADER), 0.0)), Spraying(transport))
    # store and forward: the last packet is sent once more on each further link
    assert run.received[0] == pytest.approx((n + hops - 1) * MTU / RATE + hops * HOP, rel=1e-12)
    assert run.finished[0] == pytest.approx(run.received[0] + hops * (HEADER / RATE + HOP), rel=1e-12)


def test_credit_paces_a_message_at_its_share_of_the_link():
    n = 1000
    run = run_messages(small(), messages((0, 5, n * (MTU - HEADER), 0.0)), Spraying("rccc"))
    paid = (n * MTU - 1.0 * RATE * run.rules["rtt"]) / RATE
    assert run.received[0] == pytest.approx(run.rules["rtt"] / 2 + run.rules["rtt"] + paid / 0.99, rel=0.01)


def same_paths(fabric, ways):
    """The kernel's choice of links for messages with one path each."""

    def path(switch, f, target):
        if ways.edge_switch[target] == switch:
            return target + len(ways.hosts)
        row = switch * int(fabric.state["n_edges"]) + int(ways.edge[target])
        first, count = int(ways.way[row]), int(ways.way[row + 1] - ways.way[row])
        key = (f << 20 ^ target) << 16 ^ int(fabric.flow[f]["upper"])
        salted = np.uint64(key) ^ fabric.salt[switch]
        scramble = getattr(mix, "py_func", mix)
        with np.errstate(over="ignore"):
            return int(ways.ways[first + (int(scramble(salted)) % count if count > 1 else 0)])

    return path


@pytest.mark.parametrize(
    "network", [small(), fat_tree(4, bandwidth=RATE), leaf_spine(2, 2, 4, bandwidth=RATE, latency=0.0)],
    ids=["leaf-spine", "fat tree", "links without latency"],
)  # fmt: skip
def test_the_kernels_agree_with_plain_python_to_the_picosecond(network):
    # rates, latencies, sizes and starts at random, so that no two things happen at the same time
    generator = np.random.default_rng(5)
    uneven = 1 + 0.3 * generator.random((2, network.n_links))
    network = dataclasses.replace(network, bandwidth=RATE * uneven[0], latency=network.latency * uneven[1])
    sent = all_to_all(len(network.hosts), 1)
    keep = generator.random(len(sent.src)) < 0.5
    n = int(keep.sum())
    sent = HostMessages(sent.src[keep], sent.dst[keep], generator.integers(1, 60_000, n), generator.random(n) * 2e-5)
    spraying = Spraying("window", "ecmp", 1024, queue=1e9, window=1e9, ecn=(0, 0))
    run = run_messages(network, sent, spraying)
    ways = ways_of(network)
    fabric = run.tables.fabric
    received, finished = PlainFabric(network, ways, sent, 4096, 64, same_paths(fabric, ways)).run()
    begin = np.round(sent.start * 1e12)
    np.testing.assert_array_equal(np.round(run.received * 1e12), received - begin)
    np.testing.assert_array_equal(np.round(run.finished * 1e12), finished - begin)


@given(
    st.sampled_from(sorted(TRANSPORTS)), st.sampled_from(sorted(BALANCINGS.keys() - {"path"})), st.booleans(),
    st.integers(0, 2**32), st.sampled_from([0.0, 0.02]), st.sampled_from([2, 60]),
)  # fmt: skip
def test_every_packet_arrives_once_whatever_is_trimmed_or_lost(transport, balancing, trims, seed, loss, room):
    if transport == "hpcc":
        balancing = "ecmp"
    generator = np.random.default_rng(seed)
    network = small(oversubscription=2)
    network = dataclasses.replace(network, loss=np.full(network.n_links, loss))
    n = int(generator.integers(1, 25))
    src, dst = generator.integers(0, 16, n), generator.integers(1, 16, n)
    dst = (src + dst) % 16
    sent = HostMessages(
        src.astype(np.int32), dst.astype(np.int32), generator.integers(1, 300_000, n), generator.random(n) * 1e-5
    )
    spraying = Spraying(transport, balancing, 16, queue=room * MTU, trims=trims, seed=int(seed % 1000))
    run = run_messages(network, sent, spraying)
    wire = sent.nbytes + -(-sent.nbytes // 4096) * HEADER
    np.testing.assert_array_equal(run.tables.fabric.flow["received"], wire)
    packets = int((-(-sent.nbytes // 4096)).sum())
    assert run.counters["n_sent"] - run.counters["n_resent"] == packets
    assert (run.received > wire / RATE).all()
    assert (run.finished > run.received).all()
    again = run_messages(network, sent, spraying)
    np.testing.assert_array_equal(run.finished, again.finished)
    assert run.counters == again.counters


def test_bytes_are_conserved_at_every_switch_where_nothing_is_trimmed():
    network = small()
    sent = permutation(16, 1_000_000, seed=3)
    run = run_messages(network, sent, Spraying("nscc", queue=1e9))
    assert run.counters["n_trimmed"] == run.counters["n_dropped"] == 0
    carried = run.results[0].link_bytes
    for node in np.flatnonzero(network.kind == 1):
        assert carried[network.dst == node].sum() == carried[network.src == node].sum()
    to_hosts = carried[np.isin(network.dst, network.hosts)].sum()
    assert to_hosts == run.tables.fabric.flow["received"].sum() + HEADER * run.counters["n_acks"]


def test_paths_are_the_equal_cost_sets_of_the_network():
    network = fat_tree(4, bandwidth=RATE, latency=HOP)
    ways = ways_of(network)
    assert ways.n_hops == 6
    edges = np.unique(ways.edge_switch)
    counts = np.diff(ways.way).reshape(len(ways.switches), len(edges))
    for i, switch in enumerate(edges):
        expected = np.where(np.arange(len(edges)) == i, 0, 2)
        np.testing.assert_array_equal(counts[switch], expected)
    assert len(edges) == 8


def test_one_path_for_each_message_collides_and_spraying_does_not():
    network = leaf_spine(8, 8, 8, bandwidth=RATE, latency=HOP)
    sent = permutation(64, 2_000_000, seed=2)
    tails = {
        name: run_messages(network, sent, Spraying("nscc", name, 64)).finished.max()
        for name in ("ecmp", "mixed", "adaptive")
    }
    ideal = 2_000_000 * MTU / (MTU - HEADER) / RATE + 8 * HOP
    assert tails["mixed"] < 1.35 * ideal
    assert tails["adaptive"] < 1.15 * ideal  # the switch sees its queues
    assert tails["ecmp"] > 1.5 * ideal


@pytest.mark.parametrize("transport", ["nscc", "rccc", "eqds", "ndp"])
@pytest.mark.parametrize("senders", [2, 8, 12])
def test_an_incast_fills_the_receivers_link(transport, senders):
    size = 2_000_000
    run = run_messages(small(), incast(16, size, senders=senders), Spraying(transport))
    ideal = senders * size * MTU / (MTU - HEADER) / RATE
    assert ideal < run.finished.max() < 1.06 * ideal + 30e-6
    # fair: the first to end is not far ahead
    assert run.finished.min() > 0.5 * run.finished.max()


def test_an_outcast_shares_the_senders_link():
    run = run_messages(small(), outcast(16, 1_000_000, receivers=4), Spraying("nscc"))
    ideal = 4 * 1_000_000 * MTU / (MTU - HEADER) / RATE
    assert ideal < run.finished.max() < 1.02 * ideal + 20e-6


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"transport": "tcp"}, "unknown transport 'tcp'; did you mean dctcp"),
        ({"balancing": "best"}, "unknown balancing 'best'; known: ecmp"),
        ({"entropies": 0}, "entropies are a power of two from 1 to 65536, got 0"),
        ({"entropies": 12}, "got 12"),
        ({"queue": 100.0}, "a queue holds at least one packet of 4160 bytes, got 100"),
        ({"ecn": (2e5, 1e5)}, "marks begin before they are certain"),
        ({"choices": 0}, "at least 1 link"),
        ({"payload": 0}, "a packet has 1 byte to 1 MiB"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        Spraying(**wrong)


def test_networks_without_one_link_for_each_host_are_refused():
    with pytest.raises(InputError, match="sends a message to itself"):
        messages((1, 1, 5, 0.0))
    with pytest.raises(InputError, match="at least 1 byte, got 0"):
        messages((1, 2, 0, 0.0))
    with pytest.raises(InputError, match="1 to 3 senders among 4 hosts, got 4"):
        incast(4, 100, senders=4)


@pytest.mark.parametrize("senders", [2, 8])
def test_dctcp_keeps_the_queue_between_the_threshold_and_one_packet_more_for_each_sender(senders):
    # section 3.3 of the paper: K + N packets at most, when windows begin at their share of pipe and threshold
    rate, threshold = 12.5e9, 40 * MTU
    network = star(senders + 1, bandwidth=rate, latency=HOP)
    share = (2 * 2 * HOP * rate + 2 * MTU + threshold) / senders  # fairness: test_fixed_points
    spraying = Spraying("dctcp", "ecmp", 1, queue=1e7, ecn=(threshold, threshold), window=share)
    run = run_messages(network, incast(senders + 1, 16_000_000 // senders, senders=senders), spraying)
    assert threshold <= run.results[0].counters["peak_queue_bytes"] <= threshold + (senders + 1) * MTU
    assert run.finished.max() == pytest.approx(16_000_000 * MTU / (MTU - HEADER) / rate, rel=0.01)


# Upper bounds on the last completion in us that the EQDS simulator's own validation asks for: 100 Gbit/s, three tiers,
# 2 MB (csg-htsim, validate.txt).
TARGETS = {
    "one": (((0, 9),), 128, 180),
    "both ways": (((0, 9), (9, 0)), 128, 190),
    "16 hosts": (None, 128, 210),
    "16 hosts, one path": (None, 1, 1300),
}


@pytest.mark.parametrize("name", TARGETS)
def test_eqds_meets_the_targets_of_its_simulator(name):
    pairs, entropies, target = TARGETS[name]
    network = fat_tree(4, bandwidth=12.5e9, latency=HOP)
    size = 2_000_000
    sent = permutation(16, size) if pairs is None else messages(*((a, b, size, 0.0) for a, b in pairs))
    run = run_messages(network, sent, Spraying("eqds", "oblivious" if entropies > 1 else "ecmp", entropies))
    assert size * MTU / (MTU - HEADER) / 12.5e9 < run.finished.max() < target * 1e-6


def test_eqds_meets_the_targets_of_incasts_and_of_who_stands_beside():
    # of the same list: a small incast, and a message of one of its senders to another host
    size = 2_000_000
    network = fat_tree(4, bandwidth=12.5e9, latency=HOP)
    sent = messages(*((i, 15, size, 0.0) for i in range(14)), (1, 14, size, 0.0))
    run = run_messages(network, sent, Spraying("eqds", "oblivious"))
    assert 14 * size * MTU / (MTU - HEADER) / 12.5e9 < run.finished.max() < 2500e-6
    assert run.finished[-1] < 240e-6


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(("balancing", "ecn"), [("oblivious", None), ("mixed", (12 * MTU, 25 * MTU))])
def test_eqds_meets_the_targets_of_1024_hosts(balancing, ecn):
    network = fat_tree(16, bandwidth=12.5e9, latency=HOP)
    run = run_messages(network, permutation(1024, 2_000_000), Spraying("eqds", balancing, 128, ecn=ecn))
    assert 2_000_000 * MTU / (MTU - HEADER) / 12.5e9 < run.finished.max() < 220e-6


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(("balancing", "ecn"), [("oblivious", None), ("mixed", (12 * MTU, 25 * MTU))])
def test_eqds_meets_the_target_of_1024_hosts_on_an_oversubscribed_network(balancing, ecn):
    # racks of 16 hosts with 4 uplinks, pods of 4 racks: 4:1, 880 us with marks and without
    network = three_tier(
        16, 4, 16, 4, 4, bandwidth=12.5e9, rack_oversubscription=4, pod_oversubscription=1, latency=HOP
    )
    sent = permutation(1024, 2_000_000)
    run = run_messages(network, sent, Spraying("eqds", balancing, 128, ecn=ecn))
    leaving = np.bincount(sent.src[sent.src // 16 != sent.dst // 16] // 16, minlength=64).max()
    fluid = leaving / 4 * 2_000_000 * MTU / (MTU - HEADER) / 12.5e9  # through the fullest rack's uplinks
    assert fluid < run.finished.max() < 880e-6


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(
    ("transport", "oversubscription", "paths", "published"),
    [("nscc", 1, 128, 35.39), ("nscc", 4, 128, 117.41), ("rccc", 1, 128, 36.31), ("rccc", 4, 32, 116.33)],
)
def test_published_permutations_of_8192_hosts(transport, oversubscription, paths, published):
    # results of the Ultra Ethernet simulator, 400 Gbit/s, 1 MB; tail in us; NSCC of the later date where there are two
    network = leaf_spine(128, 64 // oversubscription, 64, bandwidth=RATE, latency=HOP)
    spraying = Spraying(transport, "mixed", paths, queue=100 * MTU, ecn=(25 * MTU, 75 * MTU), window=150 * MTU)
    run = run_messages(network, permutation(8192, 1_000_000), spraying)
    assert run.finished.max() * 1e6 == pytest.approx(published, rel=0.12)


@pytest.mark.parametrize(
    ("transport", "senders", "published"),
    [("rccc", 2, 50.8615), ("nscc", 2, 50.9895), ("rccc", 8, 179.489), ("nscc", 8, 188.733), ("rccc", 32, 693.959)],
)
def test_published_incasts(transport, senders, published):
    # the same, 1 MiB from each sender at once; hosts that are silent are left out
    network = leaf_spine(64, 8, 8, bandwidth=RATE, latency=HOP)
    spraying = Spraying(transport, queue=100 * MTU, ecn=(25 * MTU, 75 * MTU), window=150 * MTU)
    took = [
        run_messages(network, incast(512, 1 << 20, senders=senders, seed=k), dataclasses.replace(spraying, seed=k))
        for k in range(1, 8)
    ]
    # single draws of 8 senders are up to 6 % apart
    assert np.mean([run.finished.max() for run in took]) * 1e6 == pytest.approx(published, rel=0.03)


def test_ndp_shares_links_as_in_its_figure_21():
    # SIGCOMM 2017: A sends to B, C, D and E, and F to E, at 10 Gbit/s; queues of 8 packets of 9 kB, windows of 23.
    # Sizes are as the rates, so that all are active until the end.
    mtu, published = 9000, np.array([2.510, 2.514, 2.501, 2.377, 7.552]) * 1e9 / 8
    ends = ((0, 1), (0, 2), (0, 3), (0, 4), (5, 4))
    rows = [(a, b, int(rate * 0.06), 0.0) for (a, b), rate in zip(ends, published, strict=True)]
    spraying = Spraying("ndp", "ecmp", 1, mtu - HEADER, queue=8 * mtu, window=23 * mtu, ecn=(0, 0))
    sent = messages(*rows)
    run = run_messages(star(6, bandwidth=1.25e9, latency=HOP), sent, spraying)
    np.testing.assert_allclose(sent.nbytes / run.received, published, rtol=0.03)


def test_swift_fills_the_link_with_a_short_queue_and_fair_shares():
    rate, senders = 12.5e9, 4
    spraying = Spraying("swift", "ecmp", 1, queue=1e7, ecn=(0, 0))
    run = run_messages(
        star(senders + 1, bandwidth=rate, latency=HOP), incast(senders + 1, 8_000_000, senders=senders), spraying
    )
    assert run.finished.max() == pytest.approx(senders * 8_000_000 * MTU / (MTU - HEADER) / rate, rel=0.01)
    assert run.finished.min() > 0.95 * run.finished.max()
    # the target is half of it, and up to half more for small windows
    assert run.tables.fabric.flow["delay"].max() / 1e12 < run.rules["rtt"]


def test_flowlets_are_between_one_path_for_each_message_and_one_for_each_packet():
    network = leaf_spine(8, 8, 8, bandwidth=RATE, latency=HOP)
    sent = permutation(64, 1_000_000, seed=2)
    each, few, one = (
        run_messages(network, sent, Spraying("nscc", name, 64, flowlet_gap=gap))
        for name, gap in (("adaptive", 0.0), ("flowlet", 2e-7), ("flowlet", 0.5))
    )
    # a message that keeps its link arrives in order, but for what is sent again
    assert one.counters["n_early"] <= one.counters["n_trimmed"] * 500
    assert each.counters["n_early"] > few.counters["n_early"] > 0
    assert each.finished.max() < few.finished.max() <= one.finished.max()


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("transport", "balancing", "trims", "loss"),
    [
        ("nscc", "mixed", True, 0.0), ("rccc", "reps", True, 0.05), ("ndp", "bitmap", True, 0.0),
        ("dctcp", "adaptive", True, 0.0), ("swift", "oblivious", False, 0.05), ("window", "flowlet", True, 0.0),
        ("hpcc", "ecmp", True, 0.0), ("timely", "mixed", True, 0.0), ("patched_timely", "ecmp", False, 0.05),
        ("dcqcn", "ecmp", True, 0.0),
    ],
)  # fmt: skip
def test_kernels_work_as_plain_python(transport, balancing, trims, loss):
    network = leaf_spine(2, 2, 2, bandwidth=RATE, latency=HOP, oversubscription=2)
    network = dataclasses.replace(network, loss=np.full(network.n_links, loss))
    spraying = Spraying(transport, balancing, 4, queue=4 * MTU, trims=trims, window=10 * MTU)
    run = run_messages(network, permutation(4, 40_000, seed=2), spraying)
    np.testing.assert_array_equal(run.tables.fabric.flow["received"], 40_000 + 10 * HEADER)
