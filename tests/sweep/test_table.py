import csv
import json
import shutil

import pytest

from commsim.core.errors import InputError
from commsim.core.files.sweep_store import Store
from commsim.core.remark import Remark, read_remarks
from commsim.sweep.remarks import remarks_of
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import query, read_rows, read_table, write_results, write_table

pq = pytest.importorskip("pyarrow.parquet")
KINDS = {"topology.name": "text", "collective.size": "size", "engine.iterations": "whole", "x.flag": "truth"}
ABOUT = {"config_hash": "h", "parameters": KINDS, "provenance": {}}


def append(directory, order, **more):
    row = {"point": f"p{order}", "order": order, "seed": 0, "topology.name": "star", "error": None, "time_s": 1.5}
    store = Store(directory, ABOUT, {})
    store.append([json.dumps(row | more).encode()])
    store.close()


def test_types_depend_on_names_and_columns_that_only_some_rows_have_are_empty_in_others(tmp_path):
    append(tmp_path, 0, **{"counters.events": 3.0, "n_ranks": 4})
    append(tmp_path, 1, error="bad")
    append(tmp_path, 2, **{"engine.iterations": 5, "x.flag": True, "counters.drops": 1.5, "collective.size": 8})
    table = read_table(tmp_path)
    assert table.column_names == ["point", "order", "seed", *KINDS, "error", "n_ranks", "time_s", "counters.drops",
                                  "counters.events"]  # fmt: skip
    assert [str(field.type) for field in table.schema] == [
        "string", "int64", "int64", "string", "double", "int64", "bool", "string", "int64", "double", "double",
        "double",
    ]  # fmt: skip
    assert table.column("n_ranks").to_pylist() == [4, None, None]
    assert table.column("x.flag").to_pylist() == [None, None, True]
    assert table.schema.field("collective.size").metadata == {b"unit": b"B"}


@pytest.fixture
def results(swept, tmp_path):
    shutil.copytree(swept, tmp_path / "r")
    return tmp_path / "r"


def test_an_answer_of_too_many_rows_is_refused(results):
    pytest.importorskip("duckdb")
    with pytest.raises(InputError, match="the answer has more than 1000000 rows; `limit` or `where`"):
        query(results, "select * from range(3000000)")
    assert query(results, "select * from range(3000000) limit 3").num_rows == 3


def test_a_query_has_a_limit_of_memory(results, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr("commsim.sweep.table.MAX_QUERY_MEMORY", "40MB")
    with pytest.raises(InputError, match="SQL: Out of Memory"):
        query(results, "select list(range) from range(20000000)")


def test_sql_answers_over_the_table(results):
    pytest.importorskip("duckdb")
    answer = query(results, 'select "collective.name" as name, count(*) as n from sweep group by all order by all')
    assert answer.to_pylist() == [
        {"name": "halving_doubling_all_reduce", "n": 12},
        {"name": "ring_all_reduce", "n": 12},
    ]


@pytest.mark.slow
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


def test_remarks_are_values_in_parquet_and_json_and_one_text_in_csv(tmp_path):
    one, two = Remark("a", "one"), Remark("b", "two", 0.5, True, "three")
    append(tmp_path, 0, remarks=[one.tree(), two.tree()])
    append(tmp_path, 1, error="bad")
    append(tmp_path, 2, remarks=["one"])  # as files of before have them
    table = read_table(tmp_path)
    first, failed, old = table.column("remarks").to_pylist()
    assert (read_remarks(first, "x"), failed) == ((one, two), None)
    assert read_remarks(old, "x") == (Remark("unknown", "one"),)
    for suffix in ("parquet", "json", "csv"):
        write_table(table, tmp_path / f"x.{suffix}")
    assert pq.read_table(tmp_path / "x.parquet").equals(table, check_metadata=True)
    answer = json.loads((tmp_path / "x.json").read_text())
    assert answer["results"][0]["remarks"] == [one.tree(), two.tree()]
    assert answer["remarks"] == [one.tree(), two.tree(), Remark("unknown", "one").tree()]
    rows = csv.DictReader((tmp_path / "x.csv").read_text().splitlines())
    assert [row["remarks"] for row in rows] == ["one | two; three", "", "one"]


def test_sql_reads_the_codes_of_remarks(tmp_path):
    pytest.importorskip("duckdb")
    append(tmp_path, 0, remarks=[Remark("one", "1").tree(), Remark("two", "2").tree()])
    append(tmp_path, 1, remarks=[Remark("one", "1").tree()])
    codes = "select said.code, count(*) as n from sweep, unnest(remarks) as t(said) group by all order by all"
    assert query(tmp_path, codes).to_pylist() == [{"code": "one", "n": 2}, {"code": "two", "n": 1}]
    lists = query(tmp_path, "select remarks, [n_ranks] as ranks from (select *, 4 as n_ranks from sweep) order by all")
    write_table(lists, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines() == ["remarks,ranks", "1,4", "1 | 2,4"]


def test_a_sweep_has_one_remark_of_each_code_with_its_points_and_the_largest_effect(tmp_path):
    for order in range(8):
        said = Remark("same", "the same"), Remark("link", f"leaf{order % 2}: busiest", order % 2 / 10)
        append(tmp_path, order, remarks=[one.tree() for one in said])
    assert remarks_of(tmp_path) == (
        Remark("same", "points 0 to 7: the same"),
        Remark("link", "points 1, 3, 5, 7: leaf1: busiest", 0.1, details="others of the kind at points 0, 2, 4, 6"),
    )
    append(tmp_path, 11, remarks=[Remark("link", "leaf1: busiest", 0.1).tree()])
    assert remarks_of(tmp_path)[1].text.startswith("points 1, 3, 5, 7 and 1 more: ")


@pytest.mark.parametrize("remarks", ["text", 5, [5, None], {"a": 1}])
def test_what_are_no_remarks_is_refused_as_no_row_of_a_sweep(tmp_path, remarks):
    append(tmp_path, 0, remarks=remarks)
    with pytest.raises(InputError, match=r"sweep\.sqlite: no rows of a sweep"):
        remarks_of(tmp_path)


def test_a_point_has_the_remarks_of_run_with_what_was_drawn_for_its_network(tmp_path):
    """And none of its seed, which may draw nothing."""
    network = {"name": "leaf_spine", "n_leaves": 4, "n_spines": 2, "hosts_per_leaf": 2, "fail": ["links:1", ""]}
    sweep = {"sweep": {"seed": 4}, "topology": network, "engine": {"software": "nccl-tcp"},
             "collective": {"name": "ring_all_reduce", "size": "1MiB"}}  # fmt: skip
    run_sweep(sweep, tmp_path / "r", "serial")
    drawn, whole = read_table(tmp_path / "r").column("remarks").to_pylist()
    assert [one["code"] for one in drawn] == ["faults-drawn", "software"]
    assert [one["code"] for one in whole] == ["software"]
    graph = tmp_path / "graph.toml"
    graph.write_text('[[tasks]]\nname = "one"\noperation = "all_reduce"\ngroup = [0, 1, 2, 3]\nsize = "1MiB"\n')
    trained = {"sweep": {"seed": 4}, "topology": network, "workload": {"graph": str(graph)}}
    run_sweep(trained, tmp_path / "t", "serial")
    assert read_table(tmp_path / "t").column("remarks").to_pylist() == [drawn[:1], []]


def test_pandas_and_polars_take_the_table(results):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = read_table(results)
    times = table.column("time_s").to_pylist()
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["time_s"].tolist() == times
    assert polars.from_arrow(table)["time_s"].to_list() == times


def test_without_pyarrow_all_but_parquet_and_tables_are_the_same(small, tmp_path, monkeypatch):
    run_sweep(small, tmp_path / "r", "serial")
    table = read_table(tmp_path / "r")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    rows = list(read_rows(tmp_path / "r"))
    assert (rows, list(rows[0])) == (table.to_pylist(), table.column_names)
    for suffix in ("csv", "json"):
        assert write_results(tmp_path / "r", tmp_path / f"x.{suffix}") == table.shape
    assert json.loads((tmp_path / "x.json").read_text())["results"] == rows
    in_csv = csv.DictReader((tmp_path / "x.csv").read_text().splitlines())
    assert [(row["point"], float(row["time_s"]), row["error"]) for row in in_csv] == [
        (row["point"], row["time_s"], "") for row in rows
    ]
    for call in (lambda: read_table(tmp_path / "r"), lambda: write_results(tmp_path / "r", tmp_path / "x.parquet")):
        with pytest.raises(InputError, match=r"pip install 'commsim\[data\]'"):
            call()


def test_a_sweep_without_points_has_the_names_of_its_columns_in_csv(tmp_path):
    Store(tmp_path, ABOUT, {}).close()
    assert write_results(tmp_path, tmp_path / "x.csv") == (0, 8)
    assert (tmp_path / "x.csv").read_text() == ",".join(["point", "order", "seed", *KINDS, "error"]) + "\n"


@pytest.mark.parametrize(
    "row", ["[]", "{", '{"point": "p", "order": 0}', '{"point": "p", "order": 0, "seed": 0, "x": 1}']
)
def test_what_is_no_row_of_a_sweep_is_refused_without_pyarrow(tmp_path, monkeypatch, row):
    append(tmp_path, 0)
    monkeypatch.setattr("commsim.sweep.table.rows_in", lambda *_: iter([row]))
    with pytest.raises(InputError, match=r"sweep\.sqlite: no rows of a sweep"):
        list(read_rows(tmp_path))
