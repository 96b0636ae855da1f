"""From steps of thread blocks to a schedule, proved to do what its collective promises."""

from __future__ import annotations

import itertools

import numpy as np

from commsim.core.checking.check import check
from commsim.core.errors import InputError, ScheduleError
from commsim.core.schedule import TRANSFER, Block, Schedule

from .addresses import Addresses
from .algorithm import Algorithm
from .levels import ANY, LATER, levels
from .transfers import Transfers

MAX_ADDRESSES = 2**24


def schedule_of_algorithm(algorithm: Algorithm) -> Schedule:
    """Match sends with receives, and put the messages into hops.

    A dependency between steps that touch no common chunk is a fence; there is no other order in a schedule.

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
    found = Transfers(algorithm, addresses)
    _refuse_races(found, Transfers(algorithm, Addresses(algorithm), backwards=True), algorithm.name)
    wires = [(a, b, ANY) for wire in found.wires for a, b in itertools.pairwise(wire)]
    edges = [*found.edges, *wires]
    count = len(found.moves)
    fences = [(a, b, LATER) for a, b in found.fences]
    stage = levels(count, [*((a, b, ANY) for a, b, _ in edges), *fences], algorithm.name)
    hop = levels(count, [edge for edge in edges if stage[edge[0]] == stage[edge[1]]], algorithm.name)
    order = sorted(range(count), key=lambda m: (stage[m], hop[m], m))
    body = np.zeros(count, TRANSFER)
    if count:
        moves = [found.moves[m] for m in order]
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


def _refuse_races(forwards: Transfers, backwards: Transfers, name: str) -> None:
    """Compare who comes after whom in two orders of play; what no dependency orders differs between them."""
    orders = [{(found.names[a], found.names[b]) for a, b, _ in found.edges} for found in (forwards, backwards)]
    for _, (other, _) in sorted(orders[0] ^ orders[1]):
        raise InputError(
            f"{name}: on gpu {other[0]} step {other[2]} of thread block {other[1]} touches a chunk that another thread "
            "block touches too, and no dependency says which goes first"
        )


def _proved(algorithm: Algorithm, addresses: Addresses, blocks: tuple[Block, ...]) -> Schedule:
    """Build the schedule and check it; the root, which a file does not say, is the first rank that makes it right."""
    n = len(algorithm.gpus)
    rooted = addresses.operation in ("broadcast", "reduce")
    problem: ScheduleError | None = None
    for root in range(n if rooted else 1):
        schedule = Schedule(
            algorithm.name, addresses.operation, n, 0, algorithm.n_chunks, addresses.n_scratch, blocks, root
        )
        if addresses.operation == "custom":
            return schedule
        try:
            check(schedule)
        except ScheduleError as error:
            problem = problem or error
            continue
        return schedule
    assert problem is not None  # there is at least one rank
    raise problem
