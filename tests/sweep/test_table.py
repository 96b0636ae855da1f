import json
import os

import pytest

from commsim.core.errors import InputError
from commsim.sweep import run_sweep
from commsim.sweep.journal import Journal
from commsim.sweep.table import query, read_table, write_table

pytestmark = pytest.mark.nojit
pq = pytest.importorskip("pyarrow.parquet")
KINDS = {"topology.name": "text", "collective.size": "size", "engine.iterations": "whole", "x.flag": "truth"}


def lines(*orders, **more):
    rows = [{"point": f"p{o}", "order": o, "seed": 0, "topology.name": "star", "error": None, "time_s": o / 7, **more}
            for o in orders]  # fmt: skip
    return [json.dumps(row).encode() + b"\n" for row in rows]


@pytest.fixture
def directory(tmp_path):
    about = {"schema": 1, "config_hash": "h", "parameters": KINDS, "provenance": {"seed": 0}}
    (tmp_path / "sweep.json").write_text(json.dumps(about))
    return tmp_path


def orders(directory):
    return read_table(directory).column("order").to_pylist()


def test_rows_are_kept_as_soon_as_they_are_appended_and_sorted_when_they_are_read(directory):
    journal = Journal(directory, KINDS, {})
    journal.append(lines(5, 1))
    journal.append(lines(3))
    assert orders(directory) == [1, 3, 5]
    journal.close()
    assert [p.name for p in directory.glob("part-*")] == ["part-000000.parquet"]
    assert orders(directory) == [1, 3, 5]
    assert read_table(directory).column("time_s").to_pylist() == [1 / 7, 3 / 7, 5 / 7]


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_line_that_was_cut_is_no_row_and_the_next_run_goes_on(directory, cut):
    whole, half = lines(0), lines(1)[0][:-cut]
    (directory / "part-000000.rows").write_bytes(b"".join(whole) + half)
    assert orders(directory) == [0]
    Journal(directory, KINDS, {}).close()
    assert [p.name for p in directory.glob("part-*")] == ["part-000000.parquet"]
    journal = Journal(directory, KINDS, {})
    journal.append(lines(1))
    journal.close()
    assert orders(directory) == [0, 1]


def test_a_writer_killed_between_the_shard_and_its_lines_leaves_no_row_twice(directory):
    journal = Journal(directory, KINDS, {})
    journal.append(lines(0, 1))
    kept = (directory / "part-000000.rows").read_bytes()
    journal.close()
    (directory / "part-000000.rows").write_bytes(kept)
    (directory / ".part-000001.parquet.abc").write_bytes(b"half a shard")
    assert orders(directory) == [0, 1]
    Journal(directory, KINDS, {}).close()
    assert sorted(p.name for p in directory.iterdir()) == ["part-000000.parquet", "sweep.json", "sweep.lock"]


def test_full_shards_are_finished_while_the_sweep_runs(directory, monkeypatch):
    monkeypatch.setattr("commsim.sweep.journal.ROWS_PER_SHARD", 10)
    journal = Journal(directory, KINDS, {"seed": 3})
    for first in range(0, 25, 5):
        journal.append(lines(*range(first, first + 5)))
    assert sorted(p.name for p in directory.glob("part-*")) == [
        "part-000000.parquet", "part-000001.parquet", "part-000002.rows",
    ]  # fmt: skip
    assert orders(directory) == list(range(25))
    journal.close()
    shard = pq.ParquetFile(directory / "part-000001.parquet")
    assert shard.metadata.row_group(0).column(0).compression == "ZSTD"
    assert json.loads(shard.schema_arrow.metadata[b"commsim"]) == {"seed": 3}


def test_two_writers_are_one_too_many(directory):
    journal = Journal(directory, KINDS, {})
    with pytest.raises(InputError, match="another process is running this sweep"):
        Journal(directory, KINDS, {})
    journal.close()
    Journal(directory, KINDS, {}).close()


def test_types_depend_on_names_and_columns_that_only_some_rows_have_are_empty_in_others(directory):
    journal = Journal(directory, KINDS, {})
    journal.append(lines(0, **{"counters.events": 3.0, "n_ranks": 4}))
    journal.append(lines(1, error="bad"))
    journal.close()
    journal = Journal(directory, KINDS, {})
    journal.append(lines(2, **{"engine.iterations": 5, "x.flag": True, "counters.drops": 1.5, "collective.size": 8}))
    journal.close()
    table = read_table(directory)
    assert table.column_names == ["point", "order", "seed", *KINDS, "error", "n_ranks", "time_s", "counters.drops",
                                  "counters.events"]  # fmt: skip
    assert [str(field.type) for field in table.schema] == [
        "string", "int64", "int64", "string", "double", "int64", "bool", "string", "int64", "double", "double",
        "double",
    ]  # fmt: skip
    assert table.column("n_ranks").to_pylist() == [4, None, None]
    assert table.column("x.flag").to_pylist() == [None, None, True]
    assert table.schema.field("collective.size").metadata == {b"unit": b"B"}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("part-000000.parquet", b"no parquet", r"part-000000.parquet: not a readable shard"),
        ("part-000000.rows", b"{}\n", r"part-000000.rows, line 1: no row of a sweep"),
        ("part-000000.rows", b"[" * 10**6 + b"\n", r"part-000000.rows, line 1: no row of a sweep"),
        ("part-000000.rows", b'{"point":"p","order":1,"seed":0,"error":{"a":1}}\n', r"rows: no rows of a sweep"),
        ("part-000000.rows", b'{"point":"p","order":1e99,"seed":0}\n', r"rows: no rows of a sweep"),
        ("part-000000.rows", b'{"point":"p","order":1,"seed":0}\n' * 2, "a point is there twice"),
        ("sweep.json", b"{}", "not the description of a sweep"),
        ("sweep.json", b"[]", "expected a table"),
    ],
)
def test_damaged_files_are_named(directory, name, data, message):
    (directory / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_table(directory)


@pytest.mark.parametrize("parameters", [{"x.a": 3}, {"x.a": "nothing"}, {"point": "text"}])
def test_parameters_of_no_known_kind_are_refused(directory, parameters):
    about = json.loads((directory / "sweep.json").read_text())
    (directory / "sweep.json").write_text(json.dumps(about | {"parameters": parameters}))
    with pytest.raises(InputError, match="is no parameter of one of the kinds truth, whole"):
        read_table(directory)


def test_a_directory_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no sweep is here, it has no sweep.json"):
        read_table(tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        run_sweep(small, tmp_path / "file" / "r", "serial")


@pytest.fixture
def results(small, tmp_path):
    run_sweep(small, tmp_path / "r", "serial")
    return tmp_path / "r"


def test_sql_answers_over_the_table(results):
    pytest.importorskip("duckdb")
    answer = query(results, 'select "collective.name" as name, count(*) as n from sweep group by all order by all')
    assert answer.to_pylist() == [
        {"name": "halving_doubling_all_reduce", "n": 12},
        {"name": "ring_all_reduce", "n": 12},
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('{0}')", "copy sweep to '{0}.out'", "attach '{0}.db'", "install httpfs", "load httpfs",
        "set enable_external_access = true", "export database '{0}.d'", "select * from '{0}'", "selct 1", "",
        "select * from read_text('{0}')", "select * from glob('/*')", "select * from read_parquet('{0}')",
        "select * from read_json('{0}')", "create table x as from '{0}'", "load '{0}'", "from directory", "from table",
        "copy (select 1) to '{0}.gz' (format csv)", "set temp_directory = '{0}.t'", "reset enable_external_access",
        "set python_enable_replacements = true", "import database '{0}'", "select * from sniff_csv('{0}')",
        "select 1; copy sweep to '{0}.out'", "set autoinstall_known_extensions = true", "pragma enable_logging",
    ],
)  # fmt: skip
def test_sql_reads_and_writes_nothing_else(results, tmp_path, sql):
    pytest.importorskip("duckdb")
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with pytest.raises(InputError, match="SQL"):
        query(results, sql.format(other))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.csv", "r"]


def test_what_is_exported_reads_back(results, tmp_path):
    table = read_table(results)
    write_table(table, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").equals(table, check_metadata=True)
    write_table(table, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["results"] == table.to_pylist()
    write_table(table, tmp_path / "x.csv")
    first, second = (tmp_path / "x.csv").read_text().splitlines()[:2]
    row = dict(zip(first.replace('"', "").split(","), second.replace('"', "").split(","), strict=True))
    assert float(row["time_s"]) == table.column("time_s").to_pylist()[0]
    assert row["error"] == ""
    with pytest.raises(InputError, match=r"written as .csv, .json, .parquet"):
        write_table(table, tmp_path / "x.xlsx")


def test_pandas_and_polars_take_the_table(results):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = read_table(results)
    times = table.column("time_s").to_pylist()
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["time_s"].tolist() == times
    assert polars.from_arrow(table)["time_s"].to_list() == times


def test_without_pyarrow_the_extra_is_named(small, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'commsim\[data\]'"):
        run_sweep(small, tmp_path / "r", "serial")
    assert not (tmp_path / "r").exists()


def test_a_shard_that_cannot_be_written_leaves_its_rows(directory):
    if os.geteuid() == 0:
        return  # may write everywhere
    journal = Journal(directory, KINDS, {})
    journal.append(lines(0))
    directory.chmod(0o500)
    with pytest.raises(InputError, match="cannot write"):
        journal.close()
    directory.chmod(0o700)
    assert orders(directory) == [0]
