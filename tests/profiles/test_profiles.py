"""The samples are made up for the tests, after the fields that PyTorch 2.10 and Kineto write."""

import gzip
import json
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.formats.measured import read_measured
from commsim.profiles import plain_pickle
from commsim.profiles.calls import whole_array
from commsim.profiles.plain_pickle import load_plain_pickle
from commsim.profiles.profiles import read_calls

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_out_of_a_pickle_as_they_went_in(value, protocol):
    assert load_plain_pickle(pickle.dumps(value, protocol), "x") == value


def test_bytes_are_plain_from_the_protocol_on_that_knows_them():
    assert load_plain_pickle(pickle.dumps([b"x", b"y" * 300], 4), "x") == [b"x", b"y" * 300]


class _Evil:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize("value", [_Evil(), {"a": [_Evil()]}, {1, 2}, 1j, bytearray(b"x"), print, range(3)])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_names_anything_is_refused_and_nothing_runs(capsys, value, protocol):
    with pytest.raises(InputError, match=r"refused: its operation \w+ at byte \d+ (names an object|is not known)"):
        load_plain_pickle(pickle.dumps(value, protocol), "x")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x80\x04", b"\x80\x04.", b"\x80\x04h\x05.", b"\x80\x04]a.", b"\x80\x04(", b"\x80\x04e.",
        b"\x80\x04r" + struct.pack("<I", 2**32 - 1) + b".",  # a memo of four thousand million places
        b"\x80\x05\x96" + struct.pack("<Q", 2**60) + b"x.", b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"x.",
        b"\x80\x04}]]s.", b"\x80\x04" + b"I" + b"9" * 10_000 + b"\n.", b"\xff" * 64,
    ],
)  # fmt: skip
def test_damaged_pickles_are_refused_in_one_line(data):
    with pytest.raises(InputError) as caught:
        load_plain_pickle(data, "x")
    assert len(str(caught.value).splitlines()) == 1


def test_a_pickle_of_more_values_than_are_read_is_refused(monkeypatch):
    monkeypatch.setattr(plain_pickle, "MAX_OPERATIONS", 100)
    assert load_plain_pickle(pickle.dumps([None] * 50, 4), "x") == [None] * 50
    with pytest.raises(InputError, match="x: more than 100 values"):
        load_plain_pickle(pickle.dumps([None] * 100, 4), "x")


@pytest.mark.slow
def test_a_deep_pickle_is_neither_a_crash_nor_a_hang():
    deep = load_plain_pickle(b"\x80\x04" + b"]" * 200_000 + b"a" * 199_999 + b".", "x")
    assert isinstance(deep, list)


def entry(name="nccl:all_reduce", start=0, ms=1.5, shape=(1024, 1024), kind="Float", out=None, **more):
    return {
        "record_id": 1, "pg_id": 0, "process_group": ("0", "default_pg"), "profiling_name": name,
        "input_sizes": [list(shape)], "input_dtypes": [kind], "output_sizes": [list(out or shape)],
        "output_dtypes": [kind], "time_created_ns": start, "duration_ms": ms, "state": "completed",
        "time_discovered_started_ns": start, "time_discovered_completed_ns": None, "is_p2p": False, **more,
    }  # fmt: skip


def record(*entries, ranks=4):
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": json.dumps(list(range(ranks)))}}
    return {"version": "2.10", "entries": list(entries), "pg_config": config, "pg_status": {}}


def write(tmp_path, tree, how="json", name="rank3"):
    path = tmp_path / f"{name}.{how}"
    data = pickle.dumps(tree, 4) if how == "pkl" else json.dumps(tree).encode()
    path.write_bytes(gzip.compress(data) if how == "gz" else data)
    return path


@pytest.mark.parametrize("how", ["json", "pkl", "gz"])
def test_calls_of_the_flight_recorder_have_size_time_and_group(tmp_path, how):
    calls, steps = read_calls(write(tmp_path, record(entry(start=2_000), entry(start=1_000, ms=None)), how))
    assert [(call.operation, call.size, call.n_ranks, call.rank, call.group) for call in calls] == [
        ("all_reduce", 4 * 2**20, 4, 3, "0")
    ] * 2
    assert [call.duration for call in calls] == [None, pytest.approx(1.5e-3)]  # by start
    assert steps == ()


@pytest.mark.parametrize(
    ("name", "shape", "out", "operation", "size"),
    [
        ("nccl:_all_gather_base", (256,), (1024,), "all_gather", 4096),
        ("nccl:_reduce_scatter_base", (1024,), (256,), "reduce_scatter", 4096),
        ("nccl:all_to_all", (1024,), (1024,), "all_to_all", 4096),
        ("nccl:gather", (256,), (1,), "gather", 16),
        ("nccl:broadcast", (1024,), (1024,), "broadcast", 4096),
        ("nccl:send 0->1", (1024,), (1024,), "send_recv", 4096),
        ("nccl:all_reduce_barrier", (1,), (1,), "barrier", 0),
    ],
)
def test_sizes_are_those_that_nccl_tests_counts(tmp_path, name, shape, out, operation, size):
    calls, _ = read_calls(write(tmp_path, record(entry(name, shape=shape, out=out))))
    assert (calls[0].operation, calls[0].size) == (operation, size)


def test_a_gather_is_counted_by_its_blocks():
    assert whole_array("gather", 100.0, 0.0, 4) == 400.0  # who is not the root gets nothing out
    assert whole_array("gather", 100.0, 400.0, 4) == 400.0
    with pytest.raises(InputError, match="needs the number of its ranks"):
        whole_array("scatter", 100.0, 0.0, None)


def test_what_cannot_be_used_is_said_and_the_rest_is_read(tmp_path):
    odd = [entry("nccl:coalesced"), entry(kind="QInt8"), entry()]
    notes = []
    calls, _ = read_calls(write(tmp_path, record(*odd)), notes)
    assert len(calls) == 1
    assert any("'nccl:coalesced' is no operation here" in note for note in notes)
    assert any("the type of its elements is not known" in note for note in notes)
    assert read_calls(write(tmp_path, {"entries": odd[2:]}))[0][0].n_ranks is None  # records may miss the groups


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"entries": 3}, "entries must be a list"),
        ({"entries": [3]}, r"entries\[0\] must be a table"),
        ({"entries": [entry(shape=(-1,))]}, r"entries\[0\].input_sizes must be a list of shapes"),
        ({"entries": []}, "has no collective calls"),
        ({"a": 1}, "neither a record of the flight recorder"),
        ({"traceEvents": {}}, "traceEvents must be a list"),
        (record(entry(shape=[2**47] * 60)), r"entries\[0\].input_sizes must be shapes of at most 1024 TiB in all"),
        (record(entry(shape=[2**47] * 60, kind="QInt8")), "the type of its elements is not known"),
    ],
)
def test_wrong_profiles_are_refused(tmp_path, tree, message):
    with pytest.raises(InputError, match=message):
        read_calls(write(tmp_path, tree))


def event(
    start, kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", cat="kernel", **more
):
    args = {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 1000, "Out msg nelems": 1000,
            "Group size": 8, "Process Group Name": "0", "Rank": 1}  # fmt: skip
    return {"ph": "X", "cat": cat, "name": kernel, "ts": start, "dur": 20.5, "pid": 0, "tid": 7, "args": args | more}


def test_kineto_kernels_say_size_time_algorithm_and_protocol(tmp_path):
    other = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "args": {"stream": 7}}
    trace = {"traceEvents": [event(100.0), event(100.0, cat="user_annotation"), other], "distributedInfo": {"rank": 1}}
    path = write(tmp_path, trace)
    calls, _ = read_calls(path)
    assert len(calls) == 1  # the annotation is the same call once more
    call = calls[0]
    assert (call.operation, call.size, call.n_ranks, call.rank) == ("all_reduce", 2000, 8, 1)
    assert (call.algorithm, call.protocol, call.duration) == ("ring", "ll", pytest.approx(20.5e-6))
    row = read_measured(path)[0]
    assert (row.algorithm, row.time, row.low) == ("ring", pytest.approx(20.5e-6), None)


def test_a_group_larger_than_any_machine_is_not_known(tmp_path):
    trace = {"traceEvents": [event(1.0, **{"Group size": 2**30}), event(2.0, **{"Group size": 2**20})]}
    assert [call.n_ranks for call in read_calls(write(tmp_path, trace))[0]] == [None, 2**20]


def test_steps_are_kept_and_events_that_are_none_are_refused(tmp_path):
    steps = [{"ph": "X", "name": f"ProfilerStep#{i}", "ts": i * 1e6, "dur": 5} for i in range(3)]
    others = [{"ph": "i", "args": 3, "name": 4}, {"ph": "M"}]
    calls, starts = read_calls(write(tmp_path, [*steps, event(1e6), *others]))  # a list that stands alone
    assert (len(calls), starts) == (1, (0.0, 1.0, 2.0))
    for none in (3, None, "x", {"name": "x"}):
        with pytest.raises(InputError, match="must be a table with its kind as 'ph'"):
            read_calls(write(tmp_path, [*steps, none]))


def test_measurements_of_a_profile_are_medians_of_each_kind_of_call(tmp_path):
    rows = read_measured(write(tmp_path, record(*(entry(start=i, ms=ms) for i, ms in enumerate((1.0, 2.0, 9.0))))))
    assert len(rows) == 1
    assert rows[0].time == pytest.approx(2e-3)
    assert rows[0].low == pytest.approx(1.1e-3)  # percentile 5 of three: a tenth of the way from 1 to 2
