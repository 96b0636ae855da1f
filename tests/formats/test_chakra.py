"""Chakra traces: the bytes of messages beside recorded ones, files, programs and workloads."""

import gzip
import json
import math
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.formats.chakra import codec as chakra_messages
from commsim.formats.chakra.codec import (
    COLLECTIVE,
    COMP,
    RECV,
    SEND,
    TYPES,
    Node,
    TraceMetadata,
    decode_metadata,
    decode_node,
    encode_metadata,
    encode_node,
    read_varint,
    varint,
)
from commsim.formats.chakra.graphs import graph_of_traces, read_groups, traces_of_graph
from commsim.formats.chakra.programs import programs_of_traces, traces_of
from commsim.formats.chakra.trace_file import ChakraTrace, read_trace, write_trace
from commsim.formats.chakra.traces import read_traces, write_traces
from commsim.formats.programs.programs_to_schedule import schedule_of
from commsim.formats.programs.schedule_to_programs import programs_of
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

text = st.text(st.characters(codec="utf-8"), max_size=8)
u64 = st.integers(0, 2**64 - 1)


def whole(bits: int, is_signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else st.integers(0, 2**bits - 1)


SINGLE: dict[str, st.SearchStrategy[Any]] = {
    "double": st.floats(allow_nan=False), "float": st.floats(width=32, allow_nan=False), "bool": st.booleans(),
    "string": text, "bytes": st.binary(max_size=8),
    **{name: whole(int(name[-2:]), name[0] == "i" or name[0] == "s") for name in TYPES if name[-2:] in ("32", "64")},
}  # fmt: skip
value = st.one_of(
    *(st.tuples(st.just(f"{name}_val"), one) for name, one in SINGLE.items()),
    *(st.tuples(st.just(f"{name}_list"), st.lists(one, max_size=4).map(tuple)) for name, one in SINGLE.items()),
)
attributes = st.dictionaries(text, value, max_size=4)
node = st.builds(
    Node, u64, text, st.integers(0, 7), st.lists(u64, max_size=4).map(tuple), st.lists(u64, max_size=4).map(tuple), u64,
    u64, st.just(()) | st.tuples(text, text, text), st.just(()) | st.tuples(text, text, text), attributes,
)  # fmt: skip


RECORDED = bytes.fromhex(
    "08ac02120261721807220301c8012a068080808080203005380642060a01611a01634a0312016252120a07646f75626c6531190000000000"
    "00f8bf521d0a07646f75626c653222120a10000000000000f8bf000000000000f8bf520d0a06666c6f6174312d0000803e52140a06666c6f"
    "617432320a0a080000803e0000803e52130a06696e7433323138fdffffffffffffffff0152200a06696e7433323242160a14fdffffffffff"
    "ffffff01fdffffffffffffffff0152130a06696e74363431488080808080808080800152200a06696e7436343252160a1480808080808080"
    "80800180808080808080808001520f0a0775696e7433323158ffffffff0f52170a0775696e74333232620c0a0affffffff0fffffffff0f52"
    "140a0775696e7436343168ffffffffffffffffff0152210a0775696e7436343272160a14ffffffffffffffffff01ffffffffffffffffff01"
    "520b0a0773696e74333231780552100a0773696e743332328201040a02050552150a0773696e743634318801ffffffffffffffffff015222"
    "0a0773696e743634329201160a14ffffffffffffffffff01ffffffffffffffffff0152100a0866697865643332319d010700000052170a08"
    "6669786564333232a2010a0a08070000000700000052140a086669786564363431a9010000000000000080521f0a086669786564363432b2"
    "01120a100000000000000080000000000000008052110a09736669786564333231bd01f9ffffff52180a09736669786564333232c2010a0a"
    "08f9fffffff9ffffff52150a09736669786564363431c901f8ffffffffffffff52200a09736669786564363432d201120a10f8ffffffffff"
    "fffff8ffffffffffffff520a0a05626f6f6c31d80101520e0a05626f6f6c32e201040a020101520e0a07737472696e6731ea0102c3a95214"
    "0a07737472696e6732f201080a02c3a90a02c3a9520d0a06627974657331fa010200ff52130a066279746573328202080a0200ff0a0200ff"
)
"""Written by our own codec of version 0.1, which was compared to google.protobuf."""
RECORDED_VALUES: dict[str, Any] = {
    "double": -1.5, "float": 0.25, "int32": -3, "int64": -(2**63), "uint32": 2**32 - 1, "uint64": 2**64 - 1,
    "sint32": -3, "sint64": -(2**63), "fixed32": 7, "fixed64": 2**63, "sfixed32": -7, "sfixed64": -8, "bool": True,
    "string": "\u00e9", "bytes": b"\0\xff",
}  # fmt: skip


def test_a_node_with_all_types_has_the_recorded_bytes() -> None:
    singles = {f"{name}1": (f"{name}_val", one) for name, one in RECORDED_VALUES.items()}
    lists = {f"{name}2": (f"{name}_list", (one, one)) for name, one in RECORDED_VALUES.items()}
    mixed = {key: (singles | lists)[key] for name in TYPES for key in (f"{name}1", f"{name}2")}
    one = Node(300, "ar", 7, (1, 200), (2**40,), 5, 6, ("a", "", "c"), ("", "b", ""), mixed)
    assert encode_node(one) == RECORDED
    assert decode_node(RECORDED) == one
    metadata = TraceMetadata("1.0.0", {"e": ("int64_list", ()), "s": ("string_val", "")})
    assert encode_metadata(metadata).hex() == "0a05312e302e3012050a0165520012060a0173ea0100"


@given(node)
def test_nodes_and_metadata_are_read_as_they_were_written(one: Node) -> None:
    assert decode_node(encode_node(one)) == one
    metadata = TraceMetadata(one.name, one.attributes)
    assert decode_metadata(encode_metadata(metadata)) == metadata


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        one = decode_node(data)
    except InputError:
        return
    assert encode_node(decode_node(encode_node(one))) == encode_node(one)


def test_a_value_that_does_not_fit_its_type_is_refused() -> None:
    with pytest.raises(InputError, match="'x' does not fit a Chakra trace"):
        encode_node(Node(0, "x", attributes={"tag": ("int32_val", 2**31)}))


def test_without_protobuf_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(InputError, match=r"need protobuf: pip install 'commsim\[chakra\]'"):
        chakra_messages._messages.__wrapped__()


def test_a_file_is_messages_after_their_lengths_and_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "x.0.et"
    nodes = (Node(0, "ar", COLLECTIVE, attributes={"comm_size": ("int64_val", 2**20)}), Node(300, "f", COMP, data=(0,)))
    write_trace(ChakraTrace(TraceMetadata("1.0.0"), nodes), path)
    at, data, sizes = 0, memoryview(path.read_bytes()), []
    while at < len(data):
        size, at = read_varint(data, at)
        sizes.append(bytes(data[at : at + size]))
        at += size
    assert sizes[0] == b"\x0a\x051.0.0"
    assert [decode_node(one).number for one in sizes[1:]] == [0, 300]
    wanted = read_trace(path)
    assert wanted.nodes == nodes
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read_trace(path) == wanted


SAME = ("ring_all_reduce", "halving_doubling_all_reduce", "double_tree_all_reduce:n_chunks=4", "direct_all_to_all",
        "multi_ring_all_reduce")  # fmt: skip


@pytest.mark.jit
@pytest.mark.parametrize("network", ["star:n_hosts=8", "torus:dims=2x4"])
@pytest.mark.parametrize("collective", SAME)
def test_predicted_times_after_a_round_trip_are_unchanged(tmp_path: Path, collective: str, network: str) -> None:
    where = with_costs(load_network(network), overhead=2e-7, gamma=5e-10)
    before = prepare(collective, where, n_ranks=8)
    count = before.schedule.expand()["count"]
    assert write_traces(traces_of(programs_of(before.schedule, 4096.0 * count, 5e-10)), tmp_path / "x") == 8
    read = schedule_of(programs_of_traces(read_traces(tmp_path / "x")))
    after = prepare(read.schedule, where, placement=before.placement).predict(read.size)
    assert after.time == pytest.approx(before.predict(4096.0 * before.schedule.n_chunks).time, rel=1e-12)


def test_messages_say_what_astra_sim_reads_and_time_is_rounded_up_to_microseconds(tmp_path: Path) -> None:
    from commsim.formats.programs.operations import CALC, Programs, RankOperation
    from commsim.formats.programs.operations import RECV as TAKE
    from commsim.formats.programs.operations import SEND as GIVE

    ops = (
        (RankOperation(CALC, 1201), RankOperation(CALC, 0, after=(0,)), RankOperation(GIVE, 64, 1, 5, after=(1,))),
        (RankOperation(TAKE, 64, 0, 5),),
    )
    first, second = traces_of(Programs(ops))
    comp, send = first.nodes
    assert (comp.kind, comp.duration, comp.attributes["duration_ns"]) == (COMP, 2, ("int64_val", 1201))
    assert (send.kind, send.data) == (SEND, (0,))  # what takes no time is looked through
    assert send.attributes == {
        "is_cpu_op": ("bool_val", False), "comm_size": ("int64_val", 64), "comm_src": ("int32_val", 0),
        "comm_dst": ("int32_val", 1), "comm_tag": ("int32_val", 5),
    }  # fmt: skip
    assert second.nodes[0].kind == RECV


def iteration(n: int) -> TaskGraph:
    tasks = []
    for r in range(n):
        tasks += [
            Task(f"forward{r}", (f"gpu{r}.compute",), 2e-6),
            Task(f"back{r}", (f"gpu{r}.compute",), 5e-6, after=(2 * r,)),
        ]
    every = tuple(range(n))
    ends = tuple(2 * r + 1 for r in range(n))
    network = tuple(f"gpu{r}.network" for r in range(n))
    tasks.append(Task("sum", network, 0.0, "all_reduce", every, 1e6, 3, ends))
    tasks.append(Task("pass", ("gpu0.network",), 0.0, "send", (0, n - 1), 5e5, after=(2 * n,)))
    tasks.append(Task("step", (f"gpu{n - 1}.compute",), 1e-6, after=(2 * n + 1,)))
    return TaskGraph(tuple(tasks))


@pytest.mark.parametrize("n", [2, 5])
def test_a_workload_takes_as_long_after_a_round_trip(tmp_path: Path, n: int) -> None:
    graph = iteration(n)
    traces, groups = traces_of_graph(graph)
    write_traces(traces, tmp_path / "it")
    (tmp_path / "it.groups.json").write_text(json.dumps(groups))
    again = graph_of_traces(read_traces(tmp_path / "it.1.et"), read_groups(tmp_path / "it.groups.json"))

    def cost(task: Task) -> float:
        return task.size / 1e9 * math.log2(len(task.group))

    assert simulate_graph(again, cost).end.max() == simulate_graph(graph, cost).end.max()
    sums = [task for task in again.tasks if task.operation == "all_reduce"]
    assert [(task.group, task.size, task.priority) for task in sums] == [(tuple(range(n)), 1e6, 3)]
    assert graph_of_traces(traces) == again  # groups that no file lists are those whose ranks name them


def test_a_graph_of_one_worker_is_what_all_ranks_do() -> None:
    graph = TaskGraph(
        (
            Task("f", ("gpu.compute",), 1e-6),
            Task("sum", ("gpu.network",), 0.0, "all_gather", (0, 1, 2), 9e3, after=(0,)),
        )
    )
    traces, groups = traces_of_graph(graph)
    assert groups == {"1": [0, 1, 2]}
    assert [trace.nodes for trace in traces] == [traces[0].nodes] * 3
    assert traces[0].nodes[1].attributes["comm_type"] == ("int64_val", 2)
    assert len(graph_of_traces(traces).tasks) == 3 + 1


def test_what_chakra_cannot_say_is_refused() -> None:
    apart = TaskGraph((Task("a", ("gpu0.c",), 1e-6), Task("b", ("gpu1.c",), 1e-6, after=(0,))))
    with pytest.raises(InputError, match="without a message"):
        traces_of_graph(apart)
    with pytest.raises(InputError, match="number of its rank"):
        traces_of_graph(TaskGraph((Task("a", ("left.c",)), Task("b", ("right.c",)))))
    with pytest.raises(InputError, match="Chakra has no"):
        traces_of_graph(TaskGraph((Task("a", ("gpu.n",), 0.0, "send_recv", (0, 1), 1.0),)))


def collective(size: int, rank: int) -> Node:
    return Node(
        0, f"ar{rank}", COLLECTIVE, attributes={"comm_type": ("int64_val", 0), "comm_size": ("int64_val", size)}
    )


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([[collective(8, 0)], [collective(9, 1)]], "not what the other ranks do"),
        ([[Node(0, "s", SEND, attributes={"comm_size": ("int64_val", 1)})], []], "needs comm_src"),
        ([[Node(0, "x", 9)], []], "type 9"),
        (
            [[Node(0, "c", COLLECTIVE, attributes={"comm_type": ("int64_val", 77), "comm_size": ("int64_val", 1)})]],
            "77",
        ),
        ([[Node(0, "a", COMP, data=(1,)), Node(1, "b", COMP, control=(0,))]], "deadlock"),
    ],
)
def test_traces_that_make_no_sense_are_refused(nodes: list[list[Node]], wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        graph_of_traces([ChakraTrace(TraceMetadata(), tuple(mine)) for mine in nodes])


def test_a_process_group_that_does_not_fit_and_a_collective_as_a_schedule_are_refused() -> None:
    traces = [ChakraTrace(TraceMetadata(), (collective(8, r),)) for r in range(2)]
    with pytest.raises(InputError, match="workload"):
        programs_of_traces(traces)
    with pytest.raises(InputError, match="take part"):
        graph_of_traces(traces, {"": [0, 7]})


def test_files_of_all_ranks_are_found_by_prefix_or_by_one_of_them(tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        write_trace(ChakraTrace(TraceMetadata("1", {"rank": ("int32_val", rank)}), ()), tmp_path / f"a.b.{rank}.et")
    write_trace(ChakraTrace(TraceMetadata("other"), ()), tmp_path / "a.7.et")
    for name in ("a.b", "a.b.1.et"):
        assert [t.metadata.attributes["rank"][1] for t in read_traces(tmp_path / name)] == [0, 1, 2]
    with pytest.raises(InputError, match=r"a\.0\.et is missing"):
        read_traces(tmp_path / "a")
    with pytest.raises(InputError, match=r"missing|No such"):
        read_traces(tmp_path / "none" / "x")
    with pytest.raises(InputError):
        read_traces(tmp_path / "x\0y")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff" * 11, b"\x80", varint(2**63) + b"x", b"\x05ab", b"\x00" + b"\x02\x09\x01", b"\x00\x01\x0b",
        b"\x00\x03\x12\x01\xff", b"\x00\x02\x12\x7f", b"\x00\x02\x0d\x00", b"\x00\x02\x08\x07\x02\x08\x07",
        b"\x00\x04\x08\x07\x28\x09",
    ],
)  # fmt: skip
def test_damaged_numbers_and_lengths_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.0.et"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.0\.et"):
        read_trace(path)


def test_a_bomb_of_zeros_in_gzip_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    from commsim.core.files.whole_files import read_bytes

    path = tmp_path / "x.0.et"
    path.write_bytes(gzip.compress(bytes(2**24), 9) * 40)
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 8 MiB"):
        read_bytes(path, 2**23)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


@pytest.mark.slow
def test_hundreds_of_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    write_traces(traces_of_graph(iteration(2))[0], tmp_path / "x")
    path = tmp_path / "x.1.et"
    good = path.read_bytes()
    refused = 0
    for _ in range(500):
        bad = bytearray(good)
        for place in rng.integers(0, len(bad), rng.integers(1, 4)):
            bad[place] = rng.integers(0, 256)
        path.write_bytes(bytes(bad[: rng.integers(0, len(bad))] if rng.random() < 0.2 else bad))
        for make in (graph_of_traces, programs_of_traces):
            try:
                make(read_traces(path))
            except InputError:
                refused += 1
    assert refused > 500
