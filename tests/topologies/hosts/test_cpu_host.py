from commsim.core.network import MEMORY
from commsim.core.placement import place
from topologies.hosts.cpu_host import cpu_host


def test_ranks_sit_on_the_memories():
    machine = cpu_host(n_cpus=2, n_nics=2)
    assert (machine.kind[machine.endpoints] == MEMORY).all()
    place(machine, 2).check(machine, 2)


def test_helpers_take_memories_from_ranks_where_ranks_sit_on_memories():
    machine = cpu_host(n_cpus=4, n_nics=0)
    place(machine, 4, n_helpers=1).check(machine, 3, 1)
