"""Routes over a forest of switch classes: they are those of the search, and none is left to it that need not be."""

import numpy as np
import pytest

from commsim.prediction.inputs import load_network
from commsim.routing import forest_routes, ports_kernel, walk
from commsim.routing.forest_routes import walk_known
from commsim.routing.routing import find_routes

MACHINES = (
    "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2",
    "dgx-a100@star:machines=3",
    "rail_optimized:machines=4,preset=dgx-h100,hosts_per_group=2",
)
HOSTS = ("fat_tree:k=4", "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=3")


def pairs(network):
    """Return all pairs of endpoints of different machines."""
    src, dst = (nodes.ravel() for nodes in np.meshgrid(network.endpoints, network.endpoints, indexing="ij"))
    apart = (src != dst) & ((network.machine[src] < 0) | (network.machine[src] != network.machine[dst]))
    return src[apart].astype(np.int64), dst[apart].astype(np.int64)


@pytest.mark.parametrize("spec", [*MACHINES, *HOSTS])
def test_no_route_between_machines_is_left_to_the_search(spec):
    network = load_network(spec)
    src, dst = pairs(network)
    key = np.arange(len(src), dtype=np.int64)
    which, first, *_ = walk_known(network, src, dst, key, 0, np.zeros((2, 0), np.int32))
    assert len(which) == len(src)
    assert (np.diff(first) > 1).all()


@pytest.mark.parametrize("spec", [*MACHINES, *HOSTS])
@pytest.mark.parametrize("routing", ["ecmp", "shortest"])
def test_routes_over_a_forest_are_those_of_the_search(spec, routing, monkeypatch):
    network = load_network(spec)
    src, dst = pairs(network)
    found = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(walk, "LEAST", least)
        found.append(find_routes(network, src, dst, routing=routing))
    forest, search = found
    assert forest.link.tolist() == search.link.tolist()
    assert forest.first.tolist() == search.first.tolist()
    assert forest.latency.tolist() == search.latency.tolist()


def test_another_hash_of_the_same_routes_searches_no_ports(monkeypatch):
    network = load_network("fat_tree:k=8")
    src, dst = pairs(network)
    find_routes(network, src, dst, routing="ecmp", seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(ports_kernel, "find_ports", None)
        drawn = find_routes(network, src, dst, routing="ecmp", seed=2)
    forest_routes._ends.clear()
    alone = find_routes(network, src, dst, routing="ecmp", seed=2)
    assert drawn.link.tolist() == alone.link.tolist()
    assert drawn.latency.tolist() == alone.latency.tolist()


def test_other_pairs_do_not_take_the_ports_of_the_last_ones():
    network = load_network("fat_tree:k=8")
    src, dst = pairs(network)
    find_routes(network, src, dst, routing="ecmp")
    back = find_routes(network, dst, src, routing="ecmp")
    forest_routes._ends.clear()
    assert back.link.tolist() == find_routes(network, dst, src, routing="ecmp").link.tolist()


def test_kernels_get_arrays_of_one_kind_whatever_is_asked(monkeypatch):
    """Each kind, such as a mask that may be written, would be compiled by itself."""
    usual, kinds = ports_kernel.find_ports, set()

    def find_ports(*arguments):
        arrays = [one for group in arguments for one in (group if isinstance(group, tuple) else (group,))]
        kinds.add(tuple((one.dtype.str, one.flags.c_contiguous, one.flags.writeable) for one in arrays))
        return usual(*arguments)

    monkeypatch.setattr(ports_kernel, "find_ports", find_ports)
    monkeypatch.setattr(walk, "LEAST", 0)
    for spec in (*MACHINES, *HOSTS, "dgx-h100@fat_tree:k=16"):
        assert find_routes(
            load_network(spec), *(nodes[:500] for nodes in pairs(load_network(spec)))
        ).first.flags.c_contiguous
    assert len(kinds) == 1
    valiant = load_network("dragonfly:p=2,a=4,h=2")
    assert find_routes(valiant, *pairs(valiant), routing="valiant").first.flags.c_contiguous
