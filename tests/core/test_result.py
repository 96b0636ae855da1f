import json
import math

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS, operation
from commsim.core.result import Result, Trace


def result(**changes) -> Result:
    fields = {
        "collective": "ring_all_reduce",
        "operation": "all_reduce",
        "engine": "flow",
        "n_ranks": 4,
        "size": 1e9,
        "time": 0.5,
        "time_from_last_start": 0.4,
    }
    return Result(**fields | changes)


def test_algbw_is_size_over_time_and_busbw_has_the_factor():
    assert result().algbw == 2e9
    assert result().busbw == 2e9 * 2 * 3 / 4


def test_nothing_to_send_takes_no_time_at_an_infinite_rate():
    alone = result(n_ranks=1, time=0.0, time_from_last_start=0.0)
    assert math.isinf(alone.algbw)
    assert alone.busbw == 0
    assert (alone.row()["algbw_Bps"], alone.row()["busbw_Bps"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("all_reduce", 1.75),
        ("reduce_scatter", 0.875),
        ("all_gather", 0.875),
        ("all_to_all", 0.875),
        ("gather", 0.875),
        ("scatter", 0.875),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send_recv", 1.0),
        ("barrier", 0.0),
    ],
)
def test_factors_of_8_ranks_are_those_of_nccl_tests(name, factor):
    assert operation(name).busbw_factor(8) == factor
    assert set(OPERATIONS) >= {name}


def test_a_factor_is_never_guessed():
    with pytest.raises(InputError, match="unknown operation 'all_sum'; known: all_gather, all_gather_v, all_reduce"):
        operation("all_sum")


def test_what_an_operation_promises_says_how_it_uses_memory():
    assert not operation("all_to_all").in_place
    assert operation("all_reduce").in_place
    assert not operation("send_recv").in_place
    assert [name for name, op in OPERATIONS.items() if op.has_root] == ["broadcast", "reduce", "gather", "scatter"]
    unequal = "all_reduce broadcast reduce barrier send_recv neighbour_exchange all_gather_v all_to_all_v ep_dispatch"
    assert [name for name, op in OPERATIONS.items() if not op.needs_equal_blocks] == [*unequal.split(), "ep_combine"]


def test_a_custom_schedule_has_a_row_without_a_bus_bandwidth():
    custom = result(operation="custom")
    assert custom.row()["busbw_Bps"] is None
    assert custom.row()["algbw_Bps"] == 2e9
    with pytest.raises(InputError, match="unknown operation 'custom'"):
        _ = custom.busbw


def test_a_row_can_be_written_as_json():
    row = result(link_bytes=[1, 5, 2], samples=np.arange(101.0), counters={"drops": 3}).row()
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["size_B"] == 1e9
    assert row["max_link_bytes"] == 5
    assert (row["p5_s"], row["p95_s"], row["n_samples"]) == (5, 95, 101)
    assert row["counters"] == {"drops": 3}


def test_a_row_without_links_or_samples_says_so():
    row = result().row()
    assert row["max_link_bytes"] is None
    assert "p5_s" not in row


def test_results_are_compared_by_value_and_cannot_be_written():
    trace = Trace([0], [1], [2])
    assert result(trace=trace, counters={"a": 1}) == result(trace=Trace([0], [1], [2]), counters={"a": 1})
    assert result(trace=trace) != result()
    assert hash(result(trace=trace)) == hash(result(trace=trace))
    with pytest.raises(ValueError, match="read-only"):
        result(link_bytes=[1]).link_bytes[0] = 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_ranks": 0}, "at least 1 rank, got n_ranks=0"),
        ({"operation": "x"}, "unknown operation"),
        ({"time": -1.0}, "time must be finite and not negative, got -1.0"),
        ({"time": math.nan}, "time must be finite"),
        ({"size": math.inf}, "size must be finite"),
        ({"bytes_on_wire": -1}, "bytes_on_wire must be finite"),
        ({"link_bytes": [1, -1]}, "link_bytes must be finite"),
        ({"samples": [math.inf]}, "samples must be finite"),
        ({"samples": ["1"]}, "result: samples must hold numbers"),
    ],
)
def test_a_result_that_cannot_be_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        result(**changes)


@pytest.mark.parametrize("arrays", [([0], [1], [1, 2]), ([[0]], [[1]], [[2]]), (0, 1, 2)])
def test_a_trace_has_one_start_sent_and_done_per_transfer(arrays):
    with pytest.raises(InputError, match="one start, sent and done per transfer"):
        Trace(*arrays)
