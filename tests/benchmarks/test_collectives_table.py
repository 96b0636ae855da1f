import json
from pathlib import Path

import pytest
from under_mpiexec import under_mpiexec


@pytest.mark.mpi
def test_the_table_has_native_ours_and_predicted(calibrated, tmp_path: Path) -> None:
    table, network = tmp_path / "rows.json", str(calibrated[1])
    flags = ("-b", "1K", "-e", "4K", "-f", "2", "-n", "1", "-w", "1", "--network", network, "--json", str(table))
    done = under_mpiexec(
        2, "-m", "benchmarks.mpi.collectives", *flags, "--collective", "ring_all_reduce", "--backend", "mpi"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    header = next(line for line in lines if "native(us)" in line).split()
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0].isdecimal()]
    assert [row[0] for row in rows] == ["1024", "2048", "4096"]
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        assert float(cells["ours(us)"]) > 0
        assert float(cells["native(us)"]) > 0
        assert float(cells["predicted(us)"]) > 0
        assert row[2:5] == ["float", "sum", "-1"]
    assert "# Out of bounds values : 0 OK" in lines
    assert len(json.loads(table.read_text())["results"]) == 3


@pytest.mark.mpi
def test_bad_input_gets_one_line_and_exit_code_2() -> None:
    done = under_mpiexec(2, "-m", "benchmarks.mpi.collectives", "-b", "1K", "-e", "1")
    assert done.returncode == 2
    assert done.stderr.count("benchmarks.mpi.collectives: error: -e must not be smaller than -b") >= 1
    assert "Traceback" not in done.stderr
