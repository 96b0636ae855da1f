"""Shares of adaptive routing: a dead cable costs its capacity and no more, and even fabrics are shared as before."""

import dataclasses

import numpy as np
import pytest

import commsim as cs
from commsim.core.faults.failures import fail_links
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes

EIGHT = "dgx-h100@leaf_spine:machines=16,n_leaves=2,n_spines=8,oversubscription=2"  # 4 cables to each of 8 spines
TWO = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2,oversubscription=4"  # 2 cables to each of 2 spines
POD = "dgx-h100@fat_tree:k=8"  # 2 machines in a pod of 4 edge and 4 aggregation switches, which have 4 cores each
PLANES = "dgx-h100@multi_plane:machines=4,n_planes=2,n_leaves=2,n_spines=2"


def shares(network, src, dst):
    """Return the share of each cable between two switches of the fabric, by their names."""
    nodes = list(network.nodes)
    routes = find_routes(network, nodes.index(src), nodes.index(dst))
    found = {}
    for link, share in zip(routes.link.tolist(), routes.share.tolist(), strict=True):
        a, b = network.nodes[network.src[link]], network.nodes[network.dst[link]]
        if "m" not in (a[0], b[0]):
            found.setdefault(f"{a}:{b}", []).append(share)
    return found


@pytest.mark.parametrize("back", [False, True])
def test_one_of_32_cables_is_missing_and_the_other_31_carry_equal_parts(back):
    """Traffic over the spine that has 3 cables goes down 3, or comes up 4 and goes down 3: 3 of 31 parts in all."""
    ends = ("m15.gpu0", "m0.gpu0") if back else ("m0.gpu0", "m15.gpu0")
    found = shares(fail_links(load_network(EIGHT), ["leaf0:spine0"]), *ends)
    weak = [name for name in found if "spine0" in name]
    assert {len(found[name]) for name in weak} == {3, 4}
    for name, each in found.items():
        assert each == pytest.approx([3 / 31 / len(each) if name in weak else 1 / 31] * len(each))


def test_a_weak_cable_at_each_end_counts_once():
    found = shares(fail_links(load_network(TWO), ["leaf0:spine0", "leaf1:spine0"]), "m0.gpu0", "m3.gpu0")
    assert found["leaf0:spine0"] == pytest.approx([1 / 3])
    assert found["spine0:leaf1"] == pytest.approx([1 / 3])
    assert found["leaf0:spine1"] == found["spine1:leaf1"] == pytest.approx([1 / 3] * 2)


def test_weak_cables_of_different_spines_share_with_each_other():
    found = shares(fail_links(load_network(TWO), ["leaf0:spine0", "leaf1:spine1"]), "m0.gpu0", "m3.gpu0")
    assert found["leaf0:spine0"] == found["spine1:leaf1"] == pytest.approx([1 / 2])
    assert found["leaf0:spine1"] == found["spine0:leaf1"] == pytest.approx([1 / 4] * 2)


def test_a_slow_cable_takes_as_much_as_its_rate():
    whole = load_network(TWO)
    slow = next(i for i in range(whole.n_links) if whole.link_name(i).startswith("leaf0:spine0"))
    bandwidth = whole.bandwidth.copy()
    bandwidth[slow] /= 2
    found = shares(dataclasses.replace(whole, bandwidth=bandwidth), "m0.gpu0", "m3.gpu0")
    assert sorted(found["leaf0:spine0"]) == pytest.approx([1 / 7, 2 / 7])
    assert found["spine0:leaf1"] == pytest.approx([3 / 14] * 2)
    assert found["leaf0:spine1"] == pytest.approx([2 / 7] * 2)


@pytest.mark.parametrize("ends", [("m0.gpu0", "m15.gpu0"), ("m15.gpu0", "m0.gpu0")])
def test_a_core_that_a_pod_has_lost_is_missed_by_the_aggregation_switch_two_tiers_away(ends):
    network = fail_links(load_network(POD), ["aggregation0:core0"])
    found = shares(network, *ends)
    up = {name: each for name, each in found.items() if name.startswith("edge")}
    over_cores = [each for name, each in found.items() if "core" in name]
    assert sorted(up.values()) == [pytest.approx([3 / 15]), *([pytest.approx([4 / 15])] * 3)]
    assert over_cores == [pytest.approx([1 / 15])] * 30


def test_a_host_sends_less_over_a_plane_that_has_lost_a_cable():
    whole = load_network(PLANES)
    cable = next(
        name for name in map(whole.link_name, range(whole.n_links)) if name.startswith("plane0_leaf0:plane0_s")
    )
    found = shares(fail_links(whole, [cable]), "m0.gpu0", "m3.gpu0")
    carried = {plane: sum(sum(each) for name, each in found.items() if name.startswith(plane + "_leaf")) for plane in
               ("plane0", "plane1")}  # fmt: skip
    n = sum(len(each) for name, each in found.items() if name.startswith("plane1_leaf"))
    assert carried["plane0"] / carried["plane1"] == pytest.approx((n - 1) / n)


@pytest.mark.parametrize("spec", [EIGHT, TWO, POD, PLANES])
def test_shares_of_an_even_fabric_are_those_of_equal_spraying_to_the_last_bit(spec):
    network = load_network(spec)
    src, dst = (ends.ravel() for ends in np.meshgrid(network.endpoints[:9], network.endpoints, indexing="ij"))
    adaptive = find_routes(network, src, dst, routing="spray")
    equal = find_routes(dataclasses.replace(network, hardware=""), src, dst, routing="spray")
    assert adaptive.link.tolist() == equal.link.tolist()
    assert adaptive.share.tolist() == equal.share.tolist()
    assert adaptive.share.min() < 1


def test_routes_that_a_fault_does_not_reach_keep_their_shares_to_the_last_bit():
    three = "dgx-h100@leaf_spine:machines=6,n_leaves=3,n_spines=4"
    whole, weak = load_network(three), fail_links(load_network(three), ["leaf0:spine0"])
    assert shares(weak, "m2.gpu1", "m5.gpu3") == shares(whole, "m2.gpu1", "m5.gpu3")
    assert shares(weak, "m0.gpu1", "m5.gpu3") != shares(whole, "m0.gpu1", "m5.gpu3")


def test_switches_that_spray_and_do_not_adapt_share_equally_per_port():
    network = fail_links(load_network(TWO.replace("@", ":net=roce@")), ["leaf0:spine0"])
    network = dataclasses.replace(network, routing="spray")
    found = shares(network, "m3.gpu0", "m0.gpu0")
    assert found["leaf1:spine0"] == pytest.approx([1 / 4] * 2)
    assert found["spine0:leaf0"] == pytest.approx([1 / 2])


def test_the_same_route_is_found_alone_and_with_many(monkeypatch):
    from commsim.routing import capacity_shares

    network = fail_links(load_network(TWO), ["leaf0:spine0"])
    src, dst = (ends.ravel() for ends in np.meshgrid(network.endpoints, network.endpoints, indexing="ij"))
    whole = find_routes(network, src, dst)
    monkeypatch.setattr(capacity_shares, "AT_ONCE", 50)
    assert find_routes(network, src, dst).share.tolist() == whole.share.tolist()
    for row in range(0, len(src), 97):
        alone = find_routes(network, src[row], dst[row])
        assert alone.share.tolist() == whole.share[whole.first[row] : whole.first[row + 1]].tolist()


def test_an_all_to_all_costs_the_capacity_that_is_missing_and_no_more():
    asked = ("direct_all_to_all", TWO, "64MiB")
    whole, weak = cs.predict(*asked).time, cs.predict(*asked, fail=["link:leaf0:spine0"]).time
    assert weak == pytest.approx(whole * 4 / 3, rel=0.01)  # 3 of the 4 cables of leaf0 are left


@pytest.mark.parametrize("collective", ["direct_all_to_all", "ring_all_reduce", "halving_doubling_all_reduce"])
def test_fewer_cables_are_never_faster(collective):
    cables = ["link:leaf0:spine0", "link:leaf1:spine1", "link:leaf0:spine1", "link:leaf1:spine0"]
    times = [
        cs.predict(collective, TWO, "16MiB", placement="spread", fail=cables[:n]).time for n in range(len(cables) + 1)
    ]
    assert times == pytest.approx(sorted(times), rel=1e-9)
