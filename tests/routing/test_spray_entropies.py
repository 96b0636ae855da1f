"""Spraying over finite entropies: shares of links, and what they cost a permutation."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.routing.routing import find_routes, read_routing
from commsim.run import prepare
from commsim.run.inputs import load_network

LEAF_SPINE = "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"


def test_one_entropy_is_one_path_and_many_are_all_equally():
    network = load_network(LEAF_SPINE)
    one = find_routes(network, [0, 0], [5, 1], routing="spray:entropies=1")
    assert np.diff(one.first).tolist() == [4, 2]
    assert (one.share == 1).all()
    many, all_paths = (find_routes(network, [0], [5], routing=r) for r in ("spray:entropies=4096", "spray"))
    assert many.link.tolist() == all_paths.link.tolist()
    # binomial: 4096 values over 4 paths deviate by sqrt(3 / 4096) of a share, here within four of these
    np.testing.assert_allclose(many.share, all_paths.share, rtol=4 * np.sqrt(3 / 4096))


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


@pytest.mark.parametrize("text", ["spray:entropies=0", "spray:entropies=x", "spray:paths=3", "ecmp:entropies=3", "x",
                                  "spray:entropies=99999"])  # fmt: skip
def test_what_is_no_routing_is_refused(text):
    with pytest.raises(InputError, match="entropies=E"):
        read_routing(text)
