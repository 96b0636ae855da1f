from pathlib import Path

import pytest
from under_mpiexec import under_mpiexec

PROGRAM = str(Path(__file__).with_name("run_collectives.py"))
SOME = ("ring_all_reduce", "double_tree_all_reduce", "direct_all_to_all")


@pytest.mark.mpi
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4, 7])
def test_every_collective_gives_the_bits_of_the_reference_over_mpi(n_ranks: int) -> None:
    done = under_mpiexec(n_ranks, PROGRAM, "mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"mpi, {n_ranks} ranks: all right" in done.stdout


@pytest.mark.mpi
@pytest.mark.torch
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4])
def test_collectives_give_the_bits_of_the_reference_over_gloo(n_ranks: int) -> None:
    pytest.importorskip("torch")
    done = under_mpiexec(n_ranks, PROGRAM, "gloo", *SOME)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"gloo, {n_ranks} ranks: all right" in done.stdout


@pytest.mark.mpi
@pytest.mark.torch
def test_messages_may_be_posted_in_groups_as_nccl_needs_them() -> None:
    pytest.importorskip("torch")
    done = under_mpiexec(3, PROGRAM, "groups", *SOME)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 ranks: all right" in done.stdout
