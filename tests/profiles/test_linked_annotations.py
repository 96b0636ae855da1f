"""Kernels without arguments get operation, shapes and world of the annotation in which they were launched."""

import json
from pathlib import Path
from typing import Any

import pytest

from commsim.formats.measured import read_measured

ELEMENTS = 3_145_728


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: object) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def annotation(title: str, ts: float, number: int) -> dict[str, Any]:
    shapes = {"Input Dims": [[ELEMENTS]], "Input type": ["float"]}
    return event("user_annotation", title, ts, 60, **{"External id": number, **shapes})


def launched(ts: float, correlation: int, outer: int) -> list[dict[str, Any]]:
    name = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"
    return [
        event("cuda_runtime", "cudaLaunchKernel", ts, 5, correlation=correlation, **{"External id": outer}),
        event("kernel", name, ts + 60, 630, tid=285, correlation=correlation, stream=285),
    ]


def written(folder: Path, events: list[dict[str, Any]]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": events}))
    return path


@pytest.mark.parametrize("outer", [1002, 7])
def test_a_kernel_that_sends_and_receives_is_what_its_annotation_says(outer: int, tmp_path: Path) -> None:
    path = written(tmp_path, [annotation("nccl:all_to_all", 20, 1002), *launched(40, 1500, outer)])
    (row,) = read_measured(path)
    assert (row.operation, row.size, row.n_ranks) == ("all_to_all", 4 * ELEMENTS, 8)
    assert row.time == pytest.approx(630e-6)
    assert (row.algorithm, row.protocol) == ("ring", "simple")


def test_a_gather_is_counted_by_its_whole_array(tmp_path: Path) -> None:
    path = written(tmp_path, [annotation("nccl:_all_gather_base", 20, 1002), *launched(40, 1500, 1002)])
    assert read_measured(path)[0].size == 4 * ELEMENTS * 8


def test_a_kernel_that_nothing_links_is_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, [annotation("nccl:all_to_all", 20, 1002), *launched(40, 1500, 1002), *launched(900, 1, 2)])
    notes: list[str] = []
    assert len(read_measured(path, notes=notes)) == 1
    assert any("1 of" in note or "1 event" in note or "without a size" in note for note in notes)


def test_a_trace_with_annotations_only_has_their_times(tmp_path: Path) -> None:
    path = written(tmp_path, [annotation("gloo:all_reduce", 100, 10), annotation("gloo:all_reduce", 1100, 11)])
    notes: list[str] = []
    (row,) = read_measured(path, notes=notes)
    assert (row.operation, row.size, row.n_ranks, row.time) == ("all_reduce", 4 * ELEMENTS, 8, pytest.approx(60e-6))
    assert any("no kernels" in note for note in notes)


@pytest.mark.parametrize("backend", ["xccl", "hccl", "ucc"])
def test_backends_of_other_accelerators_name_their_works_alike(backend: str, tmp_path: Path) -> None:
    path = written(tmp_path, [annotation(f"{backend}:all_to_all", 20, 1002)])
    assert [row.operation for row in read_measured(path)] == ["all_to_all"]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_shapes_that_were_not_recorded_leave_the_operation_and_no_size(
    backend: str, tmp_path: Path, commsim: Any
) -> None:
    bare = event("user_annotation", f"{backend}:all_to_all", 20, 60, **{"External id": 1002})
    path = written(tmp_path, [bare, *(launched(40, 1500, 1002) if backend == "nccl" else [])])
    assert commsim("workload", "calls", path).code == 0
    assert "all_to_all  unknown" in commsim.out
    assert commsim("workload", "calls", path, "--job", tmp_path / "job.json").code == 2
    assert "record_shapes=True, or --size NAME=SIZE" in commsim.err


@pytest.mark.parametrize(
    ("name", "shapes", "operation"),
    [
        ("alltoall_base_", [[2_883_584], [ELEMENTS]], "all_to_all"),
        ("_allgather_base_", [[ELEMENTS], [ELEMENTS // 8]], "all_gather"),
        ("allgather_", [[[[ELEMENTS // 8]] * 8], [[ELEMENTS // 8]]], "all_gather"),
        ("_reduce_scatter_base_", [[ELEMENTS // 8], [ELEMENTS]], "reduce_scatter"),
        ("allreduce_", [[[ELEMENTS]]], "all_reduce"),
    ],
)
def test_without_an_annotation_the_operator_around_the_launch_says_what_is_sent(
    name: str, shapes: list[Any], operation: str, tmp_path: Path
) -> None:
    called = event("cpu_op", f"c10d::{name}", 10, 80, **{"Input Dims": shapes, "Input type": ["float"] * len(shapes)})
    path = written(tmp_path, [called, *launched(40, 1500, 1002)])
    assert [(row.operation, row.size) for row in read_measured(path)] == [(operation, 4.0 * ELEMENTS)]


def test_a_receive_alone_is_no_call_without_a_name(tmp_path: Path, commsim: Any) -> None:
    path = written(tmp_path, [annotation("gloo:recv", 20, 10)])
    assert commsim("workload", "calls", path).code == 2
    assert "has no collective calls" in commsim.err
