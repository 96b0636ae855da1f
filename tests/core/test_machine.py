import numpy as np
import pytest

from commsim.core.machine import Parts
from commsim.core.node_kind import CPU, GPU, MEMORY, NIC, SWITCH
from commsim.core.routes.routing import find_routes

pytestmark = pytest.mark.nojit


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
    parts.join_gpus(100.0)
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
