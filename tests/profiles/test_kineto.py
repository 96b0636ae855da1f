import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.profiles import kineto
from commsim.profiles.kineto import EVENTS, kineto_tree

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
STEP = {"ph": "X", "name": "ProfilerStep#3", "ts": 1.5, "dur": 2}
COLLECTIVE = {"ph": "X", "name": "nccl:all_reduce", "args": {"Collective name": "allreduce", "dtype": "Float"}}


@pytest.mark.slow
@given(
    st.dictionaries(st.text(min_size=3), VALUES, max_size=5),
    st.lists(st.sampled_from([STEP, COLLECTIVE]) | st.fixed_dictionaries({"ph": VALUES, "args": VALUES})),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_what_is_kept_is_what_a_whole_decoder_finds(tree, events, indent, is_alone):
    text = json.dumps(events if is_alone else tree | {EVENTS: events}, indent=indent)
    kept = [event | {"args": event.get("args", {})} for event in events if event in (STEP, COLLECTIVE)]
    assert kineto_tree(f" {text}\n") == ({} if is_alone else tree) | {EVENTS: kept}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"), ("[", "Expecting value"), ("[1,]", "Expecting value|trailing comma"),
        ("[] 2", "Extra data"), ("{1: 2}", "property name"), ("3", "expected traceEvents, or a table"),
        ('{"a": 1, "a": 2}', "key 'a' appears twice"), ('[{"ph": 1, "a": 1, "a": 2}]', "key 'a' appears twice"),
        ("[NaN]", "NaN is not a JSON number"), ('{"traceEvents" 3}', "Expecting ':'"),
        ('{"ph": 1}', "expected traceEvents, or a table"), ("[null]", "a table with its kind as 'ph', got None"),
        ('[{"a": 1}]', "a table with its kind as 'ph', got {'a': 1}"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        kineto_tree(text)


def test_more_values_and_more_kept_events_than_any_file_has_are_refused(monkeypatch):
    monkeypatch.setattr(kineto, "MAX_KEPT", 2)
    assert len(kineto_tree(json.dumps([STEP, {"ph": 1}, STEP]))[EVENTS]) == 2
    with pytest.raises(ValueError, match="more than 2 events are to be kept"):
        kineto_tree(json.dumps([STEP] * 3))
    monkeypatch.setattr(kineto, "MAX_VALUES", 4)
    with pytest.raises(ValueError, match="more than 4 values"):
        kineto_tree("[1, 2, 3, {}]")


def test_events_that_are_not_read_are_not_kept_in_memory():
    text = json.dumps([{"ph": "X", "name": f"aten::{i}", "args": {"id": i}} for i in range(20_000)])
    tracemalloc.start()
    assert kineto_tree(text) == {EVENTS: []}
    assert tracemalloc.get_traced_memory()[1] < len(text)
    tracemalloc.stop()
