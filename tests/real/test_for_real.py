import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from under_mpiexec import under_mpiexec

from commsim.sparse.generate import drawn_gradients, drawn_occupancy

PROGRAM = str(Path(__file__).with_name("run_collectives.py"))
SOME = ("ring_all_reduce", "double_tree_all_reduce", "direct_all_to_all")


@pytest.mark.mpi
@pytest.mark.parametrize("n_ranks", [3, *(pytest.param(n, marks=pytest.mark.deep) for n in (1, 2, 4, 7))])
def test_every_collective_gives_the_bits_of_the_reference_over_mpi(n_ranks: int) -> None:
    waits = "sleep" if n_ranks > 2 else ""  # two ranks wait as usual: for each other, with a core each
    done = under_mpiexec(n_ranks, PROGRAM, "mpi", COMMSIM_MPI_WAIT=waits)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"mpi, {n_ranks} ranks: all right" in done.stdout


@pytest.mark.mpi
@pytest.mark.torch
@pytest.mark.parametrize("n_ranks", [3, *(pytest.param(n, marks=pytest.mark.deep) for n in (1, 2, 4))])
def test_collectives_give_the_bits_of_the_reference_over_gloo_also_in_groups_as_nccl_needs_them(n_ranks: int) -> None:
    pytest.importorskip("torch")
    done = under_mpiexec(n_ranks, PROGRAM, "gloo,groups", *SOME)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"gloo, {n_ranks} ranks: all right" in done.stdout
    assert f"groups, {n_ranks} ranks: all right" in done.stdout


SERVERS = str(Path(__file__).with_name("run_servers.py"))


@pytest.mark.mpi
@pytest.mark.parametrize(("n_processes", "ways"), [(2, 3), (4, 9), pytest.param(8, 23, marks=pytest.mark.deep)])
def test_servers_give_the_bits_of_the_reference_over_mpi(n_processes: int, ways: int) -> None:
    done = under_mpiexec(n_processes, SERVERS, timeout=300.0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{n_processes} processes, {ways} ways: all right" in done.stdout


def small_gradients(tmp_path: Path, n_ranks: int) -> Path:
    """Write gradients as those of an embedding: few rows, and popular ones more often."""
    rows = drawn_occupancy(n_ranks, 40_000, density=0.02, block=16, pattern="zipf")
    path = tmp_path / "gradients.npy"
    np.save(path, drawn_gradients(rows))
    return path


@pytest.mark.mpi
@pytest.mark.parametrize("n_ranks", [2, 4, pytest.param(8, marks=pytest.mark.deep)])
def test_every_lossless_sparse_collective_is_right_over_mpi_and_sends_the_bytes_predicted(
    n_ranks, tmp_path, calibrated
):
    written = tmp_path / "rows.json"
    gradients = str(small_gradients(tmp_path, n_ranks))
    program = [
        "-m",
        "benchmarks.mpi.sparse_collectives",
        "--gradients",
        gradients,
        "--iterations",
        "1",
        "--json",
        str(written),
    ]
    if n_ranks > 2:  # where processes share cores, predictions have no claim, and measuring for them takes long
        program.append("--unpredicted")
    else:
        program += ["--network", str(calibrated[1])]
    done = under_mpiexec(n_ranks, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["collective"]: row for row in json.loads(written.read_text())["results"]}
    assert {"agsparse", "sparcml_ssar", "sparcml_split", "sparcml_dsar", "zen", "omnireduce:colocated=True"} <= set(
        rows
    )
    assert all(row["n_wrong"] == 0 and row["time"] > 0 for row in rows.values())
    assert all(row["n_bytes"] == row["predicted_bytes"] for row in rows.values())
    assert all((row["predicted"] is None) == (n_ranks > 2) for row in rows.values())
    assert ("omnireduce:n_partitions=8" in rows) == (n_ranks > 2)  # which needs a process for its aggregator
    assert rows["zen"]["n_bytes"] < rows["ring_all_reduce (dense)"]["n_bytes"]


@pytest.mark.mpi
def test_gradients_that_are_not_finite_end_all_processes(tmp_path):
    gradients = np.ones((2, 100), np.float32)
    gradients[1, 5] = np.nan
    np.save(tmp_path / "g.npy", gradients)
    done = under_mpiexec(2, "-m", "benchmarks.mpi.sparse_collectives", "--gradients", str(tmp_path / "g.npy"))
    assert done.returncode == 2
    assert "rank 1: values must be finite, got nan at index 5" in done.stderr
    assert "Traceback" not in done.stderr


OPEN_MPI = shutil.which("mpirun.openmpi")


@pytest.mark.mpi
@pytest.mark.skipif(OPEN_MPI is None, reason="Open MPI is not installed")
def test_validate_runs_over_open_mpi_which_binds_each_rank_to_a_core() -> None:
    command = ("validate", "mpi", "--collective", "ring_all_reduce", "-b", "64K", "-e", "64K", "-n", "1")
    environment = {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": "libmpi.so.40", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    done = under_mpiexec(2, "-m", "commsim", *command, program=OPEN_MPI, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ring_all_reduce") == 1
    assert len(os.sched_getaffinity(0)) < 2 or "oversubscribed" not in done.stdout
