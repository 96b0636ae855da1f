"""RCCL's choice over several machines: trees far beyond NCCL's sizes, protocols by size, and its own estimate."""

import pytest

from commsim.nccl.rccl_choice import choice_of, rccl_choices
from commsim.prediction.build import prepare

RATE = 336e9


def cell(generation, size, n_machines=2, operation="all_reduce", cpu="intel"):
    return rccl_choices()[generation].cell(operation, size, 8 * n_machines, n_machines, RATE, cpu)


def test_an_all_reduce_on_two_machines_takes_trees_with_three_protocols_and_then_a_ring():
    taken = [cell("cdna3", 2**k, cpu="amd") for k in range(10, 31)]
    assert list(dict.fromkeys(taken)) == [("tree", "ll"), ("tree", "ll128"), ("tree", "simple"), ("ring", "simple")]
    assert cell("cdna3", 2**18) == ("tree", "ll")
    assert [cell("cdna3", 2**19, cpu=cpu)[0] for cpu in ("intel", "amd")] == ["ring", "tree"]  # posts of 1 and 2 us
    assert [cell("cdna3", 2**k) for k in (20, 22, 23)] == [("tree", "ll128"), ("tree", "ll128"), ("tree", "simple")]
    assert cell("cdna3", 2**26) == ("tree", "simple")
    assert cell("cdna3", 2**28) == ("ring", "simple")


def test_limits_of_other_operations_are_of_a_rank_and_they_have_no_trees():
    assert cell("cdna3", 16 * 98304, operation="all_gather") == ("ring", "ll")
    assert cell("cdna3", 16 * 98304 + 16, operation="all_gather") == ("ring", "ll128")
    assert cell("cdna4", 16 * 8388608 + 16, operation="reduce_scatter") == ("ring", "simple")
    assert cell("cdna4", 16 * 65536 + 16, operation="reduce_scatter") == ("ring", "ll128")


def test_on_more_than_two_machines_ll128_goes_further():
    limit = rccl_choices()["cdna3"].protocols["all_reduce"][2]
    assert cell("cdna3", limit + 1)[1] == "simple"
    assert cell("cdna3", limit + 1, n_machines=4)[1] == "ll128"
    assert cell("cdna3", int(3.8 * limit) + 1, n_machines=4)[1] == "simple"


def test_without_limits_the_protocol_is_the_fastest():
    assert cell("cdna2", 2**16, n_machines=4)[1] != "simple"
    assert cell("cdna2", 2**24, n_machines=4) == ("tree", "simple")
    assert cell("cdna2", 2**30, n_machines=4) == ("ring", "simple")


def test_a_ring_crosses_once_for_each_machine_but_one_and_an_all_reduce_twice():
    """With a crossing more for each turn a tree would be expected to be faster here."""
    assert cell("cdna3", 320 * 2**20, n_machines=4) == ("ring", "simple")
    assert cell("cdna3", 300 * 2**20, n_machines=4) == ("tree", "simple")


def test_nics_behind_the_cpu_leave_no_ll128():
    """RCCL has another row for 8 dies with 4 NICs (Frontier, LUMI) than for 16 with 8."""
    sizes = [2**k for k in range(10, 33)]
    taken = {
        dies: {choice_of("cdna2", dies).cell("all_reduce", size, 4 * dies, 4, RATE, "amd")[1] for size in sizes}
        for dies in (8, 16)
    }
    assert taken == {8: {"ll", "simple"}, 16: {"ll", "ll128", "simple"}}
    here = prepare("rccl_all_reduce", "mi250x@star:machines=4").launch
    assert [here.parameters(2**k)["protocol"] for k in (20, 21)] == ["ll", "simple"]


@pytest.mark.parametrize("cpu", ["intel", "amd", "other"])
def test_rings_wait_for_posts_of_the_cpu(cpu):
    sizes = [2**k for k in range(20, 31)]
    rings = sum(cell("cdna3", size, cpu=cpu)[0] == "ring" for size in sizes)
    assert rings <= sum(cell("cdna3", size, cpu="intel")[0] == "ring" for size in sizes)


def test_the_launch_takes_it_unless_the_user_says():
    here = prepare("rccl_all_reduce", "mi300x@star:machines=2").launch
    assert (here.parameters(2**22)["algorithm"], here.parameters(2**22)["protocol"]) == ("tree", "ll128")
    ring = prepare("rccl_all_reduce:algorithm=ring,protocol=ll", "mi300x@star:machines=2").launch.parameters(2**22)
    assert (ring["algorithm"], ring["protocol"]) == ("ring", "ll")
    half = prepare("rccl_all_gather", "mi300x@star:machines=2").launch.parameters(2**30)
    assert half["protocol"] == "simple"
