"""The numeric reference of sparse collectives: a schedule run on sparse vectors, hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checking.check import hops
from ..core.errors import InputError, ScheduleError
from ..core.schedule import REDUCE, Schedule, Transfers
from .limits import UNLIMITED, floors_of, limits_of
from .partition import Partition
from .sparse_vector import SparseVector

State = dict[tuple[int, int], tuple[int, SparseVector]]
"""(participant, address) -> the chunk that it stands for, and its elements."""


@dataclass(frozen=True, slots=True)
class SparseRun:
    """What a run leaves behind.

    Parameters
    ----------
    outputs : list of SparseVector
        Every rank's output.
    residuals : list of SparseVector
        What each participant cut away, added up over its truncations.
    sent : int64[n_transfers]
        Elements in each message.
    """

    outputs: list[SparseVector]
    residuals: list[SparseVector]
    sent: NDArray[np.int64]


def run_sparse(
    schedule: Schedule,
    vectors: Sequence[SparseVector],
    *,
    keep: ArrayLike | None = None,
    above: ArrayLike = 0.0,
    hashed: bool = False,
    bounds: tuple[int, ...] | None = None,
    block: int = 1,
) -> SparseRun:
    """Run a schedule on sparse vectors.

    All reads of a hop come before its writes, and these come in program order: without truncation the sums are those
    of :func:`commsim.core.checking.reference.run_reference` bit for bit, the sign of zeros aside. Where every
    contribution takes one way to the result, as in a tree, inputs = output + residuals, up to rounding.

    Parameters
    ----------
    schedule : Schedule
        What to run.
    vectors : sequence of SparseVector
        One per rank, of one length and kind of number.
    keep : int or int64[n_transfers], optional
        Elements: what a transfer has written is cut, after its hop, to so many of largest magnitude, of equals those
        of lower index.
    above : float or float64[n_transfers]
        Elements whose magnitude is less than this are cut too: a threshold, where a number to keep is too dear to find.
    hashed, bounds, block : bool, tuple of int, int
        How the vector is cut into chunks; see :class:`commsim.sparse.partition.Partition`.

    Raises
    ------
    InputError
        If there is not one vector per rank, their lengths or kinds of number differ, a sum is not finite, a threshold
        is negative or no number, or the schedule is out of place.
    ScheduleError
        If a transfer reads what nobody has written, or adds two different chunks.
    """
    if len(vectors) != schedule.n_ranks:
        raise InputError(f"{schedule.name} needs {schedule.n_ranks} vectors, one per rank, got {len(vectors)}")
    if len({(v.n_elements, v.value.dtype) for v in vectors}) != 1:
        raise InputError(f"{schedule.name} needs vectors of one length and kind of number")
    if not schedule.in_place:
        raise InputError(f"{schedule.name} is out of place: sparse vectors keep their chunks where they are")
    limits, floors = limits_of(keep, schedule.n_transfers), floors_of(above, schedule.n_transfers)
    state = _initial(vectors, Partition(vectors[0].n_elements, block, schedule.n_chunks, hashed, bounds))
    empty = vectors[0].at(np.arange(0))
    residuals = [empty] * schedule.n_participants
    sent = np.zeros(schedule.n_transfers, np.int64)
    done = 0
    for hop in hops(schedule):
        these = slice(done, done + len(hop))
        sent[these] = _play(schedule, hop, state)
        _truncate(schedule, hop, limits[these], floors[these], state, residuals)
        done += len(hop)
    outputs = [_gather(schedule, state, rank, empty) for rank in range(schedule.n_ranks)]
    return SparseRun(outputs, residuals, sent)


def _initial(vectors: Sequence[SparseVector], partition: Partition) -> State:
    state: State = {}
    for rank, vector in enumerate(vectors):
        chunk = partition.chunk_of_elements(vector.index)
        order = np.argsort(chunk, kind="stable")
        bounds = np.searchsorted(chunk[order], np.arange(partition.n_chunks + 1))
        for c in range(partition.n_chunks):
            state[rank, c] = c, vector.at(order[bounds[c] : bounds[c + 1]])
    return state


def _play(schedule: Schedule, hop: Transfers, state: State) -> list[int]:
    """Run one hop, all reads before all writes; return the elements in each message."""
    src, dst = schedule.src_address(hop).tolist(), schedule.dst_address(hop).tolist()
    reads = []
    for t, a in zip(hop, src, strict=True):
        addresses = [(int(t["src"]), a + k) for k in range(t["count"])]
        if any(address not in state for address in addresses):
            raise ScheduleError(
                f"{schedule.name}: in hop {t['hop']} participant {t['src']} sends chunk {t['src_chunk']}, "
                "which nobody has written"
            )
        reads.append([state[address] for address in addresses])
    for t, a, contents in zip(hop, dst, reads, strict=True):
        for k, (chunk, vector) in enumerate(contents):
            address = int(t["dst"]), a + k
            if t["op"] == REDUCE and address in state:
                held_chunk, held = state[address]
                if held_chunk != chunk:
                    raise ScheduleError(
                        f"{schedule.name}: in hop {t['hop']} participant {t['dst']} adds different chunks to each "
                        f"other, into chunk {t['dst_chunk']}"
                    )
                vector = held.merge(vector)
            state[address] = chunk, vector
    return [sum(len(vector) for _, vector in contents) for contents in reads]


def _truncate(
    schedule: Schedule,
    hop: Transfers,
    limits: NDArray[np.int64],
    floors: NDArray[np.float64],
    state: State,
    residuals: list[SparseVector],
) -> None:
    """Cut what the hop has written, and add what is cut away to the participant's residual."""
    addresses = schedule.dst_address(hop).tolist()
    for t, a, most, floor in zip(hop, addresses, limits.tolist(), floors, strict=True):
        if most == UNLIMITED and not floor:
            continue
        for address in [(int(t["dst"]), a + k) for k in range(t["count"])]:
            chunk, vector = state[address]
            kept = vector.at(np.abs(vector.value) >= floor).top_k(min(most, vector.n_elements))
            residuals[address[0]] = residuals[address[0]].merge(vector.without(kept))
            state[address] = chunk, kept


def _gather(schedule: Schedule, state: State, rank: int, empty: SparseVector) -> SparseVector:
    """Put a rank's output chunks together."""
    first = int(schedule.buffer_offsets[1])
    parts = [state[rank, a][1] for a in range(first, first + schedule.n_chunks) if (rank, a) in state]
    if not parts:
        return empty
    index = np.concatenate([part.index for part in parts])
    order = np.argsort(index, kind="stable")
    return SparseVector(empty.n_elements, index[order], np.concatenate([part.value for part in parts])[order])
