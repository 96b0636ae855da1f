import gzip
import json
import tracemalloc

import pytest

from commsim.core.errors import InputError
from commsim.core.files.result_file import write_result
from commsim.core.files.sweep_store import Store
from commsim.core.result import Result
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement

ROW = {"collective": "ring_all_reduce", "operation": "all_reduce", "n_ranks": 4, "size_B": 1024.0, "time_s": 1e-5,
       "engine": "flow", "p5_s": 9e-6, "p95_s": 2e-5}  # fmt: skip


def read(tmp_path, content, name="rows.json", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_measured(path, **options)


def test_our_own_rows_keep_operation_algorithm_and_spread(tmp_path):
    row = read(tmp_path, {"schema": 1, "config": {}, "results": [ROW]})[0]
    assert row == Measurement("all_reduce", 1024, 1e-5, 4, "ring_all_reduce", low=9e-6, high=2e-5,
                           source=str(tmp_path / "rows.json"), line=1)  # fmt: skip
    assert row.busbw == pytest.approx(1024 / 1e-5 * 1.5)  # 2(n - 1)/n of 4 ranks


def test_a_packed_file_is_the_same_file(tmp_path):
    packed = gzip.compress(json.dumps({"schema": 1, "results": [ROW]}).encode())
    assert read(tmp_path, packed, "rows.json.gz")[0].time == 1e-5


def test_a_saved_result_is_one_row(tmp_path):
    path = tmp_path / "result.json"
    write_result(Result("ring_all_gather", "all_gather", "flow", 8, 4096, 2e-5, 2e-5), path)
    assert [(row.operation, row.size, row.time, row.n_ranks) for row in read_measured(path)] == [
        ("all_gather", 4096, 2e-5, 8)
    ]


@pytest.mark.parametrize("folder", [False, True, "store"])
def test_rows_of_a_sweep_are_read_but_for_failed_points(tmp_path, folder):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    columns = {name: [ROW[name]] * 2 for name in ("collective", "operation", "n_ranks", "size_B", "time_s")}
    columns |= {"error": ["", "no route"], "point": ["a", "b"], "topology.bandwidth": ["1Gbps", "1Gbps"]}
    table = pyarrow.table(columns)
    if folder == "store":
        store = Store(tmp_path, {"config_hash": "", "parameters": {}, "provenance": {}}, {})
        store.append([json.dumps(row | {"order": i}).encode() for i, row in enumerate(table.to_pylist())])
        store.close()
    parquet.write_table(table, tmp_path / "0.parquet")
    notes = []
    rows = read_measured(tmp_path if folder else tmp_path / "0.parquet", notes=notes)
    assert [(row.operation, row.algorithm, row.time) for row in rows] == [("all_reduce", "ring_all_reduce", 1e-5)]
    assert "left out: 1 row with an error" in notes[0]
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "0.parquet")
    with pytest.raises(InputError, match="has no column operation; rows need operation, n_ranks, size_B, time_s"):
        read_measured(tmp_path / "0.parquet")


def test_lines_of_the_inspector_are_read_and_a_last_one_that_is_cut_off_is_said(tmp_path):
    line = {"header": {"id": "0x1", "rank": 0, "n_ranks": 16, "nnodes": 2}, "metadata": {"pid": 1},
            "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 20.5,
                          "coll_algobw_gbs": 0.2, "coll_busbw_gbs": 0.37}}  # fmt: skip
    notes = []
    text = f"{json.dumps(line)}\n{json.dumps(line)}\n" + json.dumps(line)[:30]
    rows = read(tmp_path, text.encode(), "inspector.jsonl", notes=notes)
    assert [(r.operation, r.size, r.n_ranks, r.time, r.line) for r in rows] == [
        ("all_reduce", 4096, 16, pytest.approx(20.5e-6), i) for i in (1, 2)
    ]
    assert "the last line is cut off" in notes[0]
    with pytest.raises(InputError, match="line 1: "):
        read(tmp_path, f'{{"header": 1}} x\n{json.dumps(line)}\n'.encode(), "inspector.jsonl")


def test_records_of_the_inspector_in_one_list_are_those_of_its_lines(tmp_path):
    perf = {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 20.5}
    records = [{"header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 1}, "coll_perf": perf} for rank in (0, 1)]
    assert [(row.size, row.n_ranks, row.line) for row in read(tmp_path, records)] == [(4096, 2, 1), (4096, 2, 2)]


def test_records_of_the_inspector_among_other_lines_are_read(tmp_path):
    perf = {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 20.5}
    record = json.dumps({"header": {"id": "0x1", "rank": 0, "n_ranks": 2, "nnodes": 1}, "coll_perf": perf})
    text = f"hello {{}}\nnode07: {record}\n[1,0]<stdout>:{record}\n"
    assert [(row.size, row.n_ranks, row.line) for row in read(tmp_path, text.encode())] == [(4096, 2, 2), (4096, 2, 3)]


def test_json_without_measurements_says_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match="none with coll_perf of NCCL's inspector"):
        read(tmp_path, b'{"a": 1}\n{"a": 2}\n')
    with pytest.raises(InputError, match="no call of a collective is in it"):
        read(tmp_path, {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1}]})


def test_the_inspector_counts_one_rank_s_part_of_what_is_gathered(tmp_path):
    """The example of its documentation: 2 GiB of each of 8 ranks at an algbw of 418.4 GB/s."""
    line = {"header": {"id": "0x1", "rank": 4, "n_ranks": 8, "nnodes": 1}, "metadata": {},
            "coll_perf": {"coll": "ReduceScatter", "coll_sn": 1231, "coll_msg_size_bytes": 2147483648,
                          "coll_exec_time_us": 41057}}  # fmt: skip
    (row,) = read(tmp_path, f"{json.dumps(line)}\n".encode(), "inspector.jsonl")
    assert row.algbw == pytest.approx(418.439467e9, rel=1e-6)
    assert row.busbw == pytest.approx(366.134533e9, rel=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"schema": 1, "results": [{**ROW, "time_s": None}]}, r"results\[0\].time_s must be a finite number"),
        ({"schema": 2, "results": [ROW]}, "schema must be 1"),
        ({"schema": 1, "results": []}, "holds no measurement"),
        ({"schema": 1, "results": [{**ROW, "operation": "sum"}]}, "unknown operation 'sum'"),
        ({}, "a Kineto trace, got no keys"),
        ({"hello": 1}, "JSON of no known kind; expected results of commsim or nccl-tests"),
    ],
)
def test_wrong_rows_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_unpacks(tmp_path):
    bomb = gzip.compress(b" " * (300 * 2**20), 1)
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 256 MiB"):
        read(tmp_path, bomb, "bomb.json.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 700 * 2**20


def test_only_rows_of_the_operation_that_was_asked_for_are_returned(tmp_path):
    tree = {"schema": 1, "results": [ROW, {**ROW, "operation": "all_gather"}]}
    assert [r.operation for r in read(tmp_path, tree, operation="all_gather")] == ["all_gather"]
    with pytest.raises(InputError, match="holds no measurement of broadcast"):
        read(tmp_path, tree, operation="broadcast")
