"""Traces with values of other kinds than a profiler writes: read as if they were missing, or refused in one line."""

import json

import pytest
from traced_programs import data_parallel

from commsim.core.errors import InputError
from commsim.profiles.read_ranks import traced_graph
from commsim.profiles.retime import more_ranks, retime
from commsim.training.cost_by_formula import closed_form_costs


def step_of(tmp_path, change):
    """Time a damaged trace again, and return the seconds of its step."""
    path = data_parallel(0, 2, (0.002, 0.003, 0.001), (0.004, 0.004), launches=True).write(tmp_path / "rank0.json")
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))
    traced, steps = traced_graph([path], None, (), None, [])
    return retime(more_ranks(traced, steps, None, ())[0], closed_form_costs(0.0, 1e9)).timeline.iteration_time


def of_all(name, value):
    def change(tree):
        for event in tree["traceEvents"]:
            if name in event["args"]:
                event["args"][name] = value

    return change


@pytest.mark.parametrize("name", ["correlation", "wait_on_stream", "wait_on_cuda_event_record_corr_id", "Rank"])
@pytest.mark.parametrize("value", [{"a": 1}, None, -1, 2**70, [[]], "x"])
def test_odd_numbers_are_none(tmp_path, name, value):
    assert step_of(tmp_path, of_all(name, value)) == pytest.approx(step_of(tmp_path, lambda _: None), rel=0.6)


def test_what_no_program_has_is_refused(tmp_path):
    def lengths(tree):
        tree["traceEvents"] = [event | {"dur": "long"} for event in tree["traceEvents"]]

    with pytest.raises(InputError, match="has no collective calls"):
        step_of(tmp_path, lengths)
    with pytest.raises(InputError, match=r"event of traceEvents must be a table with its kind as 'ph', got 3"):
        step_of(tmp_path, lambda tree: tree["traceEvents"].append(3))

    def crowd(tree):
        tree["distributedInfo"] = {"rank": 0, "world_size": 2**20, "pg_config": [
            {"pg_name": "0", "pg_desc": "tp", "pg_size": 2, "ranks": [0, 1]}]}  # fmt: skip

    with pytest.raises(InputError, match="too many exchanges; take fewer ranks"):
        step_of(tmp_path, crowd)
