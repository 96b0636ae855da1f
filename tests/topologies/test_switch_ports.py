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
        # 48 hosts and 16 cables up on each leaf but the last, which has 16 hosts
        (
            leaf_spine(switch_ports=64, n_hosts=1024, oversubscription=3),
            {"h": 1024, "leaf": 22, "spine": 8, "ports": 64},
        ),
        (leaf_spine(3, n_hosts=20, oversubscription=2), {"h": 20, "leaf": 3, "spine": 4, "ports": 12}),
        (dual_tor(switch_ports=32, n_hosts=30), {"h": 30, "tor": 4, "spine": 2, "ports": 32}),
        (multi_plane(2, n_hosts=30, hosts_per_leaf=8), {"h": 30, "leaf": 8, "spine": 16, "ports": 16}),
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
        # 4 machines on each leaf but the last: 6 leaves alike would need 3 spines, as many switches in all
        ("dgx-h100@leaf_spine:machines=18,switch_ports=64",
         "dgx-h100@leaf_spine:machines=18,n_leaves=5,hosts_per_leaf=32,n_spines=4,uplinks_per_spine=8"),
        # 15 on each would need 5 spines
        ("leaf_spine:machines=100,switch_ports=32",
         "leaf_spine:n_hosts=100,n_leaves=7,hosts_per_leaf=16,n_spines=4,uplinks_per_spine=4"),
        ("leaf_spine:machines=99,switch_ports=32", "leaf_spine:n_hosts=99,hosts_per_leaf=16,n_spines=4"
         ",uplinks_per_spine=4"),
        ("dgx-h100@leaf_spine:machines=128,switch_ports=64,oversubscription=3",
         "dgx-h100@leaf_spine:machines=128,hosts_per_leaf=48,n_spines=8,uplinks_per_spine=2"),
        ("dgx-h100@leaf_spine:machines=16,oversubscription=8",
         "dgx-h100@leaf_spine:machines=16,n_leaves=3,hosts_per_leaf=48,n_spines=1,uplinks_per_spine=6"),
        ("leaf_spine:n_hosts=1024,oversubscription=3",
         "leaf_spine:n_leaves=22,n_hosts=1024,hosts_per_leaf=48,n_spines=8,uplinks_per_spine=2"),
        # 48 and 16 hosts would leave the second leaf without oversubscription; 33 and 31 have 11 cables each
        ("leaf_spine:n_hosts=64,oversubscription=3", "leaf_spine:n_hosts=64,hosts_per_leaf=33,n_spines=1"
         ",uplinks_per_spine=11"),
        ("dual_tor:machines=64", "dual_tor:machines=64,switch_ports=64"),
        ("multi_plane:machines=64,n_planes=2", "multi_plane:machines=64,n_planes=2,switch_ports=64"),
        ("leaf_spine:machines=24,n_leaves=4,oversubscription=3", "leaf_spine:n_leaves=4,hosts_per_leaf=6,n_spines=2"),
    ],
)  # fmt: skip
def test_machines_are_on_as_few_leaves_as_have_ports_for_them(text, same):
    found, wanted = load_network(text), load_network(same)
    assert found.nodes == wanted.nodes
    assert np.array_equal(found.src, wanted.src)
    assert np.array_equal(found.dst, wanted.dst)
    assert np.array_equal(found.bandwidth, wanted.bandwidth)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaf_spine:n_spines=4", "leaf_spine needs n_leaves, such as leaf_spine:n_leaves=4, or n_hosts"),
        ("leaf_spine:n_leaves=4,n_hosts=9", "n_hosts=9 fill n_leaves=3 of hosts_per_leaf=3, got n_leaves=4"),
        ("leaf_spine:n_leaves=2,n_hosts=9,hosts_per_leaf=4", "fill n_leaves=3 of hosts_per_leaf=4, got n_leaves=2"),
        ("dgx-h100@leaf_spine:n_leaves=4,machines=9", "are 72 hosts .* fill n_leaves=3 of hosts_per_leaf=24"),
        ("leaf_spine:n_leaves=4", "leaf_spine needs hosts_per_leaf, such as leaf_spine:hosts_per_leaf=4"),
        ("leaf_spine:machines=8,n_spines=2", "needs n_leaves, such as leaf_spine:n_leaves=4, or switch_ports"),
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


def test_a_leaf_has_whole_machines():
    """10 machines on 4 leaves were 20 NICs a leaf: half of m2 on one, half on the next, and nothing said so."""
    network = load_network("dgx-h100@leaf_spine:machines=10,n_leaves=4,n_spines=4")
    leaf = {a.partition(".")[0]: set() for a in network.nodes if a.startswith("m")}
    for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if ".nic" in network.nodes[a] and network.nodes[b].startswith("leaf"):
            leaf[network.nodes[a].partition(".")[0]].add(network.nodes[b])
    assert [leaf[f"m{i}"] for i in range(10)] == [{f"leaf{i // 3}"} for i in range(10)]
