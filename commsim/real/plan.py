"""What one rank must do to execute its part of a schedule, worked out once, before the clock runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.dependencies import dependencies
from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds
from commsim.core.schedule import REDUCE, Schedule, Transfers

SEND, RECEIVE, LOCAL = range(3)


@dataclass(slots=True)
class TransferStep:
    """One transfer that this rank sends, receives, or both.

    Parameters
    ----------
    kind : {SEND, RECEIVE, LOCAL}
        Kind of step.
    peer, tag : int
        The other end and the channel.
    src, dst : slice
        Elements of this rank's memory that are read and written.
    reduces : bool
        Whether what arrives is added.
    hop, stage : int
        Hop and stage in the schedule.
    needs : list of int
        Steps whose result it reads.
    before : list of int
        Steps that must be complete before it may write.
    readers : list of int
        Local steps that must have read before it may write.
    staged : bool
        Whether what arrives must wait beside the memory that it is meant for.
    """

    kind: int
    peer: int
    tag: int
    src: slice
    dst: slice
    reduces: bool
    hop: int
    stage: int
    needs: list[int]
    before: list[int]
    readers: list[int]
    staged: bool


def complete_in_order(
    number: int, steps: Sequence[TransferStep], done: bytearray, complete: Callable[[int, TransferStep], None]
) -> None:
    """Complete a step, and before that what must be complete before it may write, smallest numbers first.

    Parameters
    ----------
    number : int
        Number of the step.
    steps : sequence of TransferStep
        All of the rank's.
    done : bytearray
        Whether each step is complete; `complete` marks them.
    complete : callable
        Does it, when nothing is left to wait for.
    """
    open_steps = [number]
    while open_steps:
        top = open_steps[-1]
        earlier = [p for p in steps[top].before if not done[p]]
        if earlier and not done[top]:
            open_steps += reversed(earlier)
            continue
        open_steps.pop()
        if not done[top]:
            complete(top, steps[top])


def buffer_bounds(schedule: Schedule, n_elements: int) -> NDArray[np.int64]:
    """First element of every address of a participant's memory (input, output, scratch), and the end.

    Returns
    -------
    int64[n_addresses + 1]

    Raises
    ------
    InputError
        If chunks of different sizes would be copied onto each other.
    """
    if (schedule.n_scratch or not schedule.in_place) and n_elements % schedule.n_chunks:
        raise InputError(
            f"{schedule.name} moves data between chunks, so they must be equal: "
            f"a multiple of {schedule.n_chunks} elements, got {n_elements}"
        )
    bounds = chunk_bounds(n_elements, schedule.n_chunks)
    if not schedule.in_place:
        bounds = np.concatenate((bounds, bounds[1:] + n_elements))
    scratch = np.arange(1, schedule.n_scratch + 1) * (n_elements // schedule.n_chunks)
    return np.concatenate((bounds, bounds[-1] + scratch))


def plan_rank(schedule: Schedule, rank: int, n_elements: int) -> list[TransferStep]:
    """Find the steps of one rank in program order; messages of no elements are left out on both sides.

    Helpers are processes like ranks, numbered after them.

    Parameters
    ----------
    schedule : Schedule
        What is executed.
    rank : int
        Number of the participant.
    n_elements : int
        Length of the buffer.

    Raises
    ------
    InputError
        If the schedule copies chunks of different sizes onto each other.
    """
    transfers = schedule.expand()
    bounds = buffer_bounds(schedule, n_elements)
    read, write = schedule.src_address(transfers), schedule.dst_address(transfers)
    length = bounds[read + transfers["count"]] - bounds[read]
    unequal = np.flatnonzero(length != bounds[write + transfers["count"]] - bounds[write])
    if unequal.size:
        t = transfers[unequal[0]]
        raise InputError(
            f"{schedule.name} sends chunk {t['src_chunk']} to chunk {t['dst_chunk']}, which has another size: "
            f"use a multiple of {schedule.n_chunks} elements, got {n_elements}"
        )
    own = np.flatnonzero(((transfers["src"] == rank) | (transfers["dst"] == rank)) & (length > 0))
    steps = [_step(transfers[i], rank, bounds[read[i]], bounds[write[i]], length[i]) for i in own]
    _add_data_order(schedule, transfers, own, steps)
    _add_order_within_hops(steps)
    return steps


def _step(t: np.void, rank: int, read: int, write: int, length: int) -> TransferStep:
    kind = LOCAL if t["src"] == t["dst"] else SEND if t["src"] == rank else RECEIVE
    peer = int(t["dst"] if kind == SEND else t["src"])
    src, dst = slice(int(read), int(read + length)), slice(int(write), int(write + length))
    reduces, hop, stage = bool(t["op"] == REDUCE), int(t["hop"]), int(t["stage"])
    staged = reduces and kind != SEND
    return TransferStep(kind, peer, int(t["channel"]), src, dst, reduces, hop, stage, [], [], [], staged)


def _add_data_order(schedule: Schedule, transfers: Transfers, own: NDArray[np.intp], steps: list[TransferStep]) -> None:
    """Keep of the schedule's data order what this rank must see to; the rest is seen to where it happens.

    Edges are distinguished by which memory of this rank they are about, and not by their kind: the same edge may stand
    for a read at one end and for a write at the other.
    """
    order = dependencies(schedule, transfers)
    place = {int(i): k for k, i in enumerate(own)}
    for k, i in enumerate(own):
        step = steps[k]
        for p in sorted({int(p) for p in order.pred[order.first[i] : order.first[i + 1]]} & place.keys()):
            earlier = steps[place[p]]
            wrote = earlier.kind != SEND
            if step.kind != RECEIVE and wrote and _overlap(earlier.dst, step.src):
                step.needs.append(place[p])
            if step.kind != SEND and wrote and _overlap(earlier.dst, step.dst):
                step.before.append(place[p])
            if step.kind != SEND and earlier.kind != RECEIVE and _overlap(earlier.src, step.dst):
                _add_reader(step, place[p], earlier)


def _add_reader(step: TransferStep, number: int, reader: TransferStep) -> None:
    """Note a reader: a local one reads when it begins; a send goes on reading until it is complete."""
    (step.before if reader.kind == SEND else step.readers).append(number)


def _add_order_within_hops(steps: list[TransferStep]) -> None:
    """Add what the schedule's data order leaves open inside a hop.

    All reads of a hop see the state before it, so what arrives waits for the sends of the same hop that still read
    what it changes. Sums into the same chunk are made in program order, so that they are rounded as the reference is.
    """
    first = 0
    while first < len(steps):
        end = first
        while end < len(steps) and steps[end].hop == steps[first].hop:
            end += 1
        hop = range(first, end)
        readers = [k for k in hop if steps[k].kind != RECEIVE]
        writers: list[int] = []
        for k in hop:
            step = steps[k]
            if step.kind == SEND:
                continue
            for r in readers:
                if r != k and _overlap(steps[r].src, step.dst):
                    step.staged = True
                    _add_reader(step, r, steps[r])
            step.before += [w for w in writers if _overlap(steps[w].dst, step.dst)]
            writers.append(k)
        first = end
    for step in steps:
        step.before = sorted(set(step.before))


def _overlap(a: slice, b: slice) -> bool:
    return bool(a.start < b.stop and b.start < a.stop)
