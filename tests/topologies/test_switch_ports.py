"""Networks out of switches with a number of ports: counts by hand, and ports that are never too many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.prediction.inputs import load_network
from topologies.dual_tor import dual_tor
from topologies.leaf_spine import leaf_spine
from topologies.multi_plane import multi_plane
from topologies.three_tier import three_tier


def counts(network):
    """Return the number of each kind of switch, hosts and the most links of a switch."""
    names = [name.rstrip("0123456789").rpartition("_")[2] for name in network.nodes]
    degree = np.bincount(network.src, minlength=network.n_nodes)
    found = {name: names.count(name) for name in dict.fromkeys(names)}
    return found | {"ports": int(degree[len(network.hosts) :].max())}


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        # the largest of 64 ports: 64 leaves of 32 hosts, 32 spines
        (leaf_spine(64, switch_ports=64), {"h": 2048, "leaf": 64, "spine": 32, "ports": 64}),
        (leaf_spine(4, switch_ports=64), {"h": 128, "leaf": 4, "spine": 2, "ports": 64}),
        (leaf_spine(4, switch_ports=64, oversubscription=3), {"h": 192, "leaf": 4, "spine": 1, "ports": 64}),
        (leaf_spine(4, 4, switch_ports=64), {"h": 240, "leaf": 4, "spine": 4, "ports": 64}),
        (leaf_spine(4, hosts_per_leaf=8), {"h": 32, "leaf": 4, "spine": 8, "ports": 16}),
        (leaf_spine(4, hosts_per_leaf=8, oversubscription=2), {"h": 32, "leaf": 4, "spine": 4, "ports": 12}),
        (leaf_spine(4, hosts_per_leaf=8, uplinks_per_spine=3), {"h": 32, "leaf": 4, "spine": 3, "ports": 17}),
        (dual_tor(4, switch_ports=64), {"h": 128, "tor": 8, "spine": 4, "ports": 64}),
        (multi_plane(2, 8, switch_ports=32), {"h": 128, "leaf": 16, "spine": 8, "ports": 32}),
        # a sixteenth of the fat tree of 64 ports: 1,024 hosts over 32 edge, 32 aggregation and 16 core switches
        (three_tier(4, 8, 32, switch_ports=64), {"h": 1024, "rack": 32, "pod": 32, "core": 16, "ports": 64}),
        (three_tier(2, 4, 16), {"h": 128, "rack": 8, "pod": 32, "core": 4, "ports": 32}),
    ],
)
def test_switches_are_those_of_a_count_by_hand(network, expected):
    assert counts(network) == expected


@given(ports=st.integers(2, 40), n_leaves=st.integers(1, 40), ratio=st.sampled_from([1.0, 2.0, 3.0]))
def test_a_leaf_has_as_many_hosts_as_fit_and_no_switch_more_links_than_ports(ports, n_leaves, ratio):
    if n_leaves > ports or ports < 1 + ratio:
        with pytest.raises(InputError, match=r"needs .* ports|too few"):
            leaf_spine(n_leaves, switch_ports=ports, oversubscription=ratio)
        return
    found = counts(leaf_spine(n_leaves, switch_ports=ports, oversubscription=ratio))
    assert found["ports"] <= ports
    hosts = found["h"] // n_leaves
    assert hosts == ratio * (ports // (1 + ratio))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("dgx-h100@leaf_spine:machines=64,switch_ports=64",
         "dgx-h100@leaf_spine:n_leaves=16,hosts_per_leaf=32,n_spines=8,uplinks_per_spine=4"),
        ("dgx-h100@leaf_spine:machines=18,switch_ports=64",
         "dgx-h100@leaf_spine:n_leaves=6,hosts_per_leaf=24,n_spines=3,uplinks_per_spine=8"),
        ("leaf_spine:machines=100,switch_ports=32",
         "leaf_spine:n_leaves=10,hosts_per_leaf=10,n_spines=5,uplinks_per_spine=2"),
        ("dgx-h100@leaf_spine:machines=16,oversubscription=8",
         "dgx-h100@leaf_spine:n_leaves=4,hosts_per_leaf=32,n_spines=1,uplinks_per_spine=4"),
        ("dual_tor:machines=64", "dual_tor:machines=64,switch_ports=64"),
        ("multi_plane:machines=64,n_planes=2", "multi_plane:machines=64,n_planes=2,switch_ports=64"),
        ("leaf_spine:machines=24,n_leaves=4,oversubscription=3", "leaf_spine:n_leaves=4,hosts_per_leaf=6,n_spines=2"),
    ],
)  # fmt: skip
def test_machines_are_on_as_few_leaves_alike_as_have_ports_for_them(text, same):
    found, wanted = load_network(text), load_network(same)
    assert found.nodes == wanted.nodes
    assert np.array_equal(found.src, wanted.src)
    assert np.array_equal(found.dst, wanted.dst)
    assert np.array_equal(found.bandwidth, wanted.bandwidth)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaf_spine:n_leaves=4", "leaf_spine needs hosts_per_leaf, such as leaf_spine:hosts_per_leaf=4"),
        ("leaf_spine:machines=8,n_spines=2", "leaf_spine needs n_leaves"),
        ("leaf_spine:n_leaves=4,switch_ports=0", "leaf_spine: switch_ports must be 1 to 2048, got 0"),
        ("leaf_spine:n_leaves=4,switch_ports=1", "switch_ports=1 are too few for a leaf with one host"),
        ("leaf_spine:n_leaves=100,switch_ports=64", "a spine needs 100 ports, got switch_ports=64; give fewer leaves"),
        ("leaf_spine:n_leaves=4,hosts_per_leaf=40,switch_ports=64", "a leaf needs 80 ports, .* smaller hosts_per_leaf"),
        ("dgx-h100@leaf_spine:machines=1024,switch_ports=64", "machines=1024 are 8192 hosts .* needs 256 ports"),
        ("dual_tor:n_racks=80,switch_ports=64", "a spine needs 160 ports"),
        ("dual_tor:n_racks=2,hosts_per_rack=40,switch_ports=64", "a switch of a rack needs 80 ports"),
        ("three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=40,switch_ports=64", "a rack needs 80 ports"),
        ("three_tier:n_pods=2,racks_per_pod=40,hosts_per_rack=32,switch_ports=64", "a pod switch needs 80 ports"),
        ("three_tier:n_pods=80,racks_per_pod=1,hosts_per_rack=1,switch_ports=64", "a core switch needs 80 ports"),
        ("three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=4,switch_ports=0", "must be 1 to 2048, got 0"),
    ],
)  # fmt: skip
def test_what_switches_have_no_ports_for_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        load_network(text)
