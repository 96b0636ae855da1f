"""Collective calls out of a profile: what was sent when, and what rows of measurements and jobs they make.

One iteration out of a profile: where the calls repeat, the job that CASSINI places, and the graph of its tasks.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.units import write_size, write_time
from commsim.workload.task_graph import Graph, Task
from commsim.workload.timeline import Timeline, job_row, link_phases

from .measured import Asked, Measured

MAX_REASONS = 5
# Of a group: more than any machine has, and few enough to write down.
MAX_RANKS = 2**20


# By what a profiling name has in it; the first that fits. A receive is the send of somebody else.
_NAMES = (
    ("all_reduce_barrier", "barrier"), ("barrier", "barrier"), ("all_?reduce", "all_reduce"),
    ("reduce_scatter", "reduce_scatter"), ("all_?gather", "all_gather"), ("all_?to_?all", "all_to_all"),
    ("broadcast", "broadcast"), ("reduce", "reduce"), ("gather", "gather"), ("scatter", "scatter"),
    ("send", "send_recv"),
)  # fmt: skip
_BYTES = {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "short": 2, "char": 1, "byte": 1,
          "bool": 1, "complexfloat": 8, "complexdouble": 16}  # fmt: skip


def bytes_of_type(name: str) -> int:
    """Bytes of an element, by PyTorch's or Kineto's name of its type; 0 if it is not known."""
    name = name.lower().removeprefix("at::").removeprefix("torch.").replace("c10::", "")
    return 1 if name.startswith("float8") else _BYTES.get(name, 0)


def operation_of(name: str) -> str:
    """Operation of a profiling name such as ``nccl:_all_gather_base``; empty if it is none that is known."""
    short = name[:256].rpartition(":")[2].lower()
    return next((operation for pattern, operation in _NAMES if re.search(pattern, short)), "")


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one message, as one rank saw it.

    Parameters
    ----------
    operation : str
        One of ``commsim.core.operations``.
    size : float, bytes
        As nccl-tests counts it.
    n_ranks : int or None
        Ranks of its group, where the profile says.
    start : float, s
        On the clock of the rank.
    duration : float or None, s
        None where it was not timed, or has not ended.
    rank : int or None
        Who saw it.
    group : str
        Name of the process group.
    algorithm, protocol : str
        Where the name of the kernel says.
    """

    operation: str
    size: float
    n_ranks: int | None
    start: float
    duration: float | None
    rank: int | None = None
    group: str = ""
    algorithm: str = ""
    protocol: str = ""

    @property
    def what(self) -> tuple[str, float, str]:
        """What repeats when the program does the same again."""
        return self.operation, self.size, self.group


def measured_calls(calls: Sequence[Call], path: Path, asked: Asked) -> list[Measured]:
    """Make one row of each kind of call: its median time, and percentiles 5 and 95 where it was called often.

    A call's time in a profile includes waiting for the last rank to come, which a benchmark's does not.

    Parameters
    ----------
    calls : sequence of Call
        In any order.
    path : path
        The profile, for messages.
    asked : Asked
        What the user says of the file; receives notes.
    """
    groups: dict[tuple[str, float, int | None, str, str], list[float]] = defaultdict(list)
    for call in calls:
        if call.duration is not None:
            key = call.operation, call.size, call.n_ranks or asked.n_ranks, call.algorithm, call.protocol
            groups[key].append(call.duration)
    untimed = sum(call.duration is None for call in calls)
    if untimed:
        asked.notes.append(f"{path}: {untimed} of {len(calls)} calls have no duration, since none was recorded")
    rows = []
    for i, ((operation, size, n_ranks, algorithm, protocol), times) in enumerate(sorted(groups.items(), key=str), 1):
        low, high = _spread(times)
        rows.append(Measured(
            operation, size, statistics.median(times), n_ranks, algorithm, protocol,
            low=low, high=high, source=str(path), line=i,
        ))  # fmt: skip
    return sorted(rows, key=lambda row: (row.operation, row.n_ranks or 0, row.size))


def whole_array(operation: str, sent: float, received: float, n_ranks: int | None) -> float:
    """Size of an operation as nccl-tests counts it, from the bytes that a rank puts in and gets out.

    The larger of the two is the whole array, but for a gather or a scatter, where only the root has it.

    Parameters
    ----------
    operation : str
        Ours.
    sent, received : float, bytes
        By one rank.
    n_ranks : int or None
        Where it is known.

    Raises
    ------
    InputError
        If that needs the number of ranks, which is not known.
    """
    if operation in ("gather", "scatter"):
        if n_ranks is None:
            raise InputError(f"the size of a {operation} needs the number of its ranks")
        block = min(sent, received) or max(sent, received)
        return block * n_ranks
    return max(sent, received)


def left_out_notes(path: Path, reasons: Counter[str], what: str) -> list[str]:
    """Say how many of them were left out for which reason; of many reasons, the most frequent.

    Parameters
    ----------
    path : path
        The file.
    reasons : Counter of str
        How many for each.
    what : str
        What they are, in the plural.
    """
    notes = [f"{path}: {count} {what} left out: {why}" for why, count in reasons.most_common(MAX_REASONS)]
    others = reasons.total() - sum(count for _, count in reasons.most_common(MAX_REASONS))
    return notes + ([f"{path}: {others} {what} left out for other reasons"] if others else [])


def _spread(times: Sequence[float]) -> tuple[float | None, float | None]:
    if len(times) < 2:
        return None, None
    low, high = np.percentile(times, (5, 95))
    return float(low), float(high)


# Ranks of all calls of an iteration: each call's are written down.
MAX_MEMBERS = 2**23


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one rank sends in an iteration.

    Parameters
    ----------
    calls : tuple of Call
        In the order in which they started; the last whole iteration of the profile.
    begin : float, s
        When it began, on the clock of the rank.
    period : float, s
        Median time from one iteration to the next.
    n_seen : int
        Iterations that the profile has.
    """

    calls: tuple[Call, ...]
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


def last_iteration(calls: Sequence[Call], steps: Sequence[float] = (), period: float | None = None) -> Iteration:
    """Cut the last whole iteration out of the calls of one rank.

    Parameters
    ----------
    calls : sequence of Call
        In the order in which they started.
    steps : sequence of float, s
        When steps started, where the profiler marked them; at least two of them decide.
    period : float, s, optional
        Of an iteration, for a profile in which nothing repeats.

    Raises
    ------
    InputError
        If it cannot be told where an iteration begins and ends.
    """
    if len(steps) >= 2:
        begin, end = steps[-2], steps[-1]
        inside = tuple(call for call in calls if begin <= call.start < end)
        length = period or statistics.median(np.diff(np.array(steps)).tolist())
        return Iteration(inside, begin, length, len(steps) - 1)
    p = repeat_length([call.what for call in calls])
    if p:
        n = len(calls) // p
        starts = [call.start for call in calls]
        periods = [starts[i + p] - starts[i] for i in range(len(calls) - p * n, len(calls) - p)]
        chosen = tuple(calls[-p:])
        return Iteration(chosen, chosen[0].start, period or statistics.median(periods), n)
    if period is None:
        raise InputError(
            "the calls do not repeat and no steps are marked, so the iteration time is unknown; give it, as in"
            " --period 200ms"
        )
    begin = calls[-1].start - period
    inside = tuple(call for call in calls if call.start > begin)
    return Iteration(inside, inside[0].start, period, 1)


def periodic_job(iteration: Iteration, name: str, gap: float = 0.0) -> dict[str, Any]:
    """Make the job's entry in a ``jobs.json``: phases in which a rank sends, at the mean rate of each.

    Parameters
    ----------
    iteration : Iteration
        What is repeated.
    name : str
        Of the job.
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
    phases = link_phases(Timeline(Graph(tuple(tasks)), np.array(start), np.array(end)), rank=0, gap=gap)
    return job_row(name, iteration.n_gpus, iteration.period, phases)


def task_tables(iteration: Iteration) -> dict[str, Any]:
    """Make the graph of an iteration, as :func:`commsim.workload.task_graph.read_graph` reads it.

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


def _check_members(iteration: Iteration) -> None:
    members = sum(call.n_ranks or 0 for call in iteration.calls)
    if members > MAX_MEMBERS:
        raise InputError(
            f"the calls of an iteration have {members} ranks in all; at most {MAX_MEMBERS} are written down"
        )
