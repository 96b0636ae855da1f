"""Graphs of tasks played packet by packet: against runs of the same messages, sums by hand, and refusals."""

import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.placement import Placement
from commsim.engine.flow_job import FlowJob, number_of
from commsim.engine.flow_plan import plan_flows
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import Spraying, over_path
from commsim.training.cost_by_simulation import network_costs
from commsim.training.graph_in_packets import play_graph
from commsim.training.task_graph import Task, TaskGraph
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 2, 4, bandwidth=12.5e9, latency=1e-6)
HOWS = [over_path("window"), over_path("dctcp"), Spraying(transport="nscc"), Spraying(transport="rccc")]
FEW, ALL = (0, 1, 4, 5), tuple(range(8))


def played(*tasks, how=HOWS[0], **more):
    return play_graph(TaskGraph(tasks), network_costs(NETWORK, **({"overhead": 0.0} | more)), how)


@pytest.mark.parametrize("how", HOWS, ids=lambda how: f"{how.transport} {how.balancing}")
def test_exchanges_that_overlap_are_those_of_jobs_that_start_when_their_tasks_do(how):
    step = played(
        Task("wait", ("gpu4.compute",), 20e-6),
        Task("first", ("gpu0.network",), operation="all_reduce", group=FEW, size=4e5),
        Task("second", ("gpu4.network",), operation="all_gather", group=ALL, size=8e5, after=(0,)),
        how=how,
    )
    names = {"all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather"}
    jobs = [
        FlowJob(
            COLLECTIVES[name].build(len(group)), Placement(NETWORK.hosts[list(group)]),
            number=number_of(f"{operation} {group}"),
        )
        for (operation, name), group in zip(names.items(), (FEW, ALL), strict=True)
    ]  # fmt: skip
    run = run_packets(plan_flows(NETWORK, jobs), [4e5, 8e5], how, starts=np.array([0.0] * 4 + [20e-6] * 8))
    assert step.timeline.start.tolist() == [0, 0, 20e-6]
    # where packets are sprayed, tasks make other random numbers of the same seed
    within = 1e-9 if how.on_path else 0.01
    expected = [20e-6, run.results[0].time, 20e-6 + run.results[1].time]
    assert step.timeline.end == pytest.approx(expected, rel=within)
    if how.on_path:
        assert step.run.link_bytes == pytest.approx(sum(result.link_bytes for result in run.results))
        assert step.run.packet_hops == run.times.n_events


def test_a_pipeline_takes_its_passes_and_messages_one_after_the_other():
    """Two stages and two micro-batches: the second stage waits for each activation, and for the one before it."""
    send = {"operation": "send", "group": (0, 4), "size": 1e6}
    tasks = [
        Task("forward 0", ("gpu0.compute",), 30e-6),
        Task("forward 1", ("gpu0.compute",), 30e-6),
        Task("send 0", ("gpu0.network",), after=(0,), **send),
        Task("send 1", ("gpu0.network",), after=(1,), **send),
        Task("last 0", ("gpu4.compute",), 50e-6, after=(2,)),
        Task("last 1", ("gpu4.compute",), 50e-6, after=(3,)),
    ]
    start, end = (getattr(played(*tasks).timeline, name) for name in ("start", "end"))
    alone = played(dataclasses.replace(tasks[2], after=())).timeline.end[0]
    assert alone > 80e-6  # 1 MB at 12.5 GB/s, in packets over four hops
    assert end[2] - start[2] == pytest.approx(alone, abs=1e-12)
    assert start[2] == pytest.approx(30e-6)
    assert start[3] == end[2]  # one message at a time on the resource
    assert start[4] == end[2]
    assert start[5] == max(end[3], end[4])
    assert end[5] == pytest.approx(30e-6 + 2 * alone + 50e-6)


def test_a_message_costs_what_its_task_takes_beside_it_and_one_rank_sends_nothing():
    bare, more = (
        played(Task("sum", (), extra, operation="all_reduce", group=FEW, size=1e5)).timeline.end[0]
        for extra in (0.0, 7e-6)
    )
    assert more == pytest.approx(bare + 7e-6, abs=1e-12)
    lonely = played(
        Task("sum", (), operation="all_reduce", group=(3,), size=1e5), Task("then", (), 1e-6, after=(0,)),
        Task("send", (), operation="send", group=(0, 1), size=1e3),
    )  # fmt: skip
    assert lonely.timeline.end[:2].tolist() == [0, 1e-6]


def test_what_cannot_be_played_is_refused():
    with pytest.raises(InputError, match="no task of the graph communicates"):
        played(Task("think", ("gpu0.compute",), 1e-6))
    sparse = Task("sum", (), operation="all_reduce", group=FEW, size=4e5, parts=((4e5, 0.1),))
    with pytest.raises(InputError, match="'sum': only dense collectives are played together"):
        played(sparse, algorithms={"all_reduce": "gtop_k"})
    with pytest.raises(InputError, match="a task takes 0 to"):
        played(Task("long", (), 1e9), Task("send", (), operation="send", group=(0, 1), size=1e3))
