import dataclasses

import numpy as np
import pytest

from commsim.auto.case import OWN, case_of, family
from commsim.auto.estimated_seconds import estimated_seconds
from commsim.core.faults.failures import fail_links, fail_switches
from commsim.core.faults.scaling import scale_links
from commsim.core.files.network_file import read_network, write_network
from commsim.core.names.nodes_and_links import link_names
from commsim.prediction.build import prepare
from commsim.prediction.read import with_costs
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.rail_optimized import rail_optimized
from topologies.star import star

MIB = 2**20


def ring_case(network, **given):
    return case_of(prepare("ring_all_reduce", network, **given), MIB)


def test_a_case_says_what_was_asked_for():
    case = ring_case(star(8, 12.5e9, latency=5e-7))
    assert (case.operation, case.collective, case.network, case.routing, case.placement) == (
        "all_reduce", "ring_all_reduce", "star", "ecmp", "packed",
    )  # fmt: skip
    assert (case.ranks, case.size, case.rate, case.product, case.costs) == (8, MIB, 12.5e9, 6250, 0)
    assert (case.oversubscription, case.unevenness, case.near) == (1, 1, 8)


def test_ranks_under_one_switch_are_a_star_whatever_else_there_is():
    network = leaf_spine(2, 2, 8, 1e9, oversubscription=4.0)
    under_one = ring_case(network, n_ranks=8)
    assert dataclasses.replace(under_one, routing="") == dataclasses.replace(ring_case(star(8, 1e9)), routing="")
    apart = ring_case(network, n_ranks=9)
    assert (apart.network, apart.oversubscription, apart.near) == ("leaf_spine", 4, 8)
    assert apart.rate == apart.product / 5e-7 == 1e9
    slower = ring_case(leaf_spine(2, 4, 4, 1e9, uplink_bandwidth=5e8))
    assert (slower.rate, slower.unevenness) == (5e8, 2)


def test_placement_and_routing_are_conditions():
    network = leaf_spine(2, 2, 4)
    assert ring_case(network, placement="spread").placement == "spread"
    assert ring_case(network, placement="random", seed=3).placement == "other"
    assert ring_case(network, routing="dmodk").routing == "dmodk"


def test_parameters_that_were_given_are_part_of_the_algorithm():
    for spec in ("chain_broadcast", "chain_broadcast:n_chunks=4"):
        assert case_of(prepare(spec, star(4)), MIB).collective == spec
    assert case_of(prepare("hierarchical_all_reduce", leaf_spine(2, 2, 4)), MIB).collective == "hierarchical_all_reduce"
    assert case_of(prepare("topk_a:density=0.1", star(4)), MIB).collective == "topk_a of sparse data"


def test_a_network_that_somebody_changed_is_of_no_family():
    network = fat_tree(4)
    assert family(prepare("ring_all_reduce", network)) == "fat_tree"
    failed = fail_links(network, [link_names(network)[-1]])
    for changed in (failed, fail_switches(network, ["core0"]), scale_links(network, 0.5, pattern="core0:*")):
        assert family(prepare("ring_all_reduce", changed)) == OWN


def test_the_family_is_that_of_the_object_whatever_its_name(tmp_path):
    network = fat_tree(4)
    renamed = dataclasses.replace(network, name="cluster of the third floor")
    assert family(prepare("ring_all_reduce", renamed)) == "fat_tree"
    read = (write_network(leaf_spine(2, 2, 2), tmp_path / "n.json"), read_network(tmp_path / "n.json"))[1]
    posing = dataclasses.replace(read, name=network.name)
    assert family(prepare("ring_all_reduce", posing)) == OWN


def test_one_slow_host_makes_a_star_uneven():
    network = star(4, 1e9)
    slow = dataclasses.replace(network, bandwidth=np.where(network.src == 3, 5e8, network.bandwidth))
    assert ring_case(slow).unevenness == 2


def test_costs_are_counted_in_the_time_of_the_smallest_message():
    network = with_costs(star(4, 1e9), overhead=1e-6, gamma=1e-10)
    found = ring_case(network)
    assert (found.overhead, found.costs, found.others) == pytest.approx((1e3, 1e-6 / (MIB / 4 / 1e9), 0.1))


def test_what_links_hold_goes_by_those_between_machines():
    near, far = (ring_case(rail_optimized(4, latency=t)) for t in (0.0, 1e-6))
    assert near.product < far.product
    assert near.near == 8


def test_packets_cost_by_size_and_the_other_engines_do_not():
    ready = prepare("ring_all_reduce", star(8))
    small, large = estimated_seconds(ready, 2**20), estimated_seconds(ready, 2**30)
    assert large["packet"] > 20 * small["packet"]
    assert all(large[engine] == small[engine] for engine in ("closed-form", "alpha-beta", "flow"))
    assert list(large) == ["closed-form", "alpha-beta", "flow", "packet"]


def test_a_packet_is_counted_on_every_link_that_it_crosses():
    ready = prepare("ring_send_recv", star(4))
    per_byte = (estimated_seconds(ready, 2**30)["packet"] - estimated_seconds(ready, 2**29)["packet"]) / 2**29
    assert per_byte == pytest.approx(4 * 2 / 4096 * 1.5e-7)
