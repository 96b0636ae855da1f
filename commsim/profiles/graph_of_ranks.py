"""The steps of ranks as one graph of tasks: each rank's computation in pieces, and exchanges that ranks do together.

The n-th exchange of a process group in one rank's step is the n-th in the steps of its other ranks. Ranks begin the
step together. Computation of a rank is one line, whatever the streams; exchanges have the streams of the profile.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.core.errors import InputError
from commsim.formats.programs.operations import deadlock, sorted_after
from commsim.training.task_graph import Task, TaskGraph

from .rank import ProcessGroup, TracedCall
from .read_kineto import unknown_size
from .step import RankStep

SEND = "send"


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """A step of all traced ranks.

    Parameters
    ----------
    graph : TaskGraph
        Computations and exchanges.
    group_of : tuple of str
        Name of the process group of each task; empty for computations.
    groups : mapping of str to ProcessGroup
        Process groups by name.
    world : int
        Number of all ranks.
    traced : tuple of int
        Ranks that have a profile.
    notes : tuple of str
        What was assumed.
    """

    graph: TaskGraph
    group_of: tuple[str, ...]
    groups: Mapping[str, ProcessGroup]
    world: int
    traced: tuple[int, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _RankTaskDraft:
    name: str
    duration: float = 0.0
    operation: str = ""
    group: str = ""
    members: tuple[int, ...] = ()
    size: float = 0.0
    resources: list[str] = field(default_factory=list)
    after: set[int] = field(default_factory=set)


def graph_of_steps(steps: list[RankStep]) -> TracedGraph:
    """Join the steps of ranks.

    Parameters
    ----------
    steps : list of RankStep
        One per rank, in the order of ranks.

    Raises
    ------
    InputError
        If the bytes of a call or the ranks of a group are not known, ranks disagree about an exchange, or wait for
        each other.
    """
    numbers = [0 if step.rank.rank is None else step.rank.rank for step in steps]
    groups: dict[str, ProcessGroup] = {}
    for step in steps:
        groups |= {
            name: group for name, group in step.rank.groups.items() if group.size >= groups.get(name, group).size
        }
    world = max([1 + max(numbers), *(step.rank.world or 0 for step in steps), *(g.size for g in groups.values())])
    drafts: list[_RankTaskDraft] = []
    shared: dict[tuple[object, ...], int] = {}
    notes: dict[str, None] = {}
    for number, step in zip(numbers, steps, strict=True):
        _add_rank(number, step, drafts, shared, world, notes)
    order = sorted_after([draft.after for draft in drafts])
    if order is None:
        raise deadlock([draft.after for draft in drafts], lambda n: drafts[n].name)
    place = {n: i for i, n in enumerate(order)}
    tasks = tuple(
        Task(d.name, tuple(dict.fromkeys(d.resources)), d.duration, d.operation, d.members, d.size,
             after=tuple(sorted(place[w] for w in d.after))) for d in (drafts[n] for n in order)
    )  # fmt: skip
    names = tuple(drafts[n].group if drafts[n].operation else "" for n in order)
    return TracedGraph(TaskGraph(tasks), names, groups, world, tuple(numbers), tuple(notes))


def _add_rank(
    number: int, step: RankStep, drafts: list[_RankTaskDraft], shared: dict[tuple[object, ...], int], world: int,
    notes: dict[str, None],
) -> None:  # fmt: skip
    """Add the computation of a rank in pieces, cut where calls are issued and needed, and its exchanges."""
    count: dict[tuple[object, ...], int] = defaultdict(int)
    cuts: list[tuple[float, float, int, str]] = []
    times = [time for call, wait in zip(step.calls, step.waits, strict=True) for time in (call.issued, wait.resume)]
    progress = step.computed(times)
    for i in range(len(step.calls)):
        issued = progress[2 * i], times[2 * i]
        cuts.append((*issued, i, "issue"))
        cuts.append((*max(issued, (progress[2 * i + 1], times[2 * i + 1])), i, "wait"))
    cuts.sort(key=lambda cut: (cut[0], cut[1], cut[3] == "wait", cut[2]))
    exchange: dict[int, int] = {}
    before, at, needed = None, 0.0, set[int]()
    for k, (where, _, i, what) in enumerate([*cuts, (step.compute, 0.0, -1, "end")]):
        if where > at or needed or before is None:
            draft = _RankTaskDraft(f"rank{number}.{k}", max(where - at, 0.0), resources=[f"rank{number}.compute"])
            draft.after = ({before} if before is not None else set()) | needed
            before, at, needed = len(drafts), max(where, at), set()
            drafts.append(draft)
        if what == "issue":
            exchange[i] = _exchange(number, step, step.calls[i], drafts, shared, count, world, notes)
            drafts[exchange[i]].after.add(before)
        elif what == "wait":
            needed.add(exchange[i])
    if needed:
        drafts.append(_RankTaskDraft(f"rank{number}.end", resources=[f"rank{number}.compute"]))
        drafts[-1].after = needed | ({before} if before is not None else set())


def _exchange(
    number: int, step: RankStep, call: TracedCall, drafts: list[_RankTaskDraft], shared: dict[tuple[object, ...], int],
    count: dict[tuple[object, ...], int], world: int, notes: dict[str, None],
) -> int:  # fmt: skip
    """Return the place of an exchange among the drafts, a new one if no other rank has it yet."""
    group = _group(step, call)
    members = (
        call.peers
        if call.operation == "send_recv" and len(call.peers) == 2
        else members_of(group, number, world, notes)
    )
    if call.size is None:
        raise unknown_size(step.rank, call)
    operation = SEND if call.operation == "send_recv" and len(call.peers) == 2 else call.operation
    key = (operation == SEND, group.name, members)
    n = count[key]
    count[key] += 1
    place = shared.setdefault((*key, n), len(drafts))
    if place == len(drafts):
        drafts.append(
            _RankTaskDraft(f"{call.operation} {group.label} {n}", 0.0, operation, group.name, members, call.size)
        )
    draft = drafts[place]
    if draft.operation != operation:
        raise InputError(
            f"{step.rank.source}: call {n} of process group {group.label!r:.60} is {call.operation} of rank {number},"
            f" and {draft.operation} of another one"
        )
    draft.size = max(draft.size, call.size)
    draft.resources.append(f"rank{number}.{call.stream}")
    return place


def _group(step: RankStep, call: TracedCall) -> ProcessGroup:
    known = step.rank.groups
    if call.group in known or len(known) != 1:
        return known.get(call.group, ProcessGroup(call.group))
    return next(iter(known.values()))


def members_of(group: ProcessGroup, rank: int, world: int, notes: dict[str, None]) -> tuple[int, ...]:
    """Ranks of a group, which are assumed where the profile has only their number: neighbours.

    Raises
    ------
    InputError
        If not even their number is known.
    """
    if group.ranks:
        return group.ranks
    size = group.size or (world if not group.name else 0)
    if not size:
        raise InputError(f"the ranks of process group {group.label!r:.60} are not known: its size is in no profile")
    if size < world:
        notes[f"the ranks of process group {group.label} are not listed; {size} neighbours are assumed"] = None
    return _neighbours(rank // size * size if size < world else 0, size)


@functools.lru_cache(maxsize=1024)
def _neighbours(first: int, size: int) -> tuple[int, ...]:
    return tuple(range(first, first + size))
