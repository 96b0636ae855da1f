import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.faults.failures import remove_switches
from commsim.core.network import SWITCH
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.network_metrics import measure
from topologies.leaf_spine import leaf_spine
from topologies.multi_plane import multi_plane

few = st.integers(1, 5)


@given(planes=few, n_leaves=few, n_spines=few, hosts=few)
def test_each_plane_is_a_leaf_spine_of_its_own(planes, n_leaves, n_spines, hosts):
    network, one = (
        multi_plane(planes, n_leaves, n_spines, hosts, 1e9, 3e9),
        leaf_spine(n_leaves, n_spines, hosts, 1e9, 3e9),
    )
    n_hosts = len(one.hosts)
    plane = np.array(
        [-1 if name[0] == "h" else int(name.split("_")[0].removeprefix("plane")) for name in network.nodes]
    )
    of_link = np.maximum(plane[network.src], plane[network.dst])
    for i in range(planes):
        new = np.full(network.n_nodes, -1)
        new[:n_hosts], new[plane == i] = np.arange(n_hosts), n_hosts + np.arange(n_leaves + n_spines)
        links = np.flatnonzero(of_link == i)
        columns = (new[network.src[links]], new[network.dst[links]], network.bandwidth[links])
        expected = (one.src, one.dst, one.bandwidth)
        assert sorted(zip(*columns, strict=True)) == sorted(zip(*expected, strict=True))
    assert len(network.src) == planes * len(one.src)
    assert (np.bincount(network.src)[:n_hosts] == planes).all()


@settings(max_examples=settings().max_examples * 2 // 3)
@given(planes=st.integers(1, 4), n_leaves=st.integers(2, 4))
def test_planes_add_up_to_their_bisection_bandwidth(planes, n_leaves):
    pytest.importorskip("scipy")
    one = bisection_bandwidth(leaf_spine(n_leaves, 2, 4, 1e9))
    assert bisection_bandwidth(multi_plane(planes, n_leaves, 2, 4, 1e9)) == planes * one


def test_two_planes_survive_the_loss_of_one():
    network = multi_plane(2, 3, 2, 4)
    first = np.array([i for i, name in enumerate(network.nodes) if name.startswith("plane0")])
    assert measure(remove_switches(network, first)).no_path is None
    both = np.flatnonzero(network.kind == SWITCH)
    assert measure(remove_switches(network, both)).no_path is not None


def test_oversubscription_takes_cables_away_in_each_plane():
    network, one = (
        multi_plane(2, 3, 4, 8, oversubscription=4.0), leaf_spine(3, 4, 8, oversubscription=4.0)
    )  # fmt: skip
    assert network.left_out == "2 of 4 spines in each plane"
    assert network.n_links == 2 * one.n_links
    assert measure(network).oversubscription == {1: 4.0}
    assert (multi_plane(2, 3, 4, 8, uplinks_per_spine=2).n_links, network.bandwidth.max()) == (
        2 * 2 * (24 + 24),
        12.5e9,
    )


def test_no_plane_is_refused():
    with pytest.raises(InputError, match="multi_plane needs n_planes of at least 1, got n_planes=0"):
        multi_plane(0, 2, 2, 2)
    with pytest.raises(InputError, match="multi_plane needs n_spines of at least 1, got n_spines=0"):
        multi_plane(2, 2, 0, 2)


def test_planes_of_so_many_hosts_that_names_are_written_on_demand_are_named_in_order():
    network = multi_plane(2, 700, 4, 100, 1e9, 1e11)
    of_plane = [f"plane{i}_{tier}{j}" for i in range(2) for tier, n in (("leaf", 700), ("spine", 4)) for j in range(n)]
    assert list(network.nodes) == [f"h{i}" for i in range(70_000)] + of_plane
