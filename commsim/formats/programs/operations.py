"""The programs of all ranks: operations, which receive takes which message, an order that ends, and a task graph."""

from __future__ import annotations

import graphlib
import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.training.task_graph import Task, TaskGraph

SEND, RECV, CALC = 1, 2, 3
# The peer or tag of a receive that takes whatever comes, as GOAL stores it.
ANY = 2**32 - 1
MAX_OPS = MAX_RANKS = 2**20
MAX_SHOWN = 4


@dataclass(frozen=True, slots=True)
class RankOperation:
    """A send, a receive or a computation of one rank.

    Parameters
    ----------
    kind : int
        SEND, RECV or CALC.
    size : int, bytes or ns
        Size of the message, or duration of the computation.
    peer, tag : int
        The other rank, and which message; 0 for a computation. ANY in a receive takes whatever comes.
    cpu, nic : int
        Number of the processor and of the NIC of the rank.
    after : tuple of int
        Operations of the same rank, by index, that must have finished.
    after_start : tuple of int
        Operations of the same rank that must have started.
    stage : int
        Number of the stage that begins with a computation of no time, if it represents a fence; else 0.
    """

    kind: int
    size: int
    peer: int = 0
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    after: tuple[int, ...] = ()
    after_start: tuple[int, ...] = ()
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Programs:
    """What every rank does.

    Parameters
    ----------
    ranks : tuple of tuple of RankOperation
        One program per rank; the order of its operations says nothing.
    """

    ranks: tuple[tuple[RankOperation, ...], ...]

    @property
    def n_ops(self) -> int:
        """Operations of all ranks."""
        return sum(len(ops) for ops in self.ranks)

    def every(self) -> Iterator[tuple[int, int, RankOperation]]:
        """Yield (rank, index, operation)."""
        for rank, ops in enumerate(self.ranks):
            for i, op in enumerate(ops):
                yield rank, i, op


@dataclass(frozen=True, slots=True)
class MatchedMessage:
    """A send and the receive that takes it.

    Parameters
    ----------
    src, dst : int
        Ranks.
    send, recv : int
        Indices of the operations in their programs.
    size : int, bytes
        What it carries.
    tag : int
        Tag of the send.
    """

    src: int
    dst: int
    send: int
    recv: int
    size: int
    tag: int


def match(programs: Programs) -> list[MatchedMessage]:
    """Pair sends with receives: of those with the same two ranks and tag, the n-th with the n-th.

    A receive with any tag (-1) takes its place in the order of the program: messages between two ranks do not overtake
    each other, so that each goes to the first receive that fits.

    Raises
    ------
    InputError
        If a receive takes from any rank, two sizes differ, one of a pair is missing, or an operation waits for none.
    """
    if programs.n_ops > MAX_OPS:
        raise InputError(f"{programs.n_ops} operations are more than {MAX_OPS}")
    n = len(programs.ranks)
    waiting: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    for rank, i, op in programs.every():
        n_ops = len(programs.ranks[rank])
        if any(not 0 <= j < n_ops or j == i for j in (*op.after, *op.after_start)):
            raise InputError(f"rank {rank}: operation {i} waits for one that is not there, or for itself")
        if op.kind == RECV and op.peer == ANY:
            raise InputError(f"rank {rank}: a receive from any rank (from -1) depends on timing; name its source")
        if op.kind != CALC and (op.peer >= n or op.peer == rank):
            raise InputError(f"rank {rank}: a message needs another rank 0..{n - 1} as its peer, got {op.peer}")
        if op.kind == RECV:
            waiting[op.peer, rank, op.tag].append(i)
    messages = []
    for rank, i, op in programs.every():
        if op.kind != SEND:
            continue
        queue = _queue(waiting, rank, op)
        if not queue:
            raise InputError(f"rank {op.peer} does not receive all that rank {rank} sends it with tag {op.tag}")
        recv = queue.popleft()
        if programs.ranks[op.peer][recv].size != op.size:
            got = programs.ranks[op.peer][recv].size
            raise InputError(f"rank {rank} sends rank {op.peer} {op.size} bytes with tag {op.tag}, which takes {got}")
        messages.append(MatchedMessage(rank, op.peer, i, recv, op.size, op.tag))
    for (src, dst, tag), queue in waiting.items():
        if queue:
            what = "any tag" if tag == ANY else f"tag {tag}"
            raise InputError(f"rank {dst} waits for a message of rank {src} with {what} that is never sent")
    return messages


def _queue(waiting: dict[tuple[int, int, int], deque[int]], rank: int, op: RankOperation) -> deque[int]:
    """Receives of a message's tag or of any tag, whichever has the first that is not taken."""
    own, other = waiting[rank, op.peer, op.tag], waiting.get((rank, op.peer, ANY), deque())
    return other if other and (not own or other[0] < own[0]) else own


def circle_of(waits: list[set[int]]) -> list[int]:
    """Numbers that wait each for the next, and the last for the first; there must be such."""
    try:
        graphlib.TopologicalSorter(dict(enumerate(waits))).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1][:0:-1])
    raise ValueError("nothing waits for itself")


def deadlock(waits: list[set[int]], names: Callable[[int], str]) -> InputError:
    """Return the error that names a circle of operations that wait for each other."""
    circle = circle_of(waits)
    first, *others = map(names, [*circle, circle[0]][: MAX_SHOWN + 1])
    shown = ", which waits for ".join(others)
    shown += f", and so on ({len(circle)} in all)" if len(circle) > MAX_SHOWN else ""
    return InputError(f"ranks wait for each other, so it never ends (a deadlock): {first} waits for {shown}")


def sorted_after(waits: list[set[int]]) -> list[int] | None:
    """Numbers so that each comes after those it waits for, small ones first; None if some wait for each other."""
    missing = [len(waited) for waited in waits]
    followers: list[list[int]] = [[] for _ in waits]
    for i, waited in enumerate(waits):
        for j in waited:
            followers[j].append(i)
    free = [i for i, n in enumerate(missing) if not n]
    out = []
    while free:
        i = heapq.heappop(free)
        out.append(i)
        for j in followers[i]:
            missing[j] -= 1
            if not missing[j]:
                heapq.heappush(free, j)
    return out if len(out) == len(waits) else None


def graph_of(programs: Programs) -> TaskGraph:
    """Turn programs into tasks: computations occupy ``rank0.cpu0``, messages ``rank0.nic0`` of the sender.

    Messages may come before they are waited for, as those of LogGOPSim.

    Raises
    ------
    InputError
        If the programs are empty, sends and receives do not match, or ranks wait for each other.
    """
    ops = list(programs.every())
    finish = {(rank, i): n for n, (rank, i, _) in enumerate(ops)}
    started = sorted({(rank, j) for rank, _, op in ops for j in op.after_start})
    start = {place: len(ops) + n for n, place in enumerate(started)}  # an operation's start is a task of its own
    messages = match(programs)
    message = {(m.dst, m.recv): finish[m.src, m.send] for m in messages}

    def before(rank: int, op: RankOperation) -> set[int]:
        return {finish[rank, j] for j in op.after} | {start[rank, j] for j in op.after_start}

    waits = [before(rank, op) | ({message[rank, i]} if (rank, i) in message else set()) for rank, i, op in ops]
    for m in messages:  # of a message's receive, fences hold for the message itself
        there = programs.ranks[m.dst]
        waits[finish[m.src, m.send]] |= {finish[m.dst, j] for j in there[m.recv].after if there[j].stage}
    waits += [before(rank, programs.ranks[rank][i]) for rank, i in started]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(
            waits, lambda n: "rank {}'s operation {}".format(*(ops[n][:2] if n < len(ops) else started[n - len(ops)]))
        )
    place = {n: k for k, n in enumerate(order)}
    tasks = []
    for n in order:
        after = tuple(sorted(place[w] for w in waits[n]))
        if n < len(ops):
            tasks.append(_task(*ops[n], after))
        else:
            rank, i = started[n - len(ops)]
            tasks.append(Task(f"rank{rank}.{i}.start", (), after=after))
    return TaskGraph(tuple(tasks))


def _task(rank: int, i: int, op: RankOperation, after: tuple[int, ...]) -> Task:
    name = f"rank{rank}.{i}"
    if op.kind == SEND:
        return Task(name, (f"rank{rank}.nic{op.nic}",), 0.0, "send", (rank, op.peer), float(op.size), after=after)
    if op.kind == CALC and op.size:
        return Task(name, (f"rank{rank}.cpu{op.cpu}",), op.size / 1e9, after=after)
    return Task(name, (), after=after)
