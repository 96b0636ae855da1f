"""The numeric reference: a schedule run on NumPy arrays, hop by hop. Every real backend must agree with it."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.checking.check import hops
from commsim.core.errors import InputError
from commsim.core.layouts import Layout, chunk_bounds, home_of_chunks
from commsim.core.operations import operation
from commsim.core.schedule import REDUCE, Schedule


def run_reference(schedule: Schedule, inputs: ArrayLike) -> NDArray[Any]:
    """Run a schedule on inputs [n_ranks, n_elements], and return every rank's output buffer.

    All reads of a hop come before its writes, and these come in program order: a real backend that applies them in
    program order too gets the same floats bit for bit. Parts that nothing wrote are what they were, or zero out of
    place.
    """
    inputs = np.asarray(inputs)
    n = inputs.shape[1]
    bounds = _address_bounds(schedule, n)
    memory = np.zeros((schedule.n_participants, int(bounds[-1])), inputs.dtype)
    memory[: schedule.n_ranks, :n] = inputs
    written = np.zeros((schedule.n_participants, schedule.n_addresses), np.bool_)
    written[: schedule.n_ranks, : schedule.n_chunks] = True
    for hop in hops(schedule):
        src, dst = schedule.src_address(hop), schedule.dst_address(hop)
        reads = [memory[t["src"], bounds[a] : bounds[a + t["count"]]].copy() for t, a in zip(hop, src, strict=True)]
        for t, a, values in zip(hop, dst, reads, strict=True):
            target = memory[t["dst"], bounds[a] : bounds[a + t["count"]]]
            if target.shape != values.shape:
                raise InputError(
                    f"{schedule.name}: {n} elements give blocks of unequal size, which cannot change places"
                )
            chunks = slice(a, a + t["count"])
            if t["op"] == REDUCE:
                # Reducing into an empty chunk is a copy: adding to zero would turn -0.0 into 0.0.
                held = np.repeat(written[t["dst"], chunks], np.diff(bounds[a : a + t["count"] + 1]))
                values = np.where(held, target + values, values)
            target[:] = values
            written[t["dst"], chunks] = True
    first = int(schedule.buffer_offsets[1])
    return memory[: schedule.n_ranks, bounds[first] : bounds[first] + n].copy()


def expected(name: str, inputs: ArrayLike, root: int = 0, layout: Layout = ()) -> list[tuple[slice, NDArray[Any]]]:
    """Return for each rank the part of its output that the operation promises, and its contents."""
    inputs, promise = np.asarray(inputs), operation(name)
    n_ranks, n = inputs.shape
    n_chunks = promise.least_chunks(n_ranks, layout)
    bounds = chunk_bounds(n, n_chunks).tolist()
    if promise.signals:
        return [(slice(0, 0), inputs[0, :0])] * n_ranks
    if promise.moves is not None:
        parts = []
        for r in range(n_ranks):
            _, end, origin, chunk = promise.moves(np.array([r]), n_ranks, n_chunks, layout)
            if promise.reduces:
                sums = np.zeros((end.max(initial=-1) + 1, bounds[1]), inputs.dtype)
                for e, o, c in zip(end, origin, chunk, strict=True):
                    sums[e] += inputs[o, bounds[c] : bounds[c + 1]]
                parts.append((slice(0, sums.size), sums.ravel()))
                continue
            moved = [inputs[o, bounds[c] : bounds[c + 1]] for o, c in zip(origin, chunk, strict=True)]
            parts.append((slice(0, bounds[len(moved)]), np.concatenate([inputs[0, :0], *moved])))
        return parts
    if promise.needs_equal_blocks or layout:
        ends = np.searchsorted(home_of_chunks(n_ranks, n_chunks, layout), np.arange(n_ranks + 1))
        home = [slice(bounds[a], bounds[b]) for a, b in itertools.pairwise(ends)]
    if promise.reduces:
        whole = inputs.sum(axis=0, dtype=inputs.dtype)
    elif promise.starts == "root":
        whole = inputs[root]
    else:
        whole = np.concatenate([inputs[r][home[r]] for r in range(n_ranks)])
    if promise.ends == "home":
        held = home
    else:
        held = [slice(0, n) if promise.ends == "all" or r == root else slice(0, 0) for r in range(n_ranks)]
    return [(part, whole[part]) for part in held]


def _address_bounds(schedule: Schedule, n_elements: int) -> NDArray[np.int64]:
    """First element of each address of a participant, and the end."""
    bounds = chunk_bounds(n_elements, schedule.n_chunks)
    if not schedule.in_place:
        bounds = np.concatenate((bounds[:-1], n_elements + bounds))
    if schedule.n_scratch:
        largest = -(-n_elements // schedule.n_chunks)  # a scratch chunk holds any chunk of the data
        bounds = np.concatenate((bounds[:-1], bounds[-1] + largest * np.arange(schedule.n_scratch + 1)))
    return bounds
