import json

import pytest

from commsim.core.errors import InputError
from commsim.training.sharing.periodic import read_jobs
from commsim.training.task_graph import Task, TaskGraph, simulate_graph
from commsim.training.timeline import chrome_trace, job_row, link_phases

GRAPH = TaskGraph(
    (
        Task("backward", ("gpu0.compute",), 2.0),
        Task("first", ("gpu0.network",), 0.0, "all_reduce", (0, 1, 2, 3), 8.0, after=(0,)),
        Task("second", ("gpu0.network",), 0.0, "all_gather", (0, 1, 2, 3), 8.0, after=(1,)),
        Task("forward", ("gpu0.compute",), 5.0, after=(2,)),
        Task("pause", (), 1.0, after=(2,)),
        Task("third", ("gpu0.network", "gpu1.network"), 0.0, "send", (1, 0), 3.0, after=(4,)),
    )
)


@pytest.fixture
def timeline():
    return simulate_graph(GRAPH, lambda task: {"all_reduce": 4.0, "all_gather": 1.0, "send": 1.0}[task.operation])


def test_phases_hold_what_a_rank_sends_and_what_touches_is_one(timeline):
    (phase,) = link_phases(timeline, rank=0)
    assert (phase.offset, phase.duration) == (2, 5)
    assert phase.n_bytes == pytest.approx(1.5 * 8 + 0.75 * 8)
    two = link_phases(timeline, rank=1)
    assert [(p.offset, p.duration) for p in two] == [(2, 5), (8, 1)]
    assert two[1].rate == 3
    (one,) = link_phases(timeline, rank=1, gap=1.0)
    assert (one.offset, one.duration, one.n_bytes) == (2, 7, pytest.approx(21))


def test_what_is_computed_beside_a_phase_overlaps_it():
    """The backward pass goes on for 1 s after the first bucket is sent, and the forward pass waits for both buckets."""
    tasks = (
        Task("backward 0", ("gpu.compute",), 2.0),
        Task("backward 1", ("gpu.compute",), 4.0, after=(0,)),
        Task("bucket 0", ("gpu.network",), 0.0, "all_reduce", (0, 1), 8.0, after=(0,)),
        Task("bucket 1", ("gpu.network",), 0.0, "all_reduce", (0, 1), 8.0, after=(1, 2)),
        Task("forward", ("gpu.compute",), 5.0, after=(3,)),
    )
    timeline = simulate_graph(TaskGraph(tasks), lambda _: 3.0)
    assert [(p.offset, p.duration, p.overlap) for p in link_phases(timeline)] == [(2, 3, 4), (6, 3, 0)]
    row = job_row("a", 2, timeline.iteration_time, link_phases(timeline))
    assert [phase.get("overlap_ms") for phase in row["phases"]] == [4000, None]


def test_the_job_reads_back(timeline, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([job_row("mine", 4, timeline.iteration_time, link_phases(timeline, rank=1))]))
    (job,) = read_jobs(path)
    assert (job.name, job.n_gpus, job.period) == ("mine", 4, timeline.iteration_time)
    assert job.n_bytes == pytest.approx(21)


def test_a_rate_without_bound_is_refused():
    with pytest.raises(InputError, match="takes no time"):
        link_phases(simulate_graph(GRAPH, lambda _: 0.0))


def test_trace_events_have_a_process_per_worker_a_thread_per_resource_and_microseconds(timeline):
    tree = chrome_trace(timeline)
    json.dumps(tree, allow_nan=False)
    spans = [event for event in tree["traceEvents"] if event["ph"] == "X"]
    names = {event["args"]["name"]: event for event in tree["traceEvents"] if event["ph"] == "M"}
    assert len(spans) == 4 + 2  # the message is drawn on both ends, the pause nowhere
    first = next(event for event in spans if event["name"] == "first")
    assert (first["ts"], first["dur"], first["cat"]) == (2e6, 4e6, "all_reduce")
    assert (first["pid"], first["tid"]) == (names["gpu0"]["pid"], names["gpu0.network"]["tid"])
    assert names["gpu1.network"]["pid"] == names["gpu1"]["pid"]
