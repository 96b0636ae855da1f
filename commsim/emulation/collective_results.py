"""What each rank holds after a collective: real data, and real sums in the order of the schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.checking.check import chunks_of, hops
from commsim.core.layouts import chunk_bounds
from commsim.core.operations import OPERATIONS
from commsim.core.schedule import REDUCE, Schedule
from commsim.real.library_rules import GLOO_RING

from .rank_calls import Collective, PendingCall, Reduce

__all__ = ["results_of"]


def results_of(operations: Sequence[PendingCall | None], schedule: Schedule | None) -> list[Any]:
    """Return the result of each rank of a group; those that have not entered give nothing, and are not asked.

    Parameters
    ----------
    operations : sequence of PendingCall or None
        Call of each rank of the group.
    schedule : Schedule or None
        What was run; None for a single rank.
    """
    calls: list[Collective | None] = [None if op is None else op.call for op in operations]
    call = next(call for call in calls if call is not None)
    given = [None if call is None else call.data for call in calls]
    nothing = [None] * len(given)
    if all(one is None for one in given):
        return nothing
    name, root = call.operation, call.root
    if OPERATIONS[name].reduces:
        reduced = _reduced(call, given, schedule)
        return [one if name != "reduce" or rank == root else None for rank, one in enumerate(reduced)]
    if name == "broadcast":
        return [given[root]] * len(given)
    if name in ("all_gather", "all_gather_v"):
        return [given] * len(given)
    if name == "gather":
        return [given if rank == root else None for rank in range(len(given))]
    if name == "scatter":
        return given[root] or nothing
    # all-to-all: what every other gives to it
    return [[None if row is None else row[rank] for row in given] for rank in range(len(given))]


def _reduced(call: Collective, given: list[Any], schedule: Schedule | None) -> Sequence[Any]:
    """Return what each rank has of a reduction."""
    like = next(one for one in given if one is not None)
    given = [_zeros(like, len(like)) if one is None else one for one in given]
    n_ranks, n = len(given), len(like)
    reduce: Reduce = call.reduce or _add
    if schedule is None or call.ordered or (schedule.operation == "custom" and call.operation != "all_reduce"):
        whole = _copy(given[0])
        for one in given[1:]:
            whole = _in_order(reduce, whole, one)
        held = [whole] * n_ranks
    else:
        held = _executed(schedule, given, reduce)
    if call.operation == "reduce_scatter":
        block = n // n_ranks
        return [one[rank * block : (rank + 1) * block] for rank, one in enumerate(held)]
    return [one[:n] for one in held]


def _in_order(reduce: Reduce, left: Any, right: Any) -> Any:
    """Reduce two arrays whose order matters: MPI's functions put (left op right) where right was."""
    into = _copy(right)
    reduce(into, left)
    return into


def _executed(schedule: Schedule, given: list[Any], reduce: Reduce) -> list[Any]:
    """Execute the schedule hop by hop on the data of all ranks: all reads of a hop, then all its writes."""
    n, n_chunks = len(given[0]), schedule.n_chunks
    bounds = _bounds(schedule, n)
    whole = int(bounds[-1])
    memory = [_zeros(given[0], whole) for _ in range(schedule.n_participants)]
    has = np.zeros((schedule.n_participants, schedule.n_addresses), np.bool_)
    for rank, values in enumerate(given):
        memory[rank][:n] = values
        has[rank, :n_chunks] = True
    width = schedule.n_addresses
    for hop in hops(schedule):
        read, write, transfer = chunks_of(schedule, hop)
        adds = (hop["op"] == REDUCE)[transfer]
        parts = [_copy(memory[at // width][bounds[at % width] : bounds[at % width + 1]]) for at in read.tolist()]
        for at, part, is_sum in zip(write.tolist(), parts, adds.tolist(), strict=True):
            target = memory[at // width][bounds[at % width] : bounds[at % width + 1]]
            if is_sum and has[at // width, at % width]:
                reduce(target, part)
            else:
                target[:] = part
                has[at // width, at % width] = True
    first = int(schedule.buffer_offsets[1])
    return [one[int(bounds[first]) : int(bounds[first + n_chunks])] for one in memory[: schedule.n_ranks]]


def _bounds(schedule: Schedule, n: int) -> NDArray[np.int64]:
    """First element of each address: chunks as equal as they can be, or all alike where data moves between chunks."""
    n_chunks, n_addresses = schedule.n_chunks, schedule.n_addresses
    if schedule.operation == "reduce_scatter" and n_chunks % schedule.n_ranks == 0:
        of_block, block = n_chunks // schedule.n_ranks, n // schedule.n_ranks
        inner = chunk_bounds(block, of_block)[:-1]
        starts = (np.arange(schedule.n_ranks)[:, None] * block + inner[None, :]).ravel()
        own = np.append(starts, schedule.n_ranks * block)
    else:
        own = chunk_bounds(n, n_chunks)
    if schedule.name == GLOO_RING:  # whose segments have one length, of which the last ones fall short
        return np.minimum(np.arange(n_chunks + 1) * -(-n // n_chunks), n)
    if n_addresses == n_chunks:
        return own
    chunk = -(-n // n_chunks)
    return np.arange(n_addresses + 1) * chunk


def _add(target: Any, part: Any) -> None:
    target += part


def _copy(values: Any) -> Any:
    copy: Callable[[], Any] = getattr(values, "copy", None) or partial(values.clone)
    return copy()


def _zeros(like: Any, n: int) -> Any:
    """Return zeros of the type of an array, NumPy's or torch's."""
    return np.zeros(n, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(n)
