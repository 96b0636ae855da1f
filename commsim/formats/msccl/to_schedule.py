"""From steps of thread blocks to a schedule, checked against the postcondition of its collective."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from commsim.core.checking.check import check
from commsim.core.errors import InputError, ScheduleError
from commsim.core.schedule import TRANSFER, Block, Schedule

from .algorithm import ANY, LATER, RECEIVING, SENDING, Addresses, Algorithm, Edge
from .messages import Transfers

MAX_ADDRESSES = MAX_TOUCHES = 2**21
MANY_GPUS, MAX_TRIES = 64, 8


def schedule_of_algorithm(algorithm: Algorithm) -> Schedule:
    """Match sends with receives, and put the messages into hops.

    A dependency between steps that touch no common chunk is a fence; a schedule has no other order.

    Raises
    ------
    InputError
        If the steps wait for each other, their result depends on which thread block is faster, or the schedule does
        not do what its collective promises.
    """
    addresses = Addresses(algorithm)
    n = len(algorithm.gpus)
    if n * (2 * algorithm.n_chunks + addresses.n_scratch) > MAX_ADDRESSES:
        raise InputError(f"{algorithm.name}: more than {MAX_ADDRESSES} chunks on all GPUs")
    if sum(s.count for gpu in algorithm.gpus for block in gpu.blocks for s in block.steps) > MAX_TOUCHES:
        raise InputError(f"{algorithm.name}: its steps move more than {MAX_TOUCHES} chunks")
    transfers = Transfers(algorithm, addresses)
    _refuse_races(transfers, Transfers(algorithm, Addresses(algorithm), backwards=True), algorithm.name)
    count = len(transfers.moves)
    stage, hop = _marked(transfers, algorithm.name) or _earliest(transfers, algorithm.name)
    order = sorted(range(count), key=lambda m: (stage[m], hop[m], m))
    body = np.zeros(count, TRANSFER)
    if count:
        moves = [transfers.moves[m] for m in order]
        columns = {
            "src": [m.src for m in moves], "dst": [m.dst for m in moves], "op": [m.op for m in moves],
            "src_buffer": [m.source[0] for m in moves], "src_chunk": [m.source[1] for m in moves],
            "dst_buffer": [m.target[0] for m in moves], "dst_chunk": [m.target[1] for m in moves],
            "count": [m.count for m in moves], "channel": [m.channel for m in moves],
            "stage": np.unique([stage[m] for m in order], return_inverse=True)[1],
            "hop": np.unique([(stage[m], hop[m]) for m in order], axis=0, return_inverse=True)[1].ravel(),
        }  # fmt: skip
        for field, column in columns.items():
            body[field] = column
    n_hops, n_fences = (int(body[f].max(initial=-1)) + 1 for f in ("hop", "stage"))
    blocks = (Block(body, n_hops, max(0, n_fences - 1)),) if count else ()
    return _proved(algorithm, addresses, blocks)


def _edges(transfers: Transfers) -> list[Edge]:
    connections = [(a, b, ANY) for connection in transfers.connections for a, b in itertools.pairwise(connection)]
    return [*transfers.edges, *connections]


def _earliest(transfers: Transfers, name: str) -> tuple[list[int], list[int]]:
    """Stages and hops as early as all that waits allows."""
    edges, count = _edges(transfers), len(transfers.moves)
    fences = [(a, b, LATER) for a, b in transfers.fences]
    stage = levels(count, [*((a, b, ANY) for a, b, _ in edges), *fences], name)
    return stage, levels(count, [edge for edge in edges if stage[edge[0]] == stage[edge[1]]], name)


def _marked(transfers: Transfers, name: str) -> tuple[list[int], list[int]] | None:
    """Stages and hops as the file says, if it does of every message: what may be at once cannot be seen from steps."""
    marks = [move.mark for move in transfers.moves]
    if not marks or min(map(min, marks)) < 0:
        return None
    for a, b, kind in [*_edges(transfers), *((a, b, LATER) for a, b in transfers.fences)]:
        if marks[a] > marks[b] or (kind == LATER and marks[a] == marks[b]):
            (gpu, block, step), _ = transfers.names[b]
            raise InputError(
                f"{name}: gpu {gpu}, thread block {block}, step {step} is of hop {marks[b][1]}, and waits for one of "
                f"hop {marks[a][1]}"
            )
    return [stage for stage, _ in marks], [hop for _, hop in marks]


def _refuse_races(forwards: Transfers, backwards: Transfers, name: str) -> None:
    """Compare the order of messages in two runs of the steps; what no dependency orders differs between them."""
    orders = [
        {(transfers.names[a], transfers.names[b]) for a, b, _ in transfers.edges} for transfers in (forwards, backwards)
    ]
    for _, (other, _) in sorted(orders[0] ^ orders[1]):
        raise InputError(
            f"{name}: on gpu {other[0]} step {other[2]} of thread block {other[1]} uses a chunk that another thread"
            f" block also uses, without a dependency between them"
        )


def _proved(algorithm: Algorithm, addresses: Addresses, blocks: tuple[Block, ...]) -> Schedule:
    """Build the schedule and check it; the root, which a file does not say, is the first rank that makes it right."""
    n = len(algorithm.gpus)
    problem: ScheduleError | None = None
    for root in _roots(algorithm, addresses.operation)[: n if n <= MANY_GPUS else MAX_TRIES]:
        schedule = Schedule(
            algorithm.name, addresses.operation, n, 0, algorithm.n_chunks, addresses.n_scratch, blocks, root,
            weights=np.array(algorithm.weights, np.float64),
        )  # fmt: skip
        if addresses.operation == "custom":
            return schedule
        try:
            check(schedule)
        except ScheduleError as error:
            problem = problem or error
            continue
        return schedule
    assert problem is not None  # at least one root was tried
    raise problem


def _roots(algorithm: Algorithm, operation: str) -> list[int]:
    """Ranks that can be the root: all others receive in a broadcast, and send in a reduction."""
    if operation not in ("broadcast", "reduce"):
        return [0]
    moving = RECEIVING if operation == "broadcast" else SENDING
    idle = [
        rank for rank, gpu in enumerate(algorithm.gpus)
        if not any(step.kind in moving for block in gpu.blocks for step in block.steps)
    ]  # fmt: skip
    return idle[:1] or list(range(len(algorithm.gpus)))


def levels(n: int, edges: Iterable[Edge], name: str) -> list[int]:
    """Return the smallest number of each thing that all edges allow.

    Things that come after each other in a circle get one number.

    Parameters
    ----------
    n : int
        How many things there are.
    edges : iterable of Edge
        Edges between them.
    name : str
        Name of the algorithm, used in messages.

    Raises
    ------
    InputError
        If one of a circle must be later than another.
    """
    rows = list(edges)
    circle = _circles(n, rows)
    after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b, kind in rows:
        if circle[a] != circle[b]:
            after[circle[b]].append((circle[a], int(kind != ANY)))
        elif kind == LATER:
            raise InputError(f"{name}: messages overtake each other in a way that no order of hops allows")
    level = [0] * n
    for c in range(n):  # circles are numbered so that what they come after has smaller numbers
        level[c] = max((level[before] + step for before, step in after[c]), default=0)
    return [level[circle[i]] for i in range(n)]


def _circles(n: int, edges: list[Edge]) -> list[int]:
    """Find the circle (strongly connected component) of each thing, numbered after those that it comes after.

    References
    ----------
    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    before: list[list[int]] = [[] for _ in range(n)]
    for a, b, _ in edges:
        before[b].append(a)
    discovered, low, circle = [-1] * n, [0] * n, [-1] * n
    waiting: list[int] = []
    n_discovered = n_circles = 0
    for root in range(n):
        stack = [(root, 0)] if discovered[root] < 0 else []
        while stack:
            i, k = stack.pop()
            if k == 0:
                discovered[i] = low[i] = n_discovered
                n_discovered += 1
                waiting.append(i)
            if k < len(before[i]):
                stack.append((i, k + 1))
                j = before[i][k]
                if discovered[j] < 0:
                    stack.append((j, 0))
                elif circle[j] < 0:
                    low[i] = min(low[i], discovered[j])
                continue
            if low[i] == discovered[i]:
                while circle[i] < 0:
                    circle[waiting.pop()] = n_circles
                n_circles += 1
            if stack and circle[i] < 0:
                low[stack[-1][0]] = min(low[stack[-1][0]], low[i])
    return circle
