import numpy as np
import pytest

import commsim as cs
from commsim.core.network import HOST, NIC, SWITCH
from commsim.core.network_queries import partners
from commsim.prediction.inputs import load_network

TIERS = {
    "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2": 2,
    "dual_tor:n_racks=2,n_spines=2,hosts_per_rack=2": 2,
    "multi_plane:n_planes=2,n_leaves=2,n_spines=2,hosts_per_leaf=2": 2,
    "jellyfish:n_switches=6,degree=3,hosts_per_switch=1": 2,
    "rail_optimized:machines=4,hosts_per_group=2": 2,
    "rail_optimized:machines=8,hosts_per_group=2,groups_per_pod=2": 3,
    "three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=2": 3,
    "fat_tree:k=4": 3,
}


def tier_of(network):
    """Tier of each link outside of machines by the kinds and names of its ends: 0 at hosts, 2 at core switches."""
    ends = [(network.nodes[a], network.nodes[b]) for a, b in zip(network.src, network.dst, strict=True)]
    at_host = np.isin(network.kind[network.src], (HOST, NIC)) | np.isin(network.kind[network.dst], (HOST, NIC))
    core = np.array([any(name.startswith("core") for name in pair) for pair in ends])
    inside = (network.machine[network.src] >= 0) & (network.machine[network.dst] >= 0)
    between = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH)
    return np.where(inside, -1, np.where(at_host, 0, np.where(core, 2, np.where(between, 1, -1))))


@pytest.mark.parametrize("network", TIERS)
def test_cables_of_each_tier_have_the_latency_that_is_given(network):
    extra = ",pod_uplink_latency=7us" if TIERS[network] == 3 else ""
    found = load_network(f"{network},latency=1us,uplink_latency=3us{extra}")
    tier = tier_of(found)
    assert set(tier.tolist()) >= set(range(TIERS[network]))
    for i, wanted in enumerate((1e-6, 3e-6, 7e-6)):
        assert found.latency[tier == i] == pytest.approx(wanted)
    assert np.array_equal(found.latency, found.latency[partners(found)])


@pytest.mark.parametrize("network", TIERS)
def test_without_one_it_is_that_of_the_tier_below(network):
    plain, named = (load_network(f"{network},latency=2us{more}") for more in ("", ",uplink_latency=2us"))
    assert np.array_equal(plain.latency, named.latency)
    if TIERS[network] == 3:
        found = load_network(f"{network},latency=1us,uplink_latency=3us")
        assert found.latency[tier_of(found) == 2] == pytest.approx(3e-6)


def test_two_sites_over_a_wide_area_link_take_its_rate_and_its_way_of_each_crossing():
    """By hand: 2 x 15/16 of 1 GiB over 10 Gb/s; a chunk's 30 hops leave a site at most four times, over two cables."""
    sites = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=8,uplink_bandwidth=10Gbps,uplink_latency=10ms"
    large, small = (cs.predict("ring_all_reduce", sites, size).time for size in ("1GiB", "1KiB"))
    assert large == pytest.approx(2 * 15 / 16 * 2**30 / 1.25e9, rel=0.03)
    assert small == pytest.approx(4 * 2 * 10e-3, rel=0.01)
