"""The numeric reference of sparse collectives: a schedule run on sparse vectors, hop by hop."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.checking.check import hops
from commsim.core.errors import ScheduleError
from commsim.core.schedule import REDUCE, Schedule, Transfers
from commsim.sparse.block_sets import UNLIMITED, limits_of
from commsim.sparse.partition import Partition
from commsim.sparse.sparse_vector import SparseVector

State = dict[tuple[int, int], tuple[int, SparseVector]]
"""(participant, address) -> the chunk that it stands for, and its elements."""


@dataclass(frozen=True, slots=True)
class SparseRun:
    """Outputs of the ranks; what each participant cut away, added up; elements in each message."""

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
    """Run a schedule on sparse vectors, all reads of a hop before its writes; what a hop has written is cut after it.

    `keep` is the number of elements of largest magnitude that are left (of equals those of lower index), `above` the
    least magnitude that is left. Where every contribution takes one way to the result, as in a tree, inputs = output +
    residuals, up to rounding.
    """
    limits, floors = limits_of(keep, schedule.n_transfers), np.broadcast_to(above, schedule.n_transfers)
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
        chunk = partition.chunk_of_blocks()[vector.index // partition.block]
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
                "which no transfer has written"
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
