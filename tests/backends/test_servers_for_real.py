from pathlib import Path

import pytest
from under_mpiexec import under_mpiexec

PROGRAM = str(Path(__file__).with_name("run_servers.py"))


@pytest.mark.mpi
@pytest.mark.parametrize(("n_processes", "ways"), [(2, 3), (4, 9), (8, 23)])
def test_servers_give_the_bits_of_the_reference_over_mpi(n_processes: int, ways: int) -> None:
    done = under_mpiexec(n_processes, PROGRAM, timeout=300.0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{n_processes} processes, {ways} ways: all right" in done.stdout
