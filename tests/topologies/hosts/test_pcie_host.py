import pytest

from commsim.core.network import MEMORY
from commsim.core.placement import place
from commsim.routing.bisection import bisection_bandwidth
from commsim.routing.routing import find_routes
from topologies.hosts.cpu_host import cpu_host
from topologies.hosts.pcie_host import pcie_host


def path(machine, src, dst):
    routes = find_routes(machine, machine.nodes.index(src), machine.nodes.index(dst))
    return [machine.nodes[machine.dst[link]] for link in routes.link]


def test_gpus_of_one_switch_meet_there_and_others_at_the_sockets():
    machine = pcie_host()
    assert path(machine, "gpu0", "gpu3") == ["pcie0", "gpu3"]
    assert path(machine, "gpu0", "gpu4") == ["pcie0", "cpu0", "cpu1", "pcie1", "gpu4"]
    assert path(pcie_host(n_pcie_switches=4), "gpu0", "gpu2") == ["pcie0", "cpu0", "pcie1", "gpu2"]
    assert path(pcie_host(n_pcie_switches=0), "gpu0", "gpu3") == ["cpu0", "gpu3"]


def test_halves_of_the_gpus_are_joined_by_what_joins_the_sockets():
    pytest.importorskip("scipy")
    machine = pcie_host(inter_cpu=10e9, pcie=24e9)
    assert bisection_bandwidth(machine) == pytest.approx(10e9)
    assert bisection_bandwidth(pcie_host(inter_cpu=40e9, pcie=24e9)) == pytest.approx(24e9)


def test_gpus_without_a_nic_under_their_switch_cross_the_socket_to_the_nearest_one():
    assert path(pcie_host(n_pcie_switches=4), "gpu0", "nic0") == ["pcie0", "cpu0", "pcie1", "nic0"]


def test_staging_goes_to_the_memory_of_the_own_socket():
    machine = pcie_host()
    assert path(machine, "gpu0", "memory0") == ["pcie0", "cpu0", "memory0"]
    assert path(machine, "gpu7", "memory0") == ["pcie1", "cpu1", "cpu0", "memory0"]


def test_ranks_sit_on_the_memories():
    machine = cpu_host(n_cpus=2, n_nics=2)
    assert (machine.kind[machine.endpoints] == MEMORY).all()
    place(machine, 2).check(machine, 2)
