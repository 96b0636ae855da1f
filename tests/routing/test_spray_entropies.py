"""Spraying over finite entropies: shares of links, and what they cost a permutation."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.faults.failures import fail_links
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes, read_routing

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"
TWO_CABLES = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=1"  # to each spine


def test_one_entropy_is_one_path_and_many_are_all_equally():
    network = load_network(LEAF_SPINE)
    one = find_routes(network, [0, 0], [5, 1], routing="spray:entropies=1")
    assert np.diff(one.first).tolist() == [4, 2]
    assert (one.share == 1).all()
    many, all_paths = (find_routes(network, [0], [5], routing=r) for r in ("spray:entropies=4096", "spray"))
    assert many.link.tolist() == all_paths.link.tolist()
    # binomial: 4096 values over 4 paths deviate by sqrt(3 / 4096) of a share, here within four of these
    np.testing.assert_allclose(many.share, all_paths.share, rtol=4 * np.sqrt(3 / 4096))


def test_values_of_a_slower_path_count_as_much_less():
    network = load_network(LEAF_SPINE)
    slow = network.src == network.n_nodes - 1  # the last spine
    network = dataclasses.replace(network, bandwidth=np.where(slow, 0.25, 1.0) * network.bandwidth)
    routes = find_routes(network, [0], [5], routing="spray:entropies=4096")
    down = routes.share[slow[routes.link]]
    assert down == pytest.approx(0.25 / 3.25, rel=0.15)


@pytest.mark.parametrize("entropies", [2, 7, 64])
def test_every_node_passes_on_what_it_gets(entropies):
    network = load_network("fat_tree:k=4")
    hosts = network.endpoints
    routes = find_routes(network, hosts, np.roll(hosts, 5), routing=f"spray:entropies={entropies}", seed=3)
    for r, (src, dst) in enumerate(zip(hosts, np.roll(hosts, 5), strict=True)):
        mine = slice(routes.first[r], routes.first[r + 1])
        link, share = routes.link[mine], routes.share[mine]
        net = np.zeros(network.n_nodes)
        np.add.at(net, network.dst[link], share)
        np.subtract.at(net, network.src[link], share)
        assert net[dst] == pytest.approx(1)
        assert net[src] == pytest.approx(-1)
        assert np.abs(np.delete(net, [src, dst])).max() < 1e-12
        assert network.src[link[0]] == src


def test_fewer_entropies_collide_more_and_the_ways_of_computing_agree():
    network = load_network("leaf_spine:n_leaves=4,n_spines=8,hosts_per_leaf=8,bandwidth=100Gbps,latency=1us")
    times = {}
    for routing in ("spray", "spray:entropies=256", "spray:entropies=8", "spray:entropies=1"):
        prepared = prepare("pairwise_all_to_all", network, routing=routing, seed=2)
        times[routing] = prepared.predict(1e6).time
        assert times[routing] == pytest.approx(prepared.predict(1e6, method="events").time, rel=1e-9)
    assert list(times.values()) == sorted(times.values())
    one_path = prepare("pairwise_all_to_all", network, routing="ecmp", seed=2).predict(1e6).time
    assert times["spray:entropies=256"] < times["spray:entropies=1"]
    assert times["spray:entropies=8"] < one_path


@pytest.mark.parametrize("oversubscription", [1, 4])
def test_credit_keeps_to_what_a_whole_stage_of_the_fabric_carries(oversubscription):
    network = load_network(f"{LEAF_SPINE},oversubscription={oversubscription}")
    hosts = network.endpoints
    routes = find_routes(network, hosts, np.roll(hosts, 4), routing="spray:entropies=4096:trims")
    sent = routes.share[routes.first[:-1]]
    # 4096 values hit four uplinks unequally by a few percent; without the pace they would send four times as much
    np.testing.assert_allclose(sent, 1.0, atol=0.05)


def test_what_is_trimmed_loads_the_senders_link_and_cut_links_to_the_full():
    network = load_network("leaf_spine:n_leaves=8,n_spines=16,hosts_per_leaf=16,bandwidth=100Gbps,latency=1us")
    hosts = network.endpoints
    there = np.random.default_rng(1).permutation(hosts)
    whole, trimmed = (
        find_routes(network, hosts, there, routing=f"spray:entropies=16{more}") for more in ("", ":trims")
    )
    static, again = (np.bincount(r.link, r.share, network.n_links) for r in (whole, trimmed))
    crosses = np.diff(whole.first) > 0
    sent = np.array([trimmed.share[i] for i in trimmed.first[:-1][crosses]])
    got = np.array([trimmed.share[i - 1] for i in trimmed.first[1:][crosses]])
    np.testing.assert_allclose(got, 1.0)
    # Goodput of a message is what its link sends over what arrives, and no link has more than it can carry at that.
    goodput = 1 / sent
    assert (sent > 1).any()
    assert (sent >= 1 - 1e-12).all()
    rate = np.zeros(len(hosts))
    rate[crosses] = goodput
    load = np.bincount(trimmed.link, trimmed.share * np.repeat(rate, np.diff(trimmed.first)), network.n_links)
    assert load.max() <= 1 + 1e-9
    full = (network.dst[np.arange(network.n_links)] < network.n_nodes) & (static > 1.05)
    inner = full & ~np.isin(network.src, hosts) & ~np.isin(network.dst, hosts)
    first_stage = inner & np.isin(network.src, network.dst[np.isin(network.src, hosts)])
    np.testing.assert_allclose(load[first_stage], 1.0, rtol=1e-9)
    # Not the fullest link, but what is sent again, says how long it takes.
    assert again.max() < static.max()


@pytest.mark.parametrize(("hosts", "paths", "size", "low", "high"), [(128, 32, 4_000_000, 0.9, 1.1)])
def test_trimmed_flows_take_what_packets_with_credit_take(hosts, paths, size, low, high):
    from benchmarks.accuracy.fabrics import fabric, queue_of
    from commsim.packets.transports.spraying import Spraying
    from commsim.traffic.host_messages import run_messages
    from commsim.traffic.patterns import permutation

    network, messages = fabric(hosts, 50e9, 1, 0), permutation(hosts, size, seed=2)
    queue = queue_of(50e9)
    packets = run_messages(network, messages, Spraying("rccc", "mixed", paths, queue=queue, window=1.5 * queue))
    routes = find_routes(network, messages.src, messages.dst, routing=f"spray:entropies={paths}:trims", seed=2)
    fullest = np.bincount(routes.link, routes.share / network.bandwidth[routes.link], network.n_links).max()
    wire = size * (1 + 64 / 4096)
    assert low < (fullest * wire + 8e-6) / packets.finished.max() < high


NONE = ("spray:entropies=0", "spray:entropies=x", "spray:paths=3", "ecmp:entropies=3", "x", "spray:entropies=99999",
        "spray:entropies=8:trim", "spray:entropies=8:trims:x")  # fmt: skip


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_routing_is_refused(text):
    with pytest.raises(InputError, match="entropies=E"):
        read_routing(text)


def test_values_see_a_cable_that_is_lost_further_on():
    """Senders get marks of the last cable from spine 0: a third of the bytes go that way, not half."""
    network = fail_links(load_network(TWO_CABLES), ["spine0:leaf1"])
    src, dst = network.endpoints[0], network.endpoints[-1]
    for back, link in ((False, "spine0:leaf1"), (True, "leaf1:spine0")):
        ends = (dst, src) if back else (src, dst)
        routes = find_routes(network, *ends, routing="spray:entropies=4096")
        by_link = list(zip(map(network.link_name, routes.link.tolist()), routes.share.tolist(), strict=True))
        (weak,) = [share for name, share in by_link if name.startswith(link)]
        assert weak == pytest.approx(1 / 3, rel=0.06)
        for name, share in by_link:
            if "spine1" in name:
                assert share == pytest.approx(1 / 3, rel=0.06), name


def test_values_of_an_even_network_have_equal_parts():
    network = load_network(TWO_CABLES)
    share = find_routes(network, network.endpoints[0], network.endpoints[-1], routing="spray:entropies=64").share
    np.testing.assert_array_equal(share * 64, np.round(share * 64))
