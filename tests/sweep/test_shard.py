import json
import os

import pytest

from commsim.core.errors import InputError
from commsim.sweep import shard
from commsim.sweep.journal import Journal
from commsim.sweep.shard import read_shard
from commsim.sweep.table import read_table

pytestmark = pytest.mark.nojit
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ROW = {"point": ["p"], "order": [1], "seed": [0], "error": pa.array([None], pa.string()), "time_s": [0.5]}


@pytest.fixture
def directory(tmp_path):
    about = {"schema": 1, "config_hash": "h", "parameters": {"x.name": "text"}, "provenance": {"seed": 0}}
    (tmp_path / "sweep.json").write_text(json.dumps(about))
    return tmp_path


def put(directory, columns, name="part-000000.parquet"):
    pq.write_table(pa.table(columns), directory / name)
    return directory / name


def test_a_shard_is_read_as_it_was_written(directory):
    table = pa.table({**ROW, "x.name": ["star"]})
    pq.write_table(table.replace_schema_metadata({"commsim": "{}"}), directory / "part-000000.parquet")
    found = read_shard(directory / "part-000000.parquet")
    assert found.equals(table)
    assert found.schema.metadata == {b"commsim": b"{}"}
    assert read_shard(directory / "part-000000.parquet", ["point", "error"]).column_names == ["point", "error"]


def test_files_by_other_names_are_not_ours(directory):
    put(directory, ROW)
    for name in (
        "part-abc.parquet",
        "part-1.parquet",
        "part-\u0663\u0663\u0663\u0663\u0663\u0663.parquet",
        "part-x.rows",
    ):
        (directory / name).write_text("what is this")
    Journal(directory, {"x.name": "text"}, {}).close()
    assert read_table(directory).num_rows == 1
    assert (directory / "part-x.rows").exists()


@pytest.mark.parametrize("name", ["part-000001.rows", "part-000001.parquet", "sweep.lock", "sweep.json"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_pipes_and_directories_are_refused_and_not_waited_for(directory, make, name):
    (directory / name).unlink(missing_ok=True)
    make(directory / name)
    with pytest.raises(InputError, match=f"{name}: (not a regular file|is a directory)"):
        Journal(directory, {}, {}).close()
        read_table(directory)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({k: v for k, v in ROW.items() if k != "point"}, "it has no point of type string"),
        ({k: v for k, v in ROW.items() if k != "error"}, "it has no error of type string"),
        ({**ROW, "point": [3]}, "it has no point of type string"),
        ({**ROW, "order": ["x"]}, "it has no order of type int64"),
        ({**ROW, "error": [[1]]}, "it has no error of type string"),
        ({**ROW, "time_s": ["soon"]}, "no shard of this sweep"),
        ({**ROW, "counters.x": [[1.0]]}, "no shard of this sweep"),
    ],
)
def test_what_is_no_shard_is_named(directory, columns, message):
    put(directory, columns)
    with pytest.raises(InputError, match=f"part-000000.parquet: .*{message}"):
        read_table(directory)


def test_thousands_of_columns_are_refused(directory):
    put(directory, ROW | {f"counters.{i}": [1.0] for i in range(3000)})
    with pytest.raises(InputError, match="at most 2000 columns"):
        read_table(directory)


def test_a_column_that_is_there_twice_is_refused(directory):
    table = pa.table(ROW)
    pq.write_table(table.append_column("time_s", table.column("time_s")), directory / "part-000000.parquet")
    with pytest.raises(InputError, match="it has a column twice"):
        read_table(directory)


def test_the_same_shard_twice_is_refused(directory):
    put(directory, ROW)
    put(directory, ROW, "part-000007.parquet")
    with pytest.raises(InputError, match="a point is there twice"):
        read_table(directory)


def test_small_files_that_would_fill_the_memory_are_refused(directory, monkeypatch):
    monkeypatch.setattr(shard, "MAX_VALUES", 5000)
    monkeypatch.setattr(shard, "MAX_BYTES", 10**6)
    many = {name: pa.chunked_array([pa.array(column).take(pa.array([0] * 2000))]) for name, column in ROW.items()}
    with pytest.raises(InputError, match="it has 2000 rows"):
        read_shard(put(directory, many))
    monkeypatch.setattr(shard, "MAX_VALUES", 10**9)
    assert read_shard(put(directory, many)).num_rows == 2000
    long = {**many, "point": pa.array(["x" * 1000] * 2000)}
    path = put(directory, long)
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="its text is too long"):
        read_shard(path)
