"""Tables that were made with known costs are predicted exactly from each other; what is not known is named."""

import json

import pytest

from benchmarks.accuracy.mpi_tables import Costs, costs_for, main, predicted, read_tables, time_by

INDEX = "id,machine,n_hosts,nccl_version,operation,forced_algo\n"
TRUE = Costs(2e-6, 1e-10, 3e-10, "")
SIZES = (4, 1024, 2**16, 2**24)
TABLES = {
    "ar_ring": ("all_reduce", "MPI ring", "ring_all_reduce"),
    "ar_rd": ("all_reduce", "MPI recursive doubling", "recursive_doubling_all_reduce"),
    "ag_ring": ("all_gather", "MPI ring", "ring_all_gather"),
    "a2a_lin": ("alltoall", "MPI linear", "direct_all_to_all"),
    "a2a_pair": ("alltoall", "MPI pairwise", "pairwise_all_to_all"),
}


def folder(tmp_path, names=tuple(TABLES), extra=""):
    lines = [f"{name},a machine,8,Open MPI (not NCCL),{TABLES[name][0]},{TABLES[name][1]}\n" for name in names]
    (tmp_path / "index.csv").write_text(INDEX + "".join(lines) + extra)
    for name in names:
        times = [f"{size},{time_by(TABLES[name][2], 8, TRUE, size) * 1e6!r}\n" for size in SIZES]
        (tmp_path / f"{name}.csv").write_text("size_bytes,time_us\n" + "".join(times))
    return tmp_path


def test_costs_that_a_line_has_come_back_from_other_tables(tmp_path):
    tables = {table.id: table for table in read_tables(folder(tmp_path))}
    found = {name: costs_for(table, list(tables.values())) for name, table in tables.items()}
    assert found["ar_ring"].source == "a2a_pair, gamma ar_rd"
    assert found["ar_rd"].source == "ag_ring, gamma ar_ring"
    assert found["a2a_pair"].source == "ag_ring"  # linear all-to-all is no reference
    for name, costs in found.items():
        assert (costs.alpha, costs.beta) == pytest.approx((TRUE.alpha, TRUE.beta), rel=1e-6)
        assert costs.gamma == pytest.approx(TRUE.gamma if name.startswith("ar") else 0.0, rel=1e-6)


def test_all_rows_are_predicted_and_short_ones_are_marked(tmp_path):
    rows, absent = predicted(read_tables(folder(tmp_path)))
    assert not absent
    assert len(rows) == len(TABLES) * len(SIZES)
    assert max(abs(row.error) for row in rows) < 1e-6
    assert {row.size for row in rows if row.short} == {4}


def test_a_table_never_gives_its_own_costs(tmp_path):
    path = folder(tmp_path)
    wrong = path / "ar_ring.csv"
    wrong.write_text("size_bytes,time_us\n1024,1\n65536,1\n16777216,1\n")
    rows, _ = predicted(read_tables(path))
    ring = time_by("ring_all_reduce", 8, TRUE, 2**16)
    assert next(row for row in rows if (row.id, row.size) == ("ar_ring", 2**16)).predicted == pytest.approx(ring)


def test_what_cannot_be_predicted_is_named_and_counted(tmp_path, capsys):
    extra = "tofu,a machine,8,Fujitsu MPI (not NCCL),all_reduce,Tofu trinaryx6\n"
    extra += "alone,another,8,MPICH (not NCCL),all_gather,MPI ring\nnccl,a machine,8,2.27,all_reduce,Ring\n"
    path = folder(tmp_path, ("ar_ring", "ag_ring"), extra)
    for name in ("tofu", "alone"):
        (path / f"{name}.csv").write_text("size_bytes,time_us\n1024,1\n")
    assert main(["--data", str(path), "--json", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert "tofu: no schedule of this algorithm: Tofu trinaryx6" in out
    assert "alone: no other algorithm's table of this system" in out
    tree = json.loads((tmp_path / "out.json").read_text())
    assert set(tree["unknown"]) == {"tofu", "alone", "ar_ring", "ag_ring"}  # both are rings


def test_a_folder_without_tables_is_refused(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 2
    assert "index.csv" in capsys.readouterr().err
