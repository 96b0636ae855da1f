import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.files.store import SUFFIXES, read_network, save
from commsim.core.machines.attach import attach_machines
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, MEMORY, NIC, SWITCH, Network
from commsim.routing.network_metrics import measure
from commsim.routing.routing import find_routes
from topologies.fat_tree import fat_tree
from topologies.hosts.nvswitch_host import nvswitch_host
from topologies.hosts.pcie_host import pcie_host
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


def path(network, src, dst, **options):
    """Names of the nodes on the one path between two nodes."""
    a, b = network.nodes.index(src), network.nodes.index(dst)
    return [network.nodes[network.dst[link]] for link in find_routes(network, a, b, **options).link]


def switch_of_four() -> Parts:
    """Two GPUs and two NICs on one PCIe switch under a CPU."""
    parts = Parts()
    devices = [(parts.add(f"gpu{i}", GPU), 10.0) for i in range(2)] + [(parts.add(f"nic{i}", NIC), 5.0) for i in (0, 1)]
    parts.crossing(parts.add("cpu0", CPU), parts.pcie_switch("pcie0", devices), 10.0)
    return parts


def test_those_who_can_be_ranks_come_first_in_the_order_in_which_they_were_added():
    parts = Parts()
    for name, kind in (("nic0", NIC), ("gpu1", GPU), ("cpu0", CPU), ("gpu0", GPU)):
        parts.add(name, kind)
    network = parts.build("x")
    assert network.nodes == ("gpu1", "gpu0", "nic0", "cpu0")
    assert network.endpoints.tolist() == [0, 1]
    assert network.machine.tolist() == [0] * 4
    assert network.n_links == 0


def test_memories_are_places_for_ranks_only_where_there_is_nothing_better():
    parts = Parts()
    parts.cable(parts.add("cpu0", CPU), parts.add("memory0", MEMORY), 1.0)
    assert parts.build("x").nodes == ("memory0", "cpu0")
    parts.add("gpu0", GPU)
    assert parts.build("x").nodes == ("gpu0", "cpu0", "memory0")


def test_each_gpu_of_a_switch_uses_the_nic_beside_it():
    network = switch_of_four().build("x")
    for i in range(2):
        for routing in ("ecmp", "shortest", "spray"):
            assert path(network, f"gpu{i}", f"nic{i}", routing=routing) == [f"pcie0.{i}", f"nic{i}"]
        assert path(network, f"gpu{i}", f"nic{1 - i}") == [f"pcie0.{i}", "pcie0", f"pcie0.{1 - i}", f"nic{1 - i}"]


def test_nothing_inside_a_switch_is_a_bottleneck():
    network = switch_of_four().build("x")
    inner = [network.link_name(i).count("pcie") == 2 for i in range(network.n_links)]
    assert (network.bandwidth[inner] >= 10.0 + 5.0).all()


def test_a_switch_with_one_nic_is_one_node():
    parts = Parts()
    parts.pcie_switch(
        "pcie0", [(parts.add("gpu0", GPU), 1.0), (parts.add("gpu1", GPU), 1.0), (parts.add("n", NIC), 1.0)]
    )
    network = parts.build("x")
    assert int((network.kind == SWITCH).sum()) == 1


def test_nvlink_goes_before_pcie_whatever_the_number_of_links():
    parts = switch_of_four()
    parts.join_gpus("nvswitch0", dict.fromkeys(range(4), 100.0))
    for routing in ("ecmp", "shortest", "spray"):
        assert path(parts.build("x"), "gpu0", "gpu1", routing=routing) == ["nvswitch0", "gpu1"]


def test_gpus_forward_only_in_a_mesh_with_holes():
    def mesh(pairs):
        parts = Parts()
        gpus = [parts.add(f"gpu{i}", GPU) for i in range(3)]
        parts.mesh(dict.fromkeys(pairs, 1.0), gpus)
        return parts.build("x")

    assert not mesh([(0, 1), (1, 2), (0, 2)]).forwards.any()
    assert path(mesh([(0, 1), (1, 2)]), "gpu0", "gpu2") == ["gpu1", "gpu2"]
    assert not mesh([]).forwards.any()


def test_every_cpu_is_joined_to_every_other_one():
    parts = Parts()
    for i in range(3):
        parts.cable(parts.add(f"cpu{i}", CPU), parts.add(f"memory{i}", MEMORY), 1.0)
    parts.join_cpus(7.0)
    network = parts.build("x")
    assert np.count_nonzero(network.bandwidth == 7.0) == 6
    assert path(network, "memory0", "memory2") == ["cpu0", "cpu2", "memory2"]


SMALL = nvswitch_host(n_gpus=2, n_nics=2, n_pcie_switches=2, n_cpus=1)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(n_leaves=st.integers(1, 3), per_leaf=st.integers(1, 3), n_gpus=st.sampled_from([1, 2, 4]))
def test_there_is_one_machine_for_every_few_ports(n_leaves, per_leaf, n_gpus):
    machine = pcie_host(n_gpus=n_gpus, n_nics=1, n_pcie_switches=1, n_cpus=1)
    fabric = leaf_spine(n_leaves, 2, per_leaf)
    network = attach_machines(fabric, machine)
    n = n_leaves * per_leaf
    assert network.n_nodes == n * machine.n_nodes + n_leaves + 2
    assert network.n_links == n * machine.n_links + fabric.n_links
    assert network.endpoints.tolist() == list(range(n * n_gpus))
    assert network.nodes[: n_gpus + 1] == (*(f"m0.gpu{g}" for g in range(n_gpus)), "m1.gpu0" if n > 1 else "m0.nic0")
    assert np.bincount(network.machine + 1).tolist() == [n_leaves + 2, *[machine.n_nodes] * n]
    assert network.is_cabled
    assert measure(network).no_path is None


def test_a_port_keeps_the_rate_of_the_fabric_and_an_inside_that_of_the_machine():
    network = attach_machines(star(4, bandwidth=3e9, latency=2e-6), SMALL)
    at_switch = network.dst == network.nodes.index("switch0")
    assert (network.bandwidth[at_switch] == 3e9).all()
    assert (network.latency[at_switch] == 2e-6).all()
    assert (network.kind[network.src[at_switch]] == NIC).all()
    inside = network.machine[network.src] == network.machine[network.dst]
    assert sorted(network.bandwidth[inside]) == sorted([*SMALL.bandwidth] * 2)


@pytest.mark.parametrize("routing", ["ecmp", "shortest", "spray"])
@pytest.mark.parametrize("machine", [SMALL, pcie_host(n_gpus=4, n_nics=2), nvswitch_host(n_pcie_switches=4)])
def test_traffic_inside_a_machine_never_leaves_it_and_other_traffic_uses_the_nearest_nic(machine, routing):
    n_nics = int((machine.kind == NIC).sum())
    network = attach_machines(fat_tree(4) if n_nics < 8 else leaf_spine(2, 2, 8), machine)
    per = len(machine.endpoints)
    n = len(network.endpoints)
    src, dst = (i.ravel() for i in np.meshgrid(np.arange(n), np.arange(n)))
    routes = find_routes(network, src, dst, routing=routing)
    route = np.repeat(np.arange(len(src)), np.diff(routes.first))
    owner = network.machine[network.dst[routes.link]]
    same = network.machine[src] == network.machine[dst]
    assert (owner == network.machine[src][route])[same[route]].all()
    for end, ends, of in ((src, network.src, routes.link), (dst, network.dst, routes.link)):
        mine = (
            (network.kind[ends[of]] == NIC) & (network.machine[ends[of]] == network.machine[end[route]]) & ~same[route]
        )
        number = np.array([int(network.nodes[node].rpartition("nic")[2]) for node in ends[of][mine]])
        assert (number == end[route][mine] % per * n_nics // per).all()


def test_ports_say_which_nic_is_where():
    network = attach_machines(leaf_spine(2, 1, 2), SMALL, ports=[[0, 2], [1, 3]])
    leaf = {network.nodes[a]: network.nodes[b] for a, b in zip(network.src, network.dst, strict=True)
            if network.nodes[b].startswith("leaf") and network.kind[a] == NIC}  # fmt: skip
    assert leaf == {"m0.nic0": "leaf0", "m0.nic1": "leaf1", "m1.nic0": "leaf0", "m1.nic1": "leaf1"}


def test_coordinates_of_a_fabric_go_to_the_nics_and_the_first_one_s_to_the_rest():
    fabric = Network("f", ("a", "b", "s"), [0, 0, 1], [0, 1, 2, 2], [2, 2, 0, 1], 1.0, 0.0, coordinates=[[5], [6], [7]])
    network = attach_machines(fabric, SMALL)
    at = dict(zip(network.nodes, network.coordinates[:, 0].tolist(), strict=True))
    assert (at["m0.nic0"], at["m0.nic1"], at["s"]) == (5, 6, 7)
    assert {at[name] for name in at if name not in ("m0.nic1", "s")} == {5}


def test_hosts_that_forward_become_nics_that_do():
    network = attach_machines(ring(6), SMALL)
    assert measure(network).no_path is None


@pytest.mark.parametrize(
    ("fabric", "machine", "ports", "message"),
    [
        (
            star(3),
            SMALL,
            None,
            r"star:.* has 3 ports for hosts, which is not a multiple of the 2 NICs of nvswitch_host:",
        ),
        (star(4), nvswitch_host(n_nics=0), None, "nvswitch_host:.* has no NIC and cannot be attached to star"),
        (SMALL, SMALL, None, "nvswitch_host:.* cannot join machines: gpu0 is a gpu, not a host or a switch"),
        (star(4), SMALL, [[0, 1], [1, 2]], "ports must name each of the 4 hosts of star:.* exactly once"),
        (star(4), SMALL, [[0, 1]], "ports must name each of the 4 hosts"),
    ],
)
def test_what_does_not_fit_together_is_refused(fabric, machine, ports, message):
    with pytest.raises(InputError, match=message):
        attach_machines(fabric, machine, ports)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_it_reads_back_exactly_as_it_was_saved(tmp_path, suffix):
    network = attach_machines(leaf_spine(2, 2, 2, uplink_bandwidth=5e9), SMALL)
    save(network, tmp_path / f"x{suffix}")
    assert read_network(tmp_path / f"x{suffix}") == network
