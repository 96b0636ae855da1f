import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from under_mpiexec import ROOT, under_mpiexec

from benchmarks.mpi import replay
from commsim.core.files.network_file import read_own
from commsim.core.files.store import read_network, save
from commsim.core.limits import EXPECTED
from commsim.core.program import Program
from commsim.core.result import Result
from commsim.real.cli import calibrate, validate
from commsim.real.validate import ValidationRow, about_sums, summary_of
from commsim.report.answer import Lines, Table


@pytest.mark.mpi
def test_calibrate_writes_a_network_with_which_validate_predicts(calibrated, tmp_path: Path) -> None:
    (done, network), table = calibrated, tmp_path / "rows.json"
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("copy 1way") == 1  # one rank prints
    written = read_network(network)
    assert len(written.hosts) == 2
    assert written.curves is not None
    assert re.search(r"2 ranks of mpi \((MPICH|Open MPI) [\d.]+\)$", written.curves.machine)

    sizes = ("-b", "64K", "-e", "256K", "-f", "2", "-n", "4", "-w", "1")
    names = ("--collective", "ring_all_reduce", "--collective", "binomial_broadcast:root=1")
    done = under_mpiexec(
        2, "-m", "commsim", "validate", "mpi", "--network", str(network), *names, *sizes, "--json", str(table)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tree = json.loads(table.read_text())
    assert tree["schema"] == 1
    assert [(r["collective"], r["size_B"]) for r in tree["results"]] == [
        (name, size) for name in ("ring_all_reduce", "binomial_broadcast") for size in (65536, 131072, 262144)
    ]
    for row in tree["results"]:
        assert row["predicted_s"] > 0
        assert row["error"] == pytest.approx(row["predicted_s"] / row["time_s"] - 1)
        assert row["native_s"] > 0
        assert row["counters"]["wrong"] == 0
        # Small sizes three times in each of 4 passes, of which up to half are left out where other work disturbed them.
        assert row["n_samples"] in (2 * 3, 3 * 3, 4 * 3)
        assert row["low_s"] <= row["predicted_s"] <= row["high_s"]
    assert "another machine" not in done.stdout
    again = replay.errors_of(tree, read_own(tree["network"], table))
    assert list(again.values()) == pytest.approx([row["error"] for row in tree["results"]])
    other = tmp_path / "other.toml"
    other.write_text(network.read_text().replace(written.curves.machine, "another processor"))
    done = under_mpiexec(2, "-m", "commsim", "validate", "mpi", "--network", str(other), *names[:2], *sizes)
    assert "# MARKED: calibrated on another machine (another processor) than this" in done.stdout


@pytest.mark.mpi
def test_validate_runs_a_schedule_s_file_and_refuses_one_for_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "gather.npz"
    program = Program(2, 2)
    program.copy([0, 1], src=[0, 1], dst=[1, 0], channel=[0, 1])
    save(program.build("exchange", "all_gather", weights=[2.0, 1.0]), path)
    command = ("-m", "commsim", "validate", "mpi", "--collective", str(path), "-b", "64K", "-e", "64K", "-n", "1")
    done = under_mpiexec(2, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exchange" in done.stdout
    done = under_mpiexec(1, *command)
    assert done.returncode == 2
    assert "is for 2 processes (mpirun -n 2), and 1 are running" in done.stderr


@pytest.mark.mpi
@pytest.mark.torch
@pytest.mark.parametrize(
    ("network", "against"), [(True, "mpi"), pytest.param(False, "gloo", marks=pytest.mark.deep)], ids=["given", "now"]
)
def test_validate_torch_prints_its_table_once_and_says_what_it_does_not_count(network, against, calibrated) -> None:
    pytest.importorskip("torch")
    command = ("validate", "torch", "--collective", "ring_all_gather", "-b", "64K", "-e", "64K", "-n", "1")
    given = ("--network", str(calibrated[1])) if network else ()  # or it calibrates, as a test above does over MPI
    done = under_mpiexec(2, "-m", "commsim", *command, *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ring_all_gather") == 1
    assert f"# 2 ranks over gloo, against 2 ranks of {against}" in done.stdout


@pytest.mark.mpi
def test_one_rank_is_legal_for_validate_and_has_no_error() -> None:
    done = under_mpiexec(
        1, "-m", "commsim", "validate", "mpi", "--collective", "ring_all_reduce", "-b", "1K", "-e", "1K"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a single rank" in done.stdout


REFUSED = {
    "calibrate --passes 0": "--passes must be at least 1, got 0",
    "calibrate -o here.txt": "-o must end with one of .toml, .json, .npz, got here.txt",
    "validate mpi --collective rnig_all_reduce": "did you mean ring_all_reduce?",
    "validate mpi --network missing.toml": "missing.toml",
    "validate mpi --library lam": "unknown library 'lam'; known: mpich, open-mpi",
    "validate mpi --library mpich --collective ring_all_reduce": "--library chooses the algorithms",
    "validate mpi -b 0": "-b must be a whole number of bytes, at least 1, got '0'",
    "validate nccl": "nccl",
}
# One after the other, since starting MPI takes longer than all of them.
REFUSING = """
import sys
from commsim.cli import main

for line in sys.argv[1:]:
    try:
        code = main(line.split())
    except SystemExit as stop:
        code = stop.code
    assert code == 2, (line, code)
"""


@pytest.mark.mpi
def test_bad_input_gets_one_line_of_all_ranks() -> None:
    done = under_mpiexec(2, "-c", REFUSING, *REFUSED, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("commsim ")]
    for line, message in zip(lines, REFUSED.values(), strict=True):
        assert message in line
    assert "Traceback" not in done.stderr


@pytest.mark.mpi
def test_too_few_ranks_are_one_line_and_exit_code_2() -> None:
    done = under_mpiexec(1, "-m", "commsim", "calibrate")
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("commsim ")]
    assert "commsim calibrate: error: at least 2 ranks are needed and 1 is running" in line
    assert "Traceback" not in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("backend", ["mpi", "torch"])
def test_a_missing_library_gets_one_line(tmp_path: Path, backend: str) -> None:
    module = {"mpi": "mpi4py", "torch": "torch"}[backend]
    (tmp_path / f"{module}.py").write_text("raise ImportError('it is not there')\n")
    done = under_mpiexec(2, "-m", "commsim", "validate", backend, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("commsim ")]
    assert len(lines) == 1, done.stderr
    assert "cannot be loaded (it is not there): pip install 'commsim[" in lines[0]


@pytest.mark.mpi
def test_an_mpirun_of_another_mpi_is_recognised() -> None:
    command = [sys.executable, "-m", "commsim", "validate", "mpi"]
    environment = {**os.environ, "OMPI_COMM_WORLD_SIZE": "4"}  # what that mpirun would leave for each process
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "mpirun started 4 processes, but the MPI that mpi4py has loaded sees only 1" in done.stderr


def rows_of(*names: str, n_wrong: int = 0) -> list[ValidationRow]:
    found = []
    for name in names:
        samples = [4102.9e-6, 4200e-6]
        ours = Result(
            name, "all_reduce", "mpi", 2, 2**24, 4151e-6, 4151e-6, samples=samples, counters={"wrong": n_wrong}
        )
        predicted = Result(name, "all_reduce", "flow", 2, 2**24, 3954e-6, 3954e-6, interval=(3000e-6, 4000e-6))
        found.append(ValidationRow(ours, ours, predicted, oversubscribed=False))
    return found


def test_the_table_of_validate_fits_80_columns_and_shows_intervals_where_they_are_asked_for() -> None:
    rows = rows_of("halving_doubling_all_reduce", "ring_all_reduce")
    usual, verbose = (validate._table(rows, "", verbose) for verbose in (False, True))
    assert usual.columns == ["collective", "size(B)", "measured", "predicted", "error", "native"]
    assert verbose.columns == validate.VALIDATED
    lines = [usual.columns, *usual.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(usual.columns))]
    assert sum(widths) + 2 * (len(widths) - 1) <= 80
    wrong = validate._table(rows_of("ring_all_reduce", n_wrong=3), "", verbose=False)
    assert wrong.columns[-1] == "#wrong"
    assert wrong.rows[0][-1] == "3"


@pytest.mark.mpi
def test_a_validate_that_is_killed_leaves_the_rows_that_it_measured(tmp_path: Path) -> None:
    table = tmp_path / "rows.json"
    program = (
        "import os, sys, commsim.real.cli.validate as c\n"
        "made = c._keep\n"
        "def keep(*about):\n"
        "    write = made(*about)\n"
        "    return lambda number, rows: (write(number, rows), number == 2 and os._exit(9))\n"
        "c._keep = keep\n"
        "from commsim.cli import main\n"
        f"main('validate mpi --collective ring_all_reduce -b 4K -e 8K -f 2 --json'.split() + [{str(table)!r}])"
    )
    assert under_mpiexec(1, "-c", program).returncode
    tree = json.loads(table.read_text())
    (said,) = tree["remarks"]
    assert said["text"] == "unfinished: 2 of 10 passes were measured, and nothing is predicted yet"
    assert [row["size_B"] for row in tree["results"]] == [4096, 8192]
    assert all(row["time_s"] > 0 and row["predicted_s"] is None for row in tree["results"])


def test_progress_says_of_how_many_passes_and_for_how_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([100.0, 100.2, 103.0, 103.1, 112.0])
    monkeypatch.setattr(calibrate.time, "monotonic", lambda: next(clock))
    progress = calibrate.show_passes(SimpleNamespace(rank=0), "validate", 10)
    progress(0.0)
    progress(0.2)
    assert capsys.readouterr().err == "commsim validate: pass 1 of 10, 3 s of about 150 s\n"
    progress(0.4)
    progress(0.0)
    assert capsys.readouterr().err == "commsim validate: pass 2 of 10, 12 s of about 120 s\n"
    assert EXPECTED.is_shown, "every rank would show a line of its own"


def test_rows_of_ranks_that_share_cores_count_neither_in_errors_nor_in_intervals() -> None:
    alone = rows_of("ring_all_reduce")
    shared = [dataclasses.replace(row, oversubscribed=True) for row in alone]
    assert len(summary_of(alone)) == 2
    assert summary_of(shared) == []
    assert summary_of([*alone, *shared]) == summary_of(alone)
    table, told = validate._parts(shared, None, SimpleNamespace(size=2, name="mpi"), verbose=False)
    assert isinstance(table, Table)
    assert table.rows[0][table.columns.index("error")] != "-"
    assert isinstance(told, Lines)
    assert "the errors of such rows are shown, and no median" in told.texts[-1]
    assert not any(line.startswith("error of") for line in told.texts)


def test_whether_the_sums_were_right_is_said() -> None:
    rows = rows_of("ring_all_reduce")
    assert "0 wrong elements" in about_sums(rows)[0]
    broken = dataclasses.replace(rows[0].ours, counters={"wrong": 3.0})
    assert about_sums([dataclasses.replace(rows[0], ours=broken), *rows[1:]])[0].startswith("WRONG: 1 of")
