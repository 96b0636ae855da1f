import json
import os
import random
import sqlite3
import zlib

import pytest

from commsim.core.errors import InputError
from commsim.core.files.sweep_store import Store, read_description
from commsim.sweep.table import read_table

pytest.importorskip("pyarrow")
KINDS = {"topology.name": "text", "collective.size": "size", "engine.iterations": "whole", "x.flag": "truth"}
ABOUT = {"config_hash": "h", "n_points": 9, "parameters": KINDS, "provenance": {"seed": 0}}


def lines(*orders, **more):
    rows = [{"point": f"p{o}", "order": o, "seed": 0, "topology.name": "star", "error": None, "time_s": o / 7, **more}
            for o in orders]  # fmt: skip
    return [json.dumps(row).encode() + b"\n" for row in rows]


def opened(directory, provenance=None):
    return Store(directory, ABOUT, provenance or {})


def changed(directory, *statements):
    """Change the store as one who knows its checksums does."""
    with sqlite3.connect(directory / "sweep.sqlite") as db:
        db.create_function("sum_of", -1, lambda *cells: zlib.crc32(" ".join(map(str, cells)).encode()))
        for statement in statements:
            db.execute(statement)
        if "ADD COLUMN" not in "".join(statements):
            db.execute("UPDATE points SET sum = sum_of(place, point, failed, run, row)")
            db.execute("UPDATE description SET sum = sum_of(text)")
    db.close()


def orders(directory):
    return read_table(directory).column("order").to_pylist()


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_rows_survive_as_soon_as_they_are_appended_and_are_sorted_when_they_are_read(tmp_path):
    store = opened(tmp_path)
    assert store.append(lines(5, 1)) == 0
    store.append(lines(3))
    assert orders(tmp_path) == [1, 3, 5]
    store.close()
    assert names(tmp_path) == ["sweep.lock", "sweep.sqlite"]
    assert read_table(tmp_path).column("time_s").to_pylist() == [1 / 7, 3 / 7, 5 / 7]


def test_a_folder_may_have_a_name_that_is_no_text(tmp_path):
    folder = tmp_path / "50 % \udcff"
    folder.mkdir()
    store = opened(folder)
    store.append(lines(2))
    store.close()
    assert read_description(folder)["n_points"] == 9
    assert orders(folder) == [2]


def test_a_writer_that_ends_without_closing_loses_nothing(tmp_path):
    child = os.fork()
    if not child:
        opened(tmp_path).append(lines(0, 1))
        os._exit(0)
    os.waitpid(child, 0)
    assert "sweep.sqlite-wal" in names(tmp_path)
    assert orders(tmp_path) == [0, 1]
    store = opened(tmp_path)
    assert store.finished() == {"p0": False, "p1": False}
    store.append(lines(2))
    store.close()
    assert orders(tmp_path) == [0, 1, 2]
    assert names(tmp_path) == ["sweep.lock", "sweep.sqlite"]


def test_a_chunk_is_there_whole_or_not_at_all(tmp_path):
    store = opened(tmp_path)
    store.append(lines(0))
    cut = [*lines(1, **{"counters.new": 1.0}), b'{"point":"p2","order":"two","seed":0,"error":null}\n']
    with pytest.raises(InputError, match=r"sweep.sqlite: cannot write: datatype mismatch"):
        store.append(cut)
    assert orders(tmp_path) == [0]
    store.append(lines(1))
    store.close()
    assert orders(tmp_path) == [0, 1]
    assert "counters.new" not in read_table(tmp_path).column_names


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path):
    store = opened(tmp_path)
    store.append(lines(0))
    store._db.execute("PRAGMA max_page_count = 12")
    with pytest.raises(InputError, match="cannot write: database or disk is full"):
        store.append(lines(*range(1, 400)))
    store.close()
    assert orders(tmp_path) == [0]


def test_a_row_that_comes_again_is_there_once(tmp_path):
    store = opened(tmp_path)
    store.append(lines(0))
    assert store.append(lines(0, 1, error="bad")) == 2
    store.close()
    assert read_table(tmp_path).column("error").to_pylist() == ["bad", "bad"]


def test_every_run_says_where_its_rows_come_from(tmp_path):
    for seed in (1, 2):
        store = opened(tmp_path, {"seed": seed})
        store.append(lines(seed))
        store.close()
    with sqlite3.connect(tmp_path / "sweep.sqlite") as db:
        found = db.execute("SELECT place, provenance FROM points JOIN runs USING (run) ORDER BY place").fetchall()
    db.close()
    assert [(place, json.loads(text)) for place, text in found] == [(1, {"seed": 1}), (2, {"seed": 2})]
    assert json.loads(read_table(tmp_path).schema.metadata[b"commsim"]) == {"seed": 0}


def test_two_writers_are_one_too_many(tmp_path):
    store = opened(tmp_path)
    with pytest.raises(InputError, match="another process is running this sweep"):
        opened(tmp_path)
    store.close()
    opened(tmp_path).close()


@pytest.mark.parametrize("name", ["sweep.sqlite", "sweep.lock"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_pipes_and_directories_are_refused_and_not_waited_for(tmp_path, make, name):
    make(tmp_path / name)
    with pytest.raises(InputError, match=f"{name}: (not a regular file|is a directory)"):
        opened(tmp_path)
    if name == "sweep.sqlite":
        with pytest.raises(InputError, match=f"{name}: (not a regular file|is a directory)"):
            read_table(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version = 7", "it has version 7, this commsim reads 2"),
        ("CREATE VIEW more AS SELECT 1", "its tables are not those of a sweep"),
        ("ALTER TABLE points ADD COLUMN more", "its tables are not those of a sweep"),
        ("UPDATE points SET row = '{}'", "no rows of a sweep: a row without point, order or seed"),
        ("UPDATE points SET row = row || char(10) || row", "no rows of a sweep: a row without"),
        ("UPDATE points SET row = ''", "no rows of a sweep"),
        ("UPDATE points SET row = x'ff'", "no rows of a sweep"),
        ("UPDATE points SET row = '{\"point\":\"p\",\"order\":1e99,\"seed\":0}'", "no rows of a sweep"),
        ("UPDATE points SET row = '{\"point\":3,\"order\":1,\"seed\":0}'", "no rows of a sweep"),
        ("UPDATE points SET row = json_set(row, '$.error', json('[1]'))", "no rows of a sweep"),
        ("UPDATE points SET row = json_set(row, '$.time_s', 'soon')", "no rows of a sweep"),
        ("UPDATE points SET row = json_set(row, '$.more', 1)", "no rows of a sweep"),
        ("UPDATE description SET text = '{}'", "not the description of a sweep"),
        ("UPDATE description SET text = '[]'", "not the description of a sweep"),
        ("UPDATE description SET text = '['", "not the description of a sweep"),
        ("DELETE FROM description", "not the description of a sweep"),
        ("UPDATE columns SET name = 'tine_s' WHERE name = 'time_s'", "a column's name is damaged: 'tine_s'"),
        ("INSERT INTO columns VALUES ('more', 1)", "a column's name is damaged: 'more' differs from what was written"),
    ],
)  # fmt: skip
def test_what_is_no_store_of_a_sweep_is_refused(tmp_path, change, message):
    store = opened(tmp_path)
    store.append(lines(0))
    store.close()
    assert orders(tmp_path) == [0]
    changed(tmp_path, change)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path)


def test_more_columns_than_a_table_has_are_refused(tmp_path):
    store = opened(tmp_path)
    store.append(lines(0, **{f"x{i}": i for i in range(2001)}))
    store.close()
    with pytest.raises(InputError, match="at most 2000 columns"):
        read_table(tmp_path)


@pytest.mark.parametrize("data", [b"no store", b"SQLite format 3\0" + b"\xff" * 5000], ids=["text", "header"])
def test_a_damaged_file_is_named(tmp_path, data):
    (tmp_path / "sweep.sqlite").write_bytes(data)
    with pytest.raises(InputError, match=r"sweep.sqlite: not a readable store of a sweep"):
        read_table(tmp_path)
    with pytest.raises(InputError, match=r"sweep.sqlite: cannot write"):
        opened(tmp_path)


@pytest.mark.parametrize("how", ["a bit", "a digit"])
def test_a_store_that_rotted_is_refused_or_gives_the_same_numbers(tmp_path, how):
    """Without checksums 8 of 10 of these give other numbers and no word."""
    store = opened(tmp_path)
    store.append(lines(*range(100)))
    store.close()
    path, before = tmp_path / "sweep.sqlite", read_table(tmp_path)
    whole, rng, refused = path.read_bytes(), random.Random(21), 0
    for _ in range(150):
        data = bytearray(whole)
        digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()] if how == "a digit" else range(len(data))
        data[rng.choice(digits)] ^= 1 if how == "a digit" else 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            after = read_table(tmp_path)
        except InputError:
            refused += 1
        else:
            assert after.equals(before)
    assert refused > (100 if how == "a digit" else 30)


def test_a_damaged_row_is_named_also_when_the_sweep_goes_on(tmp_path):
    store = opened(tmp_path)
    store.append(lines(0, 7))
    store.close()
    path = tmp_path / "sweep.sqlite"
    path.write_bytes(path.read_bytes().replace(b'"time_s": 1.0', b'"time_s": 9.0'))
    with pytest.raises(InputError, match=r"sweep.sqlite: the row of point 7 is damaged"):
        read_table(tmp_path)
    store = opened(tmp_path)
    with pytest.raises(InputError, match=r"sweep.sqlite: the row of point 7 is damaged"):
        store.finished()
    store.close()


def test_a_store_that_is_just_being_made_has_no_sweep_yet(tmp_path):
    (tmp_path / "sweep.sqlite").write_bytes(b"")
    with pytest.raises(InputError, match="has no sweep yet"):
        read_table(tmp_path)
    opened(tmp_path).close()
    assert orders(tmp_path) == []


@pytest.mark.parametrize("name", ["sweep.json", "part-000000.parquet"])
def test_results_of_version_0_1_are_refused_by_their_version(tmp_path, name):
    (tmp_path / name).write_text("{}")
    for call in (read_table, read_description, opened):
        with pytest.raises(InputError, match=r"results of version 0\.1 of commsim"):
            call(tmp_path)


@pytest.mark.parametrize("parameters", [{"x.a": 3}, {"x.a": "nothing"}, {"point": "text"}])
def test_parameters_of_no_known_kind_are_refused(tmp_path, parameters):
    opened(tmp_path).close()
    changed(tmp_path, f"UPDATE description SET text = '{json.dumps(ABOUT | {'parameters': parameters})}'")
    with pytest.raises(InputError, match="is no parameter of one of the kinds truth, whole"):
        read_table(tmp_path)


def test_a_directory_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"not the folder of a sweep, since it has no sweep.sqlite"):
        read_table(tmp_path)


def test_a_directory_that_may_not_be_written_to_is_refused(tmp_path):
    if os.geteuid() == 0:
        return  # may write everywhere
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot write"):
        opened(tmp_path)
    tmp_path.chmod(0o700)
