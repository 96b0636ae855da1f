import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.prediction.collective_names import (
    LIBRARIES,
    USUAL,
    require_operation,
    spelled_out,
    usual_collective,
    why_not_here,
)
from commsim.prediction.inputs import load_network


@pytest.mark.parametrize("operation", [name for name in USUAL if f"nccl_{name}" in COLLECTIVES])
def test_on_nvidia_s_machines_nccl_is_usual_and_on_plain_hosts_a_textbook_s(operation):
    spec, told = usual_collective(load_network("dgx-h100"), operation)
    assert spec == f"nccl_{operation}"
    assert (told.code, told.needed) == ("usual", False)
    assert usual_collective(load_network("star:n_hosts=4"), operation) == (USUAL[operation], None)
    assert usual_collective(load_network("nvswitch_host"), operation) == (USUAL[operation], None)


def test_on_amd_s_machines_it_is_said_whether_rccl_is_modelled():
    spec, told = usual_collective(load_network("mi300x"))
    assert spec == ("rccl_all_reduce" if "rccl_all_reduce" in COLLECTIVES else "ring_all_reduce")
    assert "RCCL" in told.text


def test_the_facts_of_a_machine_decide_wherever_it_stands():
    for text in ("rail_optimized:n_hosts=2", "alps@star:machines=2", "nvswitch_host:gpu=blackwell"):
        assert usual_collective(load_network(text))[0] == "nccl_all_reduce"


def test_a_library_s_name_stands_for_its_collective_of_the_operation():
    assert spelled_out("nccl", None) == "nccl_all_reduce"
    assert spelled_out("nccl:version=2.27,channels=4", "all_gather") == "nccl_all_gather:version=2.27,channels=4"
    assert spelled_out("ring_all_reduce", "all_gather") == "ring_all_reduce"
    assert spelled_out("nccl_tuned", None) == "nccl_tuned"


def test_a_name_without_the_operation_is_spelled_out_by_it():
    """ring was unknown under --operation all_gather, and ring_all_reduce among those that may have been meant."""
    assert spelled_out("ring", "all_gather") == "ring_all_gather"
    assert spelled_out("double_tree:n_chunks=4", "all_reduce") == "double_tree_all_reduce:n_chunks=4"
    assert spelled_out("ring", None) == "ring_all_reduce"
    assert spelled_out("torus:dims=2x2", None) == "torus_all_reduce:dims=2x2"
    assert spelled_out("pairwise", None) == "pairwise"
    with pytest.raises(
        InputError, match=r"^unknown algorithm of all_to_all 'ring'; known: bruck_all_to_all, direct_all"
    ):
        require_operation("ring", "all_to_all")
    with pytest.raises(
        InputError, match=r"of all_reduce 'tree'; did you mean binomial_tree_all_reduce or double_tree_all"
    ):
        require_operation("tree", "all_reduce")


def test_a_library_runs_only_on_the_gpus_of_its_maker():
    nvidia, plain = load_network("dgx-h100"), load_network("star:n_hosts=4")
    of_library, of_anybody = {"needs": ("nccl",)}, {"needs": ("groups",)}
    for maker, library in LIBRARIES.items():
        assert (not why_not_here(of_library, f"{library}_all_reduce", nvidia)) == (maker == "nvidia")
        assert why_not_here(of_library, f"{library}_all_reduce", plain)
    assert not why_not_here(of_anybody, "hierarchical_all_reduce", plain)


def test_an_operation_that_a_library_does_not_have_is_refused():
    with pytest.raises(InputError, match="NCCL has no barrier; it has all_gather, all_reduce, "):
        spelled_out("nccl", "barrier")


def test_an_operation_without_a_usual_algorithm_is_refused():
    with pytest.raises(InputError, match="all_gather_v has no usual algorithm here"):
        usual_collective(load_network("star:n_hosts=4"), "all_gather_v")


@pytest.mark.parametrize("name", ["ncl", "ncll", "NCCLL"])
def test_a_name_like_that_of_a_library_is_answered_with_it(name):
    with pytest.raises(InputError, match=rf"unknown collective '{name}'; did you mean nccl\?"):
        spelled_out(name, "all_reduce")


@pytest.mark.parametrize(("key", "hint"), [("machine", "did you mean machines[?] "), ("foo", "")])
def test_the_known_parameters_of_a_fabric_under_machines_have_their_number(key, hint):
    with pytest.raises(InputError, match=f"star has no parameter '{key}'; {hint}known: machines, n_hosts"):
        load_network(f"dgx-h100@star:{key}=2")


def test_the_alias_of_a_library_takes_the_operation():
    """`nccl:operation=all_to_all` was refused with "did you mean version?"."""
    assert spelled_out("nccl:operation=all_to_all", None) == "nccl_all_to_all"
    assert spelled_out("nccl:version=2.27, operation=broadcast", "broadcast") == "nccl_broadcast:version=2.27"
    with pytest.raises(InputError, match=r"names another operation than all_reduce: give only one"):
        spelled_out("nccl:operation=all_to_all", "all_reduce")
    with pytest.raises(InputError, match=r"unknown operation 'alltoall'; did you mean all_to_all"):
        spelled_out("nccl:operation=alltoall", None)
