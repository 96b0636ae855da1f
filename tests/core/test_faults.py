import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim import predict
from commsim.core.errors import InputError, RoutingError
from commsim.core.faults.cut_off import told_cut_off
from commsim.core.faults.failures import (
    draw_failures,
    fail_hosts,
    fail_links,
    fail_switches,
    remove_cables,
    remove_switches,
)
from commsim.core.faults.scaling import scale_links
from commsim.core.names.nodes_and_links import link_names
from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import fabric_cables, partners
from commsim.prediction.faults import with_faults
from commsim.prediction.inputs import load_network
from commsim.routing.network_metrics import measure
from commsim.routing.routing import find_routes
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.star import star
from topologies.torus import torus

NETWORKS = [leaf_spine(3, 2, 2), leaf_spine(2, 2, 2, uplinks_per_spine=3), fat_tree(4), torus((3, 4))]


def fail_random(network, what, part, seed=0):
    drawn = draw_failures(network, what, part, seed)
    return remove_cables(network, drawn) if what == "links" else remove_switches(network, drawn)


def named_links(network):
    """Every link as (its name, its numbers)."""
    columns = zip(network.bandwidth, network.latency, network.buffer, network.loss, network.metric, strict=True)
    return {network.link_name(i): row for i, row in enumerate(columns)}


@given(data=st.data())
def test_a_cable_fails_in_both_directions_and_nothing_else_changes(data):
    network = data.draw(st.sampled_from(NETWORKS))
    network = dataclasses.replace(network, bandwidth=np.arange(1.0, network.n_links + 1))  # tells the links apart
    link = data.draw(st.integers(0, network.n_links - 1))
    left = fail_links(network, [network.link_name(link)])
    gone = {link, int(partners(network)[link])}
    kept = [i for i in range(network.n_links) if i not in gone]
    assert left.n_links == network.n_links - 2
    for field in ("src", "dst", "bandwidth", "latency", "buffer", "loss", "metric"):
        assert np.array_equal(getattr(left, field), getattr(network, field)[kept])
    for field in ("nodes", "kind", "forwards", "aggregates", "overhead", "coordinates", "routing"):
        assert np.array_equal(getattr(left, field), getattr(network, field))
    ends = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    beside = ends.count(ends[link])
    which = f" (1 of {beside} cables)" if beside > 1 else ""
    assert left.name == f"{network.name} without {network.link_name(link)}{which}"


def test_of_parallel_cables_the_one_with_the_number_fails():
    network = leaf_spine(1, 1, 1, uplinks_per_spine=3)
    network = dataclasses.replace(network, bandwidth=np.arange(1.0, 9.0))
    left = fail_links(network, ["spine0:leaf0#1"])
    there, back = ((left.src == a) & (left.dst == b) for a, b in ((1, 2), (2, 1)))
    assert left.bandwidth[there].tolist() == [2.0, 4.0]
    assert left.bandwidth[back].tolist() == [6.0, 8.0]


def test_a_link_without_a_way_back_fails_alone():
    network = Network("x", ("a", "b", "c"), [0, 0, 0], [0, 1, 1], [1, 2, 0], 1.0, 0.0)
    assert named_links(fail_links(network, ["b:c"])).keys() == {"a:b", "b:a"}


def test_several_cables_are_named_by_the_network_as_it_was():
    network = leaf_spine(2, 2, 2)
    left = fail_links(network, ["leaf0:spine0", "leaf1:spine1"])
    assert left.n_links == network.n_links - 4
    assert fail_links(network, []) == network


def test_a_failed_switch_stays_but_passes_nothing_on():
    network = dataclasses.replace(leaf_spine(3, 2, 2), aggregates=np.ones(11, bool))
    left = fail_switches(network, ["spine1"])
    spine = network.nodes.index("spine1")
    assert left.nodes == network.nodes
    assert not ((left.src == spine) | (left.dst == spine)).any()
    assert left.n_links == network.n_links - 6
    assert not left.forwards[spine]
    assert not left.aggregates[spine]
    assert measure(left).no_path is None


def test_a_failed_leaf_cuts_off_its_hosts_and_routing_names_a_pair():
    left = fail_switches(leaf_spine(3, 2, 2), ["leaf1"])
    with pytest.raises(RoutingError, match=r"without leaf1: no path from h0 to h2; .* placement .* leaves them out"):
        find_routes(left, [0, 0], [1, 2])
    assert measure(left).no_path is not None


@pytest.mark.parametrize(
    ("network", "fail", "told"),
    [
        ("star:n_hosts=5", "host:h1", "; h1 is cut off: placement h[0,2-4] leaves it out"),
        ("star:n_hosts=5", "host:h0-1", "; h[0-1] are cut off: placement h[2-4] leaves them out"),
        ("dgx-h100@star:machines=3", "host:m1", "; m1 is cut off: placement m[0,2] leaves it out"),
        (
            "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=3",
            "link:leaf0:spine0",
            "; h[3-5] are cut off: placement h[0-2]",
        ),
        ("ring:n_hosts=100", "host:h7", "; h7 is cut off: placement h[0-6,8-99] leaves it out"),
        ("star:n_hosts=5", "switch:switch0", ""),  # nothing is left
    ],
)
def test_hosts_that_are_cut_off_are_named_with_the_placement_that_leaves_them_out(network, fail, told):
    left = with_faults(load_network(network), [fail], [])[0]
    assert told_cut_off(left).startswith(told)
    assert bool(told_cut_off(left)) == bool(told)
    if "leaves" in told:
        placement = told.partition("placement ")[2].partition(" leaves")[0]
        assert predict("ring_all_reduce", network, "1MiB", placement=placement, fail=[fail]).time > 0


def test_failed_hosts_are_listed_as_placements_list_them():
    """host:h0-1 was no host, though --placement h0-1 are two."""
    network, names = load_network("star:n_hosts=5"), ("host:h0-1", "host:h0,h1", "host:h[0-1]")
    one, *others = (with_faults(network, [name], [])[0] for name in names)
    assert all(one == other for other in others)
    with pytest.raises(InputError, match="has no host 'h5'; hosts are h0 to h4"):
        with_faults(network, ["host:h3-5"], [])


@given(network=st.sampled_from(NETWORKS), part=st.floats(0, 1), seed=st.integers(0, 2**40))
def test_a_part_of_the_links_between_forwarding_nodes_fails(network, part, seed):
    cables = fabric_cables(network)
    left = fail_random(network, "links", part, seed)
    assert left.n_links == network.n_links - 2 * round(part * len(cables))
    assert left == fail_random(network, "links", part, seed)
    if not network.forwards[network.hosts].any():
        at_host = (network.kind[network.src] != SWITCH) | (network.kind[network.dst] != SWITCH)
        still = (left.kind[left.src] != SWITCH) | (left.kind[left.dst] != SWITCH)
        assert np.count_nonzero(still) == np.count_nonzero(at_host)


@given(seed=st.integers(0, 2**40), few=st.integers(0, 16), more=st.integers(0, 16))
def test_more_failures_include_fewer_ones_of_the_same_seed(seed, few, more):
    network = fat_tree(4)
    drawn = [draw_failures(network, "links", n, seed).tolist() for n in sorted((few, more))]
    assert drawn[1][: len(drawn[0])] == drawn[0]
    assert len(set(drawn[1])) == len(drawn[1]) == max(few, more)


def test_every_switch_fails_about_as_often_as_any_other():
    network = fat_tree(4)
    drawn = [int(draw_failures(network, "switches", 1, seed)[0]) for seed in range(2000)]
    node, count = np.unique(drawn, return_counts=True)
    assert node.tolist() == list(range(16, 36))
    assert ((count - 100) ** 2 / 100).sum() < 50  # chi-square with 19 degrees: once in 10 000 draws


def test_a_number_is_a_number_and_a_float_is_a_part():
    network = leaf_spine(4, 4, 1)
    assert fail_random(network, "links", 1).n_links == network.n_links - 2
    assert fail_random(network, "links", 1.0).n_links == network.n_links - 32
    assert fail_random(network, "switches", 0.25).name == f"{network.name} without " + ", ".join(
        network.nodes[i] for i in draw_failures(network, "switches", 2)
    )


def test_what_is_inside_of_a_machine_does_not_fail():
    machine = dataclasses.replace(leaf_spine(2, 2, 1), machine=[0, 1, 0, 1, -1, -1])
    assert fabric_cables(machine).size == 0
    assert set(draw_failures(machine, "switches", 1.0)) == {4, 5}


@pytest.mark.parametrize(
    ("what", "part", "message"),
    [
        ("links", 9, "there are 8 links between nodes of leaf_spine:.* that forward, got 9"),
        ("links", 1.5, "there are 8 links between nodes of leaf_spine:.* that forward, got 150% of them"),
        ("switches", -1, "there are 6 switches of leaf_spine:.*, got -1"),
        ("switches", float("nan"), "got nan% of them"),
        ("hosts", 1, "links or switches fail at random, got 'hosts'"),
    ],
)
def test_more_than_there_are_cannot_fail(what, part, message):
    with pytest.raises(InputError, match=message):
        fail_random(leaf_spine(4, 2, 2), what, part)


def test_more_than_all_is_refused_where_there_is_nothing_to_draw_from():
    """Of a star, 150 % of its links were "no links to draw from"."""
    with pytest.raises(InputError, match="that forward is at most 100%, got 150%"):
        fail_random(star(4), "links", 1.5)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="the seed of a draw must be 0 or more, got -1"):
        fail_random(leaf_spine(2, 2, 2), "links", 1, seed=-1)


def test_where_nothing_can_fail_it_is_said_so():
    with pytest.raises(InputError, match=r"no links .* that forward to draw from; name a cable: link:h0:"):
        fail_random(star(4), "links", 0.5)
    with pytest.raises(InputError, match=r"no switches of torus:"):
        fail_random(torus((2, 2)), "switches", 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [("h0", "h0 is not a switch: host:h0 takes a host out of service"), ("spline0", "did you mean spine0")],
)
def test_only_a_switch_fails_as_a_switch(name, message):
    with pytest.raises(InputError, match=message):
        fail_switches(leaf_spine(2, 2, 2), [name])


def test_a_host_fails_with_all_its_links():
    network = leaf_spine(2, 2, 2)
    left = fail_hosts(network, ["h2"])
    assert set(link_names(network)) - set(link_names(left)) == {"h2:leaf1", "leaf1:h2"}
    assert left.name == f"{network.name} without h2"
    for name, message in (("leaf0", "leaf0 is not a host but a switch"), ("h9", "has no host 'h9'; hosts are h0 to h")):
        with pytest.raises(InputError, match=message):
            fail_hosts(network, [name])


def test_a_machine_fails_with_all_that_is_in_it():
    network = load_network("dgx-h100@star:machines=3")
    left = fail_hosts(network, ["m1"])
    gone = set(link_names(network)) - set(link_names(left))
    assert gone == {name for name in link_names(network) if "m1." in name}
    with pytest.raises(InputError, match=r"m1\.gpu0 is not a host but a part of host m1"):
        fail_hosts(network, ["m1.gpu0"])


def slowed(network, scaled):
    return {
        name for name, rate in zip(link_names(network), scaled.bandwidth / network.bandwidth, strict=True) if rate != 1
    }


def test_links_of_a_pattern_are_scaled_in_both_directions():
    network = leaf_spine(2, 2, 2)
    scaled = scale_links(network, 0.5, pattern="leaf0:spine*")
    assert slowed(network, scaled) == {"leaf0:spine0", "leaf0:spine1", "spine0:leaf0", "spine1:leaf0"}
    assert set(scaled.bandwidth / network.bandwidth) == {0.5, 1.0}
    assert scaled.name == f"{network.name} with 2 cables at 0.5 of their rate, both ways"


@given(part=st.floats(0, 1), seed=st.integers(0, 2**40), factor=st.floats(1e-3, 1e3))
def test_a_part_of_the_cables_is_drawn(part, seed, factor):
    network = leaf_spine(4, 4, 2)
    scaled = scale_links(network, factor, part=part, seed=seed)
    names = slowed(network, scaled)
    assert len(names) == (2 * round(part * 16) if factor != 1 else 0)
    assert {name for name in names if name.startswith("h") or ":h" in name} == set()
    assert {":".join(reversed(name.split(":"))) for name in names} == names
    assert np.array_equal(scaled.bandwidth, scale_links(network, factor, part=part, seed=seed).bandwidth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"factor": 0.0, "part": 1}, "links are scaled by a positive factor, got 0"),
        ({"factor": float("inf"), "part": 1}, "positive factor, got inf"),
        ({"factor": 2.0}, "by a pattern or by their number, not by both"),
        ({"factor": 2.0, "part": 1, "pattern": "*"}, "not by both"),
        ({"factor": 2.0, "pattern": "x*"}, "has no link like 'x\\*'; names of links are such as h0:leaf0"),
        ({"factor": 2.0, "part": 5}, "there are 4 links between nodes .* that forward, got 5"),
    ],
)
def test_what_cannot_be_scaled_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        scale_links(leaf_spine(2, 2, 2), **arguments)


def test_a_rail_fails_with_the_leaves_of_its_nics_in_all_groups():
    network = load_network("dgx-h100@rail_optimized:machines=8,hosts_per_group=4")
    left, _ = with_faults(network, ["rail:3"], [])
    same = fail_switches(network, ["leaf3", "leaf11"])
    assert (left.n_links, left.name) == (same.n_links, f"{network.name} without rail 3")
    np.testing.assert_array_equal(left.src, same.src)
    by_nics, _ = with_faults(network, ["nic:*.nic3"], [])
    both = [predict("nccl", one, "1GiB").time for one in (left, by_nics)]
    assert both[0] == pytest.approx(both[1], rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "of_plane"),
    [
        ("multi_plane:n_planes=3,n_leaves=2,n_spines=2,hosts_per_leaf=2", "plane{}_*"),
        ("hpn7-segment:n_hosts=16", None),
        ("dgx-h100@rail_optimized:machines=8,hosts_per_group=4,planes=2", None),
    ],
)
def test_a_plane_fails_with_all_of_its_switches_and_no_other(spec, of_plane):
    network = load_network(spec)
    left, _ = with_faults(network, ["plane:1"], [])
    gone = np.setdiff1d(network.src, left.src)
    assert (network.kind[gone] == SWITCH).all()
    joined = np.isin(network.src, gone) & (network.kind[network.dst] == SWITCH) & (network.machine[network.dst] < 0)
    assert np.isin(network.dst[joined], gone).all()
    if of_plane:
        np.testing.assert_array_equal(left.src, fail_switches(network, [of_plane.format(1)]).src)


def test_planes_keep_their_numbers_while_others_fail():
    network = load_network("multi_plane:n_planes=3,n_leaves=2,n_spines=2,hosts_per_leaf=2")
    one_by_one, _ = with_faults(network, ["plane:0", "plane:1"], [])
    assert set(one_by_one.src) == set(with_faults(network, ["plane:0,1"], [])[0].src)
    assert {network.nodes[i] for i in one_by_one.src if network.kind[i] == SWITCH} == {
        f"plane2_{tier}{i}" for tier in ("leaf", "spine") for i in range(2)
    }


def test_half_of_an_all_to_all_is_lost_with_one_of_two_planes():
    spec = "dgx-h100@rail_optimized:machines=8,planes=2"
    whole, left = (predict("nccl", spec, "1GiB", operation="all_to_all", fail=fail).time for fail in ((), ("plane:1",)))
    assert left / whole == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize(
    ("spec", "fail", "why"),
    [
        ("dgx-h100@rail_optimized:machines=2", "rail:8", "has no rail '8'; rails are 0 to 7"),
        (
            "dgx-h100@star:machines=2",
            "rail:0",
            "has no rails, each with its own leaves; a switch is named as switch:NAME",
        ),
        ("star:n_hosts=4", "rail:0", "has no rails"),
        (
            "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2",
            "plane:1",
            "has one plane, all of",
        ),
        ("multi_plane:n_planes=2,n_leaves=1,n_spines=1,hosts_per_leaf=2", "plane:x", "no plane 'x'; planes are 0 to 1"),
        ("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", "switch:top*", "has no switch 'top*'"),
    ],
)
def test_rails_and_planes_that_are_not_there_are_refused_with_those_that_are(spec, fail, why):
    with pytest.raises(InputError, match=re.escape(why)):
        with_faults(load_network(spec), [fail], [])
