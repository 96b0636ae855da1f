"""Predicted times after a round trip are unchanged: every registered collective, through every format of schedules."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE, Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.formats.chakra.programs import programs_of_traces, traces_of
from commsim.formats.chakra.traces import read_traces, write_traces
from commsim.formats.goal import read_goal_binary, read_goal_text, write_goal_binary, write_goal_text
from commsim.formats.msccl.from_schedule import algorithm_of
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.formats.msccl.xml import read_msccl, write_msccl
from commsim.formats.programs.operations import CALC, RECV, SEND, Programs, RankOperation, graph_of
from commsim.formats.programs.programs_to_schedule import ConvertedSchedule, schedule_of
from commsim.formats.programs.schedule_to_programs import programs_of
from commsim.formats.programs.stages import stages_of
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import with_costs

UNIT = 4096.0
GAMMA = 5e-10  # of 4096 bytes a whole number of ns, so that files hold it exactly
TREES = ("atp", "flare", "iswitch", "netreduce", "nvls", "panama", "sharp", "switchml")
FEWER = dict.fromkeys(TREES, ":n_chunks=5") | {"omnireduce": ":n_partitions=3"}
Through = Callable[[Programs, Path], Programs]


def text(programs: Programs, path: Path) -> Programs:
    write_goal_text(programs, path)
    return read_goal_text(path)


def binary(programs: Programs, path: Path) -> Programs:
    write_goal_binary(programs, path)
    return read_goal_binary(path)


def chakra(programs: Programs, path: Path) -> Programs:
    write_traces(traces_of(programs, "x"), path)
    return programs_of_traces(read_traces(path))


def time_of(schedule: Schedule, n_bytes: object, before: Plan) -> float:
    job = FlowJob(schedule, before.placement, messages=lambda _: n_bytes)
    return simulate_flows(plan_flows(before.network, [job]), 1.0)[0].time


def cases() -> list[tuple[str, int]]:
    return [(name + FEWER.get(name, ""), n) for name in COLLECTIVES for n in (3, 4)]


def prepared(collective: str, n_ranks: int, gamma: float) -> Plan:
    where = with_costs(load_network("star:n_hosts=12"), overhead=2e-7, gamma=gamma)
    return prepare(collective, where, n_ranks=n_ranks)


def sums_alone(schedule: Schedule) -> bool:
    transfers = schedule.expand()
    return bool(((transfers["src"] == transfers["dst"]) & (transfers["op"] == REDUCE)).any())


@pytest.mark.sample(20)
@pytest.mark.sample(1, each="collective")
@pytest.mark.parametrize(("collective", "n_ranks"), cases())
def test_through_goal_and_chakra(tmp_path: Path, collective: str, n_ranks: int) -> None:
    try:
        before = prepared(collective, n_ranks, GAMMA)
    except InputError:
        assert n_ranks == 3  # only for powers of two
        return
    gamma = GAMMA
    if sums_alone(before.schedule):  # a sum of what a rank holds is a computation, and no schedule has one
        with pytest.raises(InputError, match="read it as a workload"):
            schedule_of(programs_of(before.schedule, UNIT * before.schedule.expand()["count"], GAMMA))
        gamma, before = 0.0, prepared(collective, n_ranks, 0.0)
    schedule = before.schedule
    n_bytes = UNIT * schedule.expand()["count"]
    wanted = time_of(schedule, n_bytes, before)
    programs = programs_of(schedule, n_bytes, gamma)
    for through in (text, binary, chakra):
        path = tmp_path / through.__name__
        read = schedule_of(through(programs, path), n_helpers=schedule.n_helpers)
        assert time_of(read.schedule, read.n_bytes, before) == pytest.approx(wanted, rel=1e-12), through


@pytest.mark.sample(20)
@pytest.mark.sample(1, each="collective")
@pytest.mark.slow
@pytest.mark.parametrize(("collective", "n_ranks"), cases())
def test_through_msccl(tmp_path: Path, collective: str, n_ranks: int) -> None:
    try:
        before = prepared(collective, n_ranks, GAMMA)
    except InputError:
        return  # said by the test before
    schedule = before.schedule
    if schedule.n_helpers:
        with pytest.raises(InputError, match="GPUs only"):
            algorithm_of(schedule)
        return
    write_msccl(algorithm_of(schedule)[0], tmp_path / "x.xml")
    read = schedule_of_algorithm(read_msccl(tmp_path / "x.xml")[0])
    for unit in (2.0, 65536.0):
        times = (time_of(one, unit * one.expand()["count"], before) for one in (schedule, read))
        assert next(times) == pytest.approx(next(times), rel=1e-12)


def fenced(collective: str, n_ranks: int) -> tuple[Schedule, Programs]:
    schedule = load_schedule(collective, n_ranks)
    return schedule, programs_of(schedule, UNIT * schedule.expand()["count"])


@pytest.mark.nojit
def test_without_its_marks_a_fence_is_what_each_rank_knows(tmp_path: Path) -> None:
    """Others read the same files: they see computations of no time, and nodes that wait for a rank's own ones."""
    schedule, programs = fenced("binomial_tree_all_reduce", 3)
    path = tmp_path / "x.goal"
    write_goal_text(programs, path)
    path.write_text(path.read_text().replace("commsim_fence", "somebody"))
    plain = read_goal_text(path)
    assert plain == Programs(tuple(tuple(replace(op, stage=0) for op in ops) for ops in programs.ranks))
    n_bytes = UNIT * schedule.expand()["count"]
    before = prepared("binomial_tree_all_reduce", 3, 0.0)

    def time(read: ConvertedSchedule) -> float:
        return time_of(read.schedule, read.n_bytes, before)

    assert time(schedule_of(plain)) < time(schedule_of(programs)) == pytest.approx(time_of(schedule, n_bytes, before))
    nodes = traces_of(programs)[0].nodes
    assert len(nodes) == sum(op.kind != CALC for op in programs.ranks[0])
    for node in nodes:
        stage = node.attributes.get("commsim_stage", ("", 0))[1]
        assert {n.attributes.get("commsim_stage", ("", 0))[1] for n in nodes if n.number in node.data} <= {stage - 1}
        assert bool(node.data) == bool(stage)


@pytest.mark.nojit
def test_the_other_end_of_a_message_holds_a_fence_in_a_workload_too() -> None:
    graph = graph_of(
        Programs(
            (
                (RankOperation(SEND, 8, 1),),
                (
                    RankOperation(RECV, 8, 0, after=(2,)),
                    RankOperation(CALC, 700),
                    RankOperation(CALC, 0, after=(1,), stage=1),
                ),
            )
        )
    )
    place = {task.name: i for i, task in enumerate(graph.tasks)}
    assert graph.tasks[place["rank0.0"]].after == (place["rank1.2"],)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("ranks", "wanted"),
    [
        (
            ((RankOperation(SEND, 8, 1, after=(1,)), RankOperation(CALC, 0, stage=1)), (RankOperation(RECV, 8, 0),)),
            "in stage 1 what rank 1 receives in",
        ),
        (
            ((RankOperation(CALC, 0, stage=2), RankOperation(CALC, 0, after=(0,), stage=1)), ()),
            "a fence begins stage 1, and waits for stage 2",
        ),
        (
            ((RankOperation(CALC, 0, after=(1,), stage=1), RankOperation(CALC, 5, after=(0,))), ()),
            "wait for each other",
        ),
    ],
)
def test_stages_that_contradict_each_other_are_refused(
    ranks: tuple[tuple[RankOperation, ...], ...], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        if len(ranks[1]):
            schedule_of(Programs(ranks))
        stages_of(0, ranks[0])


def test_hops_that_a_file_gives_must_be_those_in_which_its_steps_can_be_done(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    write_msccl(algorithm_of(load_schedule("chain_broadcast:n_chunks=1", 3))[0], path)
    right = path.read_text()
    assert right.count('hop="') == 2  # one per message, where it is sent
    path.write_text(right.replace('hop="1"', 'hop="0"'))
    with pytest.raises(InputError, match="is of hop 0, and waits for one of hop 0"):
        schedule_of_algorithm(read_msccl(path)[0])
    path.write_text(right.replace(' hop="1"', ""))  # of one that says it of some, it is found out
    assert schedule_of_algorithm(read_msccl(path)[0]) == schedule_of_algorithm(
        (path.write_text(right), read_msccl(path))[1][0]
    )
