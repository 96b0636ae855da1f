import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import GPU
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.routing import find_routes
from topologies.rail_optimized import rail_optimized


def leaves_on(network, src, dst, **options):
    """Names of the switches outside of machines on the path between two GPUs."""
    a, b = network.nodes.index(src), network.nodes.index(dst)
    nodes = network.dst[find_routes(network, a, b, **{"routing": "ecmp", **options}).link]
    return [network.nodes[node] for node in nodes if network.machine[node] < 0]


@settings(max_examples=15)
@given(groups=st.integers(1, 3), size=st.integers(1, 3), spines=st.integers(1, 3), planes=st.integers(1, 2))
def test_counts_of_a_rail_optimised_network(groups, size, spines, planes):
    network = rail_optimized(groups * size, "dgx-a100", hosts_per_group=size, n_spines=spines, planes=planes)
    n_leaves = 8 * groups * planes
    assert len(network.endpoints) == 8 * groups * size
    assert sum(name.startswith("leaf") for name in network.nodes) == n_leaves
    assert sum(name.startswith("spine") for name in network.nodes) == spines * planes
    outside = (network.machine[network.src] < 0) | (network.machine[network.dst] < 0)
    up = spines * -(-size // spines)  # non-blocking, and as many to each spine
    assert int(outside.sum()) == 2 * (8 * groups * size * planes + n_leaves * up)
    assert network.is_cabled


@settings(max_examples=10)
@given(pods=st.integers(2, 3), groups=st.integers(1, 2), spines=st.integers(1, 3), cores=st.integers(1, 3),
       planes=st.integers(1, 2))  # fmt: skip
def test_counts_with_pods(pods, groups, spines, cores, planes):
    network = rail_optimized(
        pods * groups, "dgx-a100", hosts_per_group=1, n_spines=spines, planes=planes, groups_per_pod=groups,
        cores_per_spine=cores,
    )  # fmt: skip
    assert sum(name.startswith("spine") for name in network.nodes) == pods * planes * spines
    assert sum(name.startswith("core") for name in network.nodes) == planes * spines * cores
    fabric = (network.machine[network.src] < 0) & (network.machine[network.dst] < 0)
    top = cores * -(-8 * groups // cores)
    assert int(fabric.sum()) == 2 * (8 * pods * groups * planes * spines + pods * planes * spines * top)
    assert network.is_cabled


def test_pods_are_joined_by_cores_and_keep_full_bandwidth():
    network = rail_optimized(4, "dgx-a100", hosts_per_group=1, groups_per_pod=2, cores_per_spine=2)
    found = leaves_on(network, "m0.gpu0", "m2.gpu0")
    assert [name.rstrip("0123456789") for name in found] == ["leaf", "spine", "core", "spine", "leaf"]
    assert leaves_on(network, "m0.gpu0", "m1.gpu0")[1].startswith("spine")
    assert len(leaves_on(network, "m0.gpu0", "m1.gpu0")) == 3
    core = np.array([name.startswith("core") for name in network.nodes])
    nic = (network.machine[network.src] >= 0) & (network.machine[network.dst] < 0)
    assert network.bandwidth[core[network.dst]].sum() == pytest.approx(network.bandwidth[nic].sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups_per_pod": 3}, "divide the 4 groups, got 3"),
        ({"cores_per_spine": 2}, "only with pods"),
        ({"pod_oversubscription": 2.0}, "only with pods"),
        (
            {"groups_per_pod": 2, "pod_oversubscription": 13.0},
            r"pod_oversubscription=13 is 1.231 cables .* each spine; the nearest .*: 16:1 .* and 8:1 .*; pod_uplink_",
        ),
        ({"groups_per_pod": 2, "cores_per_spine": 0}, "cores_per_spine"),
        ({"groups_per_pod": 2, "pod_oversubscription": 0.0}, "positive pod_oversubscription"),
    ],
)
def test_pods_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        rail_optimized(4, "dgx-a100", hosts_per_group=1, **arguments)


@pytest.mark.parametrize("routing", ["ecmp", "shortest", "spray"])
def test_equal_gpus_of_a_group_are_one_leaf_apart(routing):
    network = rail_optimized(4, "dgx-a100", hosts_per_group=2)
    for i in range(8):
        assert leaves_on(network, f"m0.gpu{i}", f"m1.gpu{i}", routing=routing) == [f"leaf{i}"]
        assert leaves_on(network, f"m2.gpu{i}", f"m3.gpu{i}", routing=routing) == [f"leaf{8 + i}"]


def test_other_gpus_and_other_groups_are_a_spine_apart():
    network = rail_optimized(4, "nvswitch_host", hosts_per_group=2)
    for a, b, leaves in (("m0.gpu0", "m1.gpu7", ["leaf0", "leaf7"]), ("m0.gpu3", "m2.gpu3", ["leaf3", "leaf11"])):
        found = leaves_on(network, a, b)
        assert [found[0], found[2]] == leaves
        assert found[1].startswith("spine")


def test_with_pxn_the_right_gpu_of_the_own_machine_goes_between():
    network = rail_optimized(2, "nvswitch_host")
    assert len(leaves_on(network, "m0.gpu0", "m1.gpu7")) == 3
    pxn = rail_optimized(2, "nvswitch_host:pxn=true")
    for routing in ("ecmp", "shortest", "spray"):
        for i in range(8):
            assert leaves_on(pxn, f"m0.gpu{7 - i}", f"m1.gpu{i}", routing=routing) == [f"leaf{i}"]


def test_with_pxn_a_machine_passes_on_nothing_that_it_receives():
    pxn = rail_optimized(4, "dgx-h100")
    gpus = np.flatnonzero(pxn.kind == GPU)
    src, dst = (nodes.ravel() for nodes in np.meshgrid(gpus, gpus))
    apart = np.flatnonzero(pxn.machine[src] != pxn.machine[dst])
    routes = find_routes(pxn, src[apart], dst[apart])
    for a, b, route in zip(src[apart], dst[apart], np.split(routes.link, routes.first[1:-1]), strict=True):
        passed = pxn.src[route][1:]
        assert set(pxn.machine[passed[pxn.kind[passed] == GPU]]) <= {pxn.machine[a]}
        assert pxn.nodes[b].split(".gpu")[1] == pxn.nodes[passed[pxn.machine[passed] < 0][0]].removeprefix("leaf")


def test_traffic_does_not_change_its_plane_outside_of_machines():
    network = rail_optimized(2, hosts_per_group=1, planes=2)
    leaf = np.array([name.startswith("leaf") for name in network.nodes])
    spine = np.array([name.startswith("spine") for name in network.nodes])
    number = np.array(
        [int(name.strip("leafspin") or 0) if leaf[i] or spine[i] else -1 for i, name in enumerate(network.nodes)]
    )
    up = leaf[network.src] & spine[network.dst]
    assert (number[network.src[up]] % 2 == number[network.dst[up]]).all()


def test_d_mod_k_sends_a_rail_over_all_spines_without_collisions():
    network = rail_optimized(8, "dgx-a100", hosts_per_group=4)
    first_gpus = network.endpoints.reshape(8, 8)[:, 0]
    routes = find_routes(network, first_gpus[:4], first_gpus[4:], routing="dmodk")
    assert np.bincount(routes.link).max() == 1


@pytest.mark.parametrize("ratio", [1.0, 2.0, 0.5])
def test_oversubscription_divides_what_two_groups_can_exchange(ratio):
    pytest.importorskip("scipy")
    network = rail_optimized(4, hosts_per_group=2, oversubscription=ratio, bandwidth=10e9)
    assert bisection_bandwidth(network) == pytest.approx(16 * 10e9 / max(1.0, ratio))


@pytest.mark.parametrize(
    ("asked", "n_spines", "per_pair"),
    [
        ({}, 8, 1), ({"oversubscription": 2.0}, 4, 1), ({"oversubscription": 4.0}, 2, 1), ({"n_spines": 2}, 2, 4),
        ({"n_spines": 3}, 3, 3), ({"n_spines": 2, "uplinks_per_spine": 1}, 2, 1), ({"uplinks_per_spine": 4}, 2, 4),
        ({"n_spines": 4, "oversubscription": 4.0}, 2, 1), ({"uplink_bandwidth": 20e9}, 4, 1),
        ({"oversubscription": 2.0, "uplink_bandwidth": 20e9}, 2, 1),
    ],
)  # fmt: skip
def test_spines_and_cables_are_derived_and_a_cable_has_the_rate_of_a_port(asked, n_spines, per_pair):
    network = rail_optimized(16, hosts_per_group=8, bandwidth=10e9, **asked)
    leaf, spine = (np.array([name.startswith(stem) for name in network.nodes]) for stem in ("leaf", "spine"))
    up = leaf[network.src] & spine[network.dst]
    assert spine.sum() == n_spines
    assert set(np.unique(network.src[up] * network.n_nodes + network.dst[up], return_counts=True)[1]) == {per_pair}
    assert set(network.bandwidth[up]) == {asked.get("uplink_bandwidth", 10e9)}


def test_groups_have_a_documented_default():
    def groups(n):
        return sum(name.startswith("leaf") for name in rail_optimized(n).nodes) // 8

    assert [groups(n) for n in (1, 24, 32, 48, 64, 66, 37)] == [1, 1, 1, 2, 2, 3, 2]


def test_the_last_group_has_what_is_left():
    network = rail_optimized(5, hosts_per_group=2, oversubscription=2.0)
    below = {}
    for src, dst in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if network.nodes[src].startswith("leaf") and not network.nodes[dst].startswith("spine"):
            below.setdefault(network.nodes[src], []).append(network.nodes[dst])
    assert below["leaf0"] == ["m0.nic0", "m1.nic0"]
    assert below["leaf15"] == ["m2.nic7", "m3.nic7"]
    assert below["leaf23"] == ["m4.nic7"]
    assert len(below) == 24


def switches_of(network):
    """How many switches there are outside machines by kind, and the fewest and most ports of each."""
    ports = np.bincount(network.src, minlength=network.n_nodes)
    found = {}
    for kind in ("leaf", "spine", "core"):
        each = [int(ports[i]) for i, name in enumerate(network.nodes) if name.startswith(kind)]
        found |= {kind: (len(each), min(each), max(each))} if each else {}
    return found


@pytest.mark.parametrize(
    ("arguments", "switches"),
    [
        # 1,024 GPUs: 32 leaves and 16 spines of 64 ports, as in a DGX SuperPOD of 4 scalable units of 32
        ({"n_hosts": 128}, {"leaf": (32, 64, 64), "spine": (16, 64, 64)}),
        ({"n_hosts": 128, "oversubscription": 2.0}, {"leaf": (32, 48, 48), "spine": (8, 64, 64)}),
        ({"n_hosts": 128, "oversubscription": 3.0}, {"leaf": (24, 48, 64), "spine": (8, 48, 48)}),
        ({"n_hosts": 100}, {"leaf": (32, 48, 52), "spine": (13, 64, 64)}),
        ({"n_hosts": 64, "n_spines": 32}, {"leaf": (16, 64, 64), "spine": (32, 16, 16)}),
        # a full fat tree of three tiers: p^3 / 4 = 65,536 ports would have 2 p^2 / 2 leaves and spines; 4,096 a 16th
        (
            {"n_hosts": 512, "groups_per_pod": 4},
            {"leaf": (128, 64, 64), "spine": (128, 64, 64), "core": (64, 64, 64)},
        ),
        # more leaves than a spine has ports have a third tier, whether or not pods are named
        ({"n_hosts": 512}, {"leaf": (128, 64, 64), "spine": (128, 64, 64), "core": (64, 64, 64)}),
        ({"n_hosts": 320}, {"leaf": (80, 64, 64), "spine": (80, 64, 64), "core": (64, 40, 40)}),
        (
            {"n_hosts": 320, "pod_oversubscription": 2.0},
            {"leaf": (80, 64, 64), "spine": (64, 60, 60), "core": (32, 40, 40)},
        ),
    ],
)
def test_switches_of_64_ports_are_as_few_as_carry_all_cables(arguments, switches):
    assert switches_of(rail_optimized(**arguments, switch_ports=64)) == switches


def test_ports_run_as_fast_as_the_nics_unless_told_otherwise():
    def port(network):
        at = (network.src == network.nodes.index("leaf0")) & (network.dst == network.nodes.index("m0.nic0"))
        return network.bandwidth[at].item()

    assert port(rail_optimized(2, "dgx-h100")) == 48.5e9
    assert port(rail_optimized(2, "dgx-h100", planes=2)) == 48.5e9 / 2
    assert port(rail_optimized(2, "dgx-h100", bandwidth=25e9)) == 25e9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_hosts": 0}, "rail_optimized needs n_hosts of at least 1, got n_hosts=0"),
        ({"n_hosts": 2, "hosts_per_group": 0}, "hosts_per_group of at least 1, got hosts_per_group=0"),
        ({"n_hosts": 2, "switch_ports": 0}, "switch_ports must be 1 to 2048, got 0"),
        ({"n_hosts": 2, "switch_ports": 1}, "switch_ports=1 are too few for a leaf with oversubscription=1"),
        (
            {"n_hosts": 64, "hosts_per_group": 32, "switch_ports": 40},
            "a leaf needs 64 ports, got switch_ports=40; give a smaller hosts_per_group",
        ),
        (
            {"n_hosts": 320, "switch_ports": 64, "groups_per_pod": 5},
            "a spine needs 80 ports, got switch_ports=64; give a smaller groups_per_pod",
        ),
        ({"n_hosts": 320, "switch_ports": 64, "n_spines": 32}, "a spine needs 80 ports, got switch_ports=64"),
        ({"n_hosts": 64, "switch_ports": 8}, "a spine needs 16 ports, got switch_ports=8; .* larger switch_ports"),
        ({"n_hosts": 2, "planes": 0}, "planes of at least 1"),
        ({"n_hosts": 2, "oversubscription": 3.0}, r"is 0.6667 cables .* up from each leaf; .*: 2:1 .* and 1:1"),
        ({"n_hosts": 2, "oversubscription": 0.0}, "needs a positive oversubscription, got 0.0"),
        ({"n_hosts": 2, "preset": "dgx"}, "unknown machine 'dgx'"),
        ({"n_hosts": 2, "preset": "cpu_host:n_nics=0"}, "rail_optimized needs machines with NICs, and cpu_host"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        rail_optimized(**arguments)
