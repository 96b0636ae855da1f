from commsim.core.faults.failures import fail_links
from commsim.prediction.inputs import load_network
from commsim.routing.cable_counts import CableCount, count_cables, kind_of
from topologies.dragonfly import dragonfly
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star


def test_cables_are_counted_by_what_they_join():
    assert count_cables(leaf_spine(3, 2, 4, 1e9, uplinks_per_spine=3)) == [
        CableCount("leaf", "spine", (3, 3), (6, 6), (1e9,))
    ]
    assert count_cables(fat_tree(4, 1e9, pod_uplink_bandwidth=2e9)) == [
        CableCount("edge", "aggregation", (1, 1), (2, 2), (1e9,)),
        CableCount("aggregation", "core", (1, 1), (2, 2), (2e9,)),
    ]
    assert count_cables(star(4)) == []


def test_a_cable_that_failed_is_not_counted():
    broken = fail_links(leaf_spine(3, 2, 4, 1e9, uplinks_per_spine=3), ["leaf0:spine0"])
    assert count_cables(broken) == [CableCount("leaf", "spine", (2, 3), (5, 6), (1e9,))]


def test_switches_of_one_tier_and_those_inside_machines():
    (cables,) = count_cables(dragonfly(2, 2, 1))
    assert (cables.below, cables.above, cables.per_pair) == ("router", "router", (1, 1))
    assert count_cables(load_network("dgx-h100@star:machines=2")) == []
    assert count_cables(load_network("rail_optimized:machines=4,hosts_per_group=2"))[0].up == (2, 2)


def test_planes_and_numbers_are_left_out_of_a_kind():
    assert [kind_of(name) for name in ("plane1_leaf3", "spine12", "level0_4", "core")] == [
        "leaf",
        "spine",
        "level",
        "core",
    ]
