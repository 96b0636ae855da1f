import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from racks_of import racks

from commsim.core.errors import InputError
from commsim.routing.network_metrics import measure
from topologies.leaf_spine import leaf_spine

few = st.integers(1, 6)


@given(n_leaves=few, n_spines=few, hosts_per_leaf=few, uplinks=st.integers(1, 3))
def test_every_leaf_is_cabled_to_its_hosts_and_to_every_spine(n_leaves, n_spines, hosts_per_leaf, uplinks):
    network = leaf_spine(n_leaves, n_spines, hosts_per_leaf, uplinks_per_spine=uplinks)
    n_hosts = n_leaves * hosts_per_leaf
    assert network.n_nodes == n_hosts + n_leaves + n_spines
    assert network.hosts.tolist() == list(range(n_hosts))
    cables = np.zeros((network.n_nodes,) * 2, int)
    np.add.at(cables, (network.src, network.dst), 1)
    expected = np.zeros_like(cables)
    for host in range(n_hosts):
        expected[host, n_hosts + host // hosts_per_leaf] = 1
    expected[n_hosts : n_hosts + n_leaves, n_hosts + n_leaves :] = uplinks
    assert np.array_equal(cables, expected + expected.T)
    assert racks(network).tolist() == [h // hosts_per_leaf for h in range(n_hosts)]


@given(n_spines=few, hosts_per_leaf=st.integers(1, 12), cables=st.integers(1, 12))
def test_oversubscription_takes_cables_away_and_leaves_their_rate(n_spines, hosts_per_leaf, cables):
    ratio = hosts_per_leaf / cables
    assume(cables <= n_spines or cables % n_spines == 0)  # test_uplinks has the others
    network = leaf_spine(2, n_spines, hosts_per_leaf, 1e9, oversubscription=ratio)
    assert measure(network).oversubscription == pytest.approx({1: ratio}, rel=1e-12)
    assert set(network.bandwidth) == {1e9}
    spines = [name for name in network.nodes if name.startswith("spine")]
    assert len(spines) == min(n_spines, cables)
    missing = n_spines - len(spines)
    assert network.left_out == (f"{missing} of {n_spines} spines" if missing else "")


def test_cables_of_another_rate_are_counted_in_that_rate():
    network = leaf_spine(2, 4, 8, 1e9, uplink_bandwidth=2e9, oversubscription=2.0)
    spines = [name for name in network.nodes if name.startswith("spine")]
    assert (len(spines), set(network.bandwidth)) == (2, {1e9, 2e9})


def test_uplinks_are_as_fast_as_hosts_unless_told_otherwise():
    assert set(leaf_spine(2, 2, 8, 1e9).bandwidth) == {1e9}
    assert set(leaf_spine(2, 2, 8, 1e9, uplink_bandwidth=4e9).bandwidth) == {1e9, 4e9}


def test_hosts_of_two_leaves_are_four_links_apart():
    assert measure(leaf_spine(3, 2, 2)).diameter == 4
    assert measure(leaf_spine(1, 2, 2)).diameter == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"oversubscription": 1.6}, r"is 5 cables of 8 Gb/s .* up from each leaf; the nearest that can be built with "
         r"n_spines=4: 2:1 \(4 cables\) and 1:1 \(8 cables\); uplink_bandwidth gives"),
        ({"oversubscription": 16.0}, r"n_spines=4: 8:1 \(1 cable\) and 4:1 \(2 cables\)"),
    ],
)  # fmt: skip
def test_a_ratio_that_cannot_be_built_names_the_two_nearest_that_can(arguments, message):
    with pytest.raises(InputError, match=message):
        leaf_spine(2, 4, 8, 1e9, **arguments)


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_an_oversubscription_that_is_not_positive_is_refused(ratio):
    with pytest.raises(InputError, match="positive oversubscription"):
        leaf_spine(2, 2, 4, oversubscription=ratio)


@pytest.mark.parametrize("name", ["n_leaves", "n_spines", "hosts_per_leaf", "uplinks_per_spine"])
def test_a_count_of_zero_is_refused_by_name(name):
    counts = {"n_leaves": 2, "n_spines": 2, "hosts_per_leaf": 2, "uplinks_per_spine": 1} | {name: 0}
    with pytest.raises(InputError, match=f"leaf_spine needs {name} of at least 1, got {name}=0"):
        leaf_spine(**counts)
