"""A schedule among some of the ranks: what a process group, or an MPI communicator, runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import InputError
from .schedule import INPUT, OUTPUT, SCRATCH, TRANSFER, Block, Schedule, Transfers


def on_group(schedule: Schedule, ranks: Sequence[int], n_ranks: int) -> Schedule:
    """Return the schedule as `n_ranks` ranks run it when only some of them take part.

    To simulate, there is no need for it: a placement of the group's ranks says where they sit. It is for executing
    on a subset of the processes that are running.

    Parameters
    ----------
    schedule : Schedule
        For ``len(ranks)`` ranks.
    ranks : sequence of int
        The rank that plays each rank of the schedule; all different.
    n_ranks : int
        Ranks in all; the others send and receive nothing.

    Returns
    -------
    Schedule
        With peers renumbered and rounds written out; a custom one, since what it promises is about the group only.
        The result of an operation that is out of place is copied over the input in the end.

    Raises
    ------
    InputError
        If `ranks` are not as many as the schedule has, or not different ranks of all.
    """
    name = f"{schedule.name} on a group"
    if len(ranks) != schedule.n_ranks:
        raise InputError(f"{name}: the schedule has {schedule.n_ranks} ranks, got a group of {len(ranks)}")
    if len(set(ranks)) != len(ranks) or not all(0 <= rank < n_ranks for rank in ranks):
        raise InputError(f"{name}: a group must be different ranks 0..{n_ranks - 1}, got {list(ranks)}")
    number = np.concatenate((np.array(ranks), n_ranks + np.arange(schedule.n_helpers)))
    transfers, n_hops = schedule.expand(), schedule.n_hops
    stages = sum(block.n_fences * block.times for block in schedule.blocks)
    n_scratch = schedule.n_scratch
    if not schedule.in_place:
        n_scratch += schedule.n_chunks
        transfers = _through_scratch(schedule, transfers)
        transfers = np.concatenate((transfers, _home_again(schedule, transfers, stages)))
        n_hops += 1
    transfers["src"], transfers["dst"] = number[transfers["src"]], number[transfers["dst"]]
    block = Block(transfers, n_hops, stages)
    return Schedule(schedule.name, "custom", n_ranks, schedule.n_helpers, schedule.n_chunks, n_scratch, (block,))


def _through_scratch(schedule: Schedule, transfers: Transfers) -> Transfers:
    """Put the output behind the scratch memory: a custom schedule has no output of its own."""
    for end in ("src", "dst"):
        out = transfers[f"{end}_buffer"] == OUTPUT
        transfers[f"{end}_chunk"][out] += schedule.n_scratch
        transfers[f"{end}_buffer"][out] = SCRATCH
    return transfers


def _home_again(schedule: Schedule, transfers: Transfers, stage: int) -> Transfers:
    """Copy what was written there over the input, chunk by chunk."""
    out = transfers[(transfers["dst_buffer"] == SCRATCH) & (transfers["dst_chunk"] >= schedule.n_scratch)]
    count = out["count"].astype(np.int64)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    chunk = np.repeat(out["dst_chunk"] - schedule.n_scratch, count) + within
    who, chunk = np.unique(np.stack((np.repeat(out["dst"], count), chunk)), axis=1)
    back = np.zeros(len(who), TRANSFER)
    back["src"] = back["dst"] = who
    back["src_chunk"], back["dst_chunk"], back["count"] = chunk + schedule.n_scratch, chunk, 1
    back["src_buffer"], back["dst_buffer"] = SCRATCH, INPUT
    back["hop"], back["stage"] = schedule.n_hops, stage
    return back
