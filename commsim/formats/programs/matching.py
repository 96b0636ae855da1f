"""Which receive takes which message, and an order in which things that wait for each other can be done."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from commsim.core.errors import InputError

from .operations import ANY, CALC, RECV, SEND, Programs

MAX_OPS = MAX_RANKS = 2**20
MAX_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Message:
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
        Of the send.
    """

    src: int
    dst: int
    send: int
    recv: int
    size: int
    tag: int


def match(programs: Programs) -> list[Message]:
    """Pair sends with receives: of those with the same two ranks and tag, the n-th with the n-th.

    Raises
    ------
    InputError
        If a receive takes whatever comes, two sizes differ, one of a pair is missing, or an operation waits for none.
    """
    if programs.n_ops > MAX_OPS:
        raise InputError(f"{programs.n_ops} operations are more than {MAX_OPS}")
    n = len(programs.ranks)
    waiting: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for rank, i, op in programs.every():
        n_ops = len(programs.ranks[rank])
        if any(not 0 <= j < n_ops or j == i for j in (*op.after, *op.after_start)):
            raise InputError(f"rank {rank}: operation {i} waits for one that is not there, or for itself")
        if op.kind == RECV and ANY in (op.peer, op.tag):
            raise InputError(f"rank {rank}: a receive takes whatever comes, so who sends it depends on time; name both")
        if op.kind != CALC and (op.peer >= n or op.peer == rank):
            raise InputError(f"rank {rank}: a message needs another rank 0..{n - 1} as its peer, got {op.peer}")
        if op.kind == RECV:
            waiting[op.peer, rank, op.tag].append(i)
    for queue in waiting.values():
        queue.reverse()
    messages = []
    for rank, i, op in programs.every():
        if op.kind != SEND:
            continue
        queue = waiting[rank, op.peer, op.tag]
        if not queue:
            raise InputError(f"rank {op.peer} does not receive all that rank {rank} sends it with tag {op.tag}")
        recv = queue.pop()
        if programs.ranks[op.peer][recv].size != op.size:
            got = programs.ranks[op.peer][recv].size
            raise InputError(f"rank {rank} sends rank {op.peer} {op.size} bytes with tag {op.tag}, which takes {got}")
        messages.append(Message(rank, op.peer, i, recv, op.size, op.tag))
    for (src, dst, tag), queue in waiting.items():
        if queue:
            raise InputError(f"rank {dst} waits for a message of rank {src} with tag {tag} that nobody sends")
    return messages


def circle_of(waits: list[set[int]]) -> list[int]:
    """Numbers of which each waits for the next, and the last for the first; there must be such."""
    left = [len(mine) for mine in waits]
    followers: list[list[int]] = [[] for _ in waits]
    for i, mine in enumerate(waits):
        for j in mine:
            followers[j].append(i)
    ready = [i for i, n in enumerate(left) if not n]
    for i in ready:  # grows
        for j in followers[i]:
            left[j] -= 1
            if not left[j]:
                ready.append(j)
    at = next(i for i, n in enumerate(left) if n)
    seen: dict[int, None] = {}
    while at not in seen:
        seen[at] = None
        at = next(j for j in sorted(waits[at]) if left[j])
    path = list(seen)
    return path[path.index(at) :]


def deadlock(waits: list[set[int]], names: Callable[[int], str]) -> InputError:
    """Return the error that says who waits for whom."""
    circle = circle_of(waits)
    first, *others = map(names, [*circle, circle[0]][: MAX_SHOWN + 1])
    shown = ", which waits for ".join(others)
    shown += f", and so on ({len(circle)} in all)" if len(circle) > MAX_SHOWN else ""
    return InputError(f"ranks wait for each other, so it never ends (a deadlock): {first} waits for {shown}")


def sorted_after(waits: list[set[int]]) -> list[int] | None:
    """Numbers so that each stands after those it waits for, small ones first; None if some wait for each other."""
    missing = [len(mine) for mine in waits]
    followers: list[list[int]] = [[] for _ in waits]
    for i, mine in enumerate(waits):
        for j in mine:
            followers[j].append(i)
    ready = [i for i, n in enumerate(missing) if not n]
    out = []
    while ready:
        i = heapq.heappop(ready)
        out.append(i)
        for j in followers[i]:
            missing[j] -= 1
            if not missing[j]:
                heapq.heappush(ready, j)
    return out if len(out) == len(waits) else None
