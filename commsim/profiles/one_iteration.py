"""One iteration out of a profile: where the calls repeat, the job that CASSINI places, and the graph of its tasks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.units import write_size, write_time
from commsim.training.task_graph import Task, TaskGraph
from commsim.training.timeline import TaskTimeline, job_row, link_phases

from .calls import RecordedCall

# Ranks of all calls of an iteration: each call's are written down.
MAX_MEMBERS = 2**23


@dataclass(frozen=True, slots=True)
class RankIteration:
    """What one rank sends in an iteration.

    Parameters
    ----------
    calls : tuple of RecordedCall
        Calls in the order in which they started; the last whole iteration of the profile.
    begin : float, s
        Begin on the clock of the rank.
    period : float, s
        Median time from one iteration to the next.
    n_seen : int
        Iterations that the profile has.
    """

    calls: tuple[RecordedCall, ...]
    begin: float
    period: float
    n_seen: int

    @property
    def n_gpus(self) -> int:
        """Ranks of the largest group that is known."""
        return max((call.n_ranks or 1 for call in self.calls), default=1)


def repeat_length(signatures: Sequence[object]) -> int:
    """Find the least p such that the last calls repeat every p, through at least two whole repeats.

    Of all p, the one whose repeats reach back furthest counts; a warm-up before them may be different. 0 if none does.
    """
    back = list(signatures)[::-1]
    border = [0] * len(back)  # of each beginning, the longest part that both begins and ends it
    best, reach = 0, 0
    for i in range(1, len(back)):
        k = border[i - 1]
        while k and back[i] != back[k]:
            k = border[k - 1]
        border[i] = k + (back[i] == back[k])
        p, length = i + 1 - border[i], i + 1
        if length >= 2 * p and length > reach:
            best, reach = p, length
    return best


def last_iteration(
    calls: Sequence[RecordedCall], steps: Sequence[float] = (), period: float | None = None
) -> RankIteration:
    """Cut the last whole iteration out of the calls of one rank.

    Parameters
    ----------
    calls : sequence of RecordedCall
        Calls in the order in which they started.
    steps : sequence of float, s
        Starts of steps, where the profiler marked them; at least two of them decide.
    period : float, s, optional
        Period of an iteration, for a profile in which nothing repeats.

    Raises
    ------
    InputError
        If the beginning and end of an iteration are not clear.
    """
    if len(steps) >= 2:
        begin, end = steps[-2], steps[-1]
        inside = tuple(call for call in calls if begin <= call.start < end)
        length = period or statistics.median(np.diff(np.array(steps)).tolist())
        return RankIteration(inside, begin, length, len(steps) - 1)
    p = repeat_length([call.what for call in calls])
    if p:
        n = len(calls) // p
        starts = [call.start for call in calls]
        periods = [starts[i + p] - starts[i] for i in range(len(calls) - p * n, len(calls) - p)]
        chosen = tuple(calls[-p:])
        return RankIteration(chosen, chosen[0].start, period or statistics.median(periods), n)
    if period is None:
        raise InputError(
            "the calls do not repeat and no steps are marked, so the iteration time is unknown; give it, as in"
            " --period 200ms"
        )
    begin = calls[-1].start - period
    inside = tuple(call for call in calls if call.start > begin)
    return RankIteration(inside, inside[0].start, period, 1)


def periodic_job(iteration: RankIteration, name: str, gap: float = 0.0) -> dict[str, Any]:
    """Make the job's entry in a ``jobs.json``: phases in which a rank sends, at the mean rate of each.

    Parameters
    ----------
    iteration : RankIteration
        What is repeated.
    name : str
        Name of the job.
    gap : float, s
        Shorter pauses between calls do not end a phase.

    Raises
    ------
    InputError
        If calls have no duration, a group's size is not known, or there are too many ranks to write down.
    """
    if not (name and name.isprintable()):
        raise InputError(f"a job's name is printable text, got {name!r}")
    _check_members(iteration)
    tasks, start, end = [], [], []
    for i, call in enumerate(iteration.calls):
        if call.duration is None or not call.n_ranks:
            missing = "duration" if call.duration is None else "group in the profile"
            raise InputError(f"call {i} of the iteration, {call.operation} of {call.size:.0f} B, has no {missing}")
        operation = "send" if call.operation == "send_recv" else call.operation
        tasks.append(Task(f"call{i}", (), operation=operation, group=tuple(range(call.n_ranks)), size=call.size))
        start.append(call.start - iteration.begin)
        end.append(call.start - iteration.begin + call.duration)
    if not tasks:
        raise InputError("the iteration has no calls")
    phases = link_phases(TaskTimeline(TaskGraph(tuple(tasks)), np.array(start), np.array(end)), rank=0, gap=gap)
    return job_row(name, iteration.n_gpus, iteration.period, phases)


def task_tables(iteration: RankIteration) -> dict[str, Any]:
    """Make the graph of an iteration, as :func:`commsim.training.task_graph.read_graph` reads it.

    Calls are issued when they were, one computation apart, and wait for each other on one network; how long they take
    is left to the model.
    """
    _check_members(iteration)
    rows: list[dict[str, Any]] = []
    before = iteration.begin
    for i, call in enumerate(iteration.calls):
        if not call.n_ranks:
            raise InputError(f"call {i} of the iteration, {call.operation}, has no group in the profile")
        rows.append({
            "name": f"compute{i}", "resources": ["gpu0.compute"], "duration": write_time(max(0.0, call.start - before)),
            "after": [f"compute{i - 1}"] if i else [],
        })  # fmt: skip
        rows.append({
            "name": f"call{i}", "resources": ["gpu0.network"], "size": write_size(call.size),
            "operation": "send" if call.operation == "send_recv" else call.operation,
            "group": list(range(call.n_ranks)), "after": [f"compute{i}"],
        })  # fmt: skip
        before = call.start
    rows.append({
        "name": "rest", "resources": ["gpu0.compute"],
        "duration": write_time(max(0.0, iteration.begin + iteration.period - before)),
        "after": [f"compute{len(iteration.calls) - 1}"] if iteration.calls else [],
    })  # fmt: skip
    return {"schema": 1, "tasks": rows}


def _check_members(iteration: RankIteration) -> None:
    members = sum(call.n_ranks or 0 for call in iteration.calls)
    if members > MAX_MEMBERS:
        raise InputError(
            f"the calls of an iteration have {members} ranks in all; at most {MAX_MEMBERS} are written down"
        )
