"""Rings in a schedule, found from its blocks without expanding them.

A *ring phase* is a run of rounds on the same connections, where every connection carries one message in each: the
one that has just arrived at its source. So connections form cycles, each connection is fed by the one before it, and
messages move on by one connection per round. Ring, hierarchical, torus and multi-ring algorithms are a few phases.

What waits for what in a phase follows from that. Let connection k of a cycle of g connections lead from
participant v(k) to v(k+1), and carry in round n the chunks T(k - n), with all T different and numbered modulo g. Then
the transfer (k, n)

- reads what (k-1, n-1) wrote: it waits for that;
- overwrites what (k, n-g) wrote and (k+1, n+1-g) read, and waits for these as well; but it waits for (k-1, n-1), which
  waits for (k-2, n-2), and so on down to (k+1, n+1-g) and (k, n-g), so that this adds nothing.

So a round is: start at the later of having sent and having received.

A connection may carry several messages in each round, in *slots*, each of a cycle of its own: NCCL cuts a piece into
slices. Messages of all slots follow each other on the connection, slot by slot and then round by round.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import REDUCE, Block, Schedule, Transfers

Whole = NDArray[np.int64]

# More phases are not looked for.
MAX_PHASES = 8


@dataclass(frozen=True, slots=True, eq=False)
class RingPhase:
    """Cycles of equal length; connection k of cycle c is at ``[k, c]``, fed by ``[k - 1, c]``.

    Parameters
    ----------
    src, dst, channel : int64[length, n_cycles]
        Source, destination and channel of each connection.
    address, count : int64[length, n_cycles]
        First address of the chunks that it carries in the first round, in the participants' address space, and how
        many; the same in each connection of a cycle.
    slot : int64[length, n_cycles]
        Place of its message among those of its connection in a round, from 0.
    rounds : tuple of (int, bool)
        Runs of rounds: how many, and whether they reduce.
    has_slots : bool
        Whether a connection carries several messages in a round.
    """

    src: Whole
    dst: Whole
    channel: Whole
    address: Whole
    count: Whole
    slot: Whole
    rounds: tuple[tuple[int, bool], ...]
    has_slots: bool = False

    @property
    def n_rounds(self) -> int:
        """Rounds in all."""
        return sum(n for n, _ in self.rounds)


def connections_of(
    phases: Sequence[RingPhase], n_participants: int
) -> tuple[NDArray[np.int32], Whole, tuple[Whole, ...]]:
    """Give numbers to the connections of all phases, in order of (source, destination, channel).

    Returns
    -------
    ends : int32[n_connections, 2], channel : int64[n_connections]
        Source and destination, and channel, of each connection.
    connection : tuple of int64[n]
        Wire of each connection of each phase, in rows.
    """
    names = ("src", "dst", "channel")
    src, dst, channel = (np.concatenate([getattr(t, name).ravel() for t in phases]) for name in names)
    key = (src * n_participants + dst) * (int(channel.max(initial=0)) + 1) + channel
    _, lead, number = np.unique(key, return_index=True, return_inverse=True)
    ends = np.stack((src[lead], dst[lead]), axis=1).astype(np.int32)
    return ends, channel[lead], tuple(np.split(number, np.cumsum([t.src.size for t in phases])[:-1]))


def find_ring_phases(schedule: Schedule, most: int = MAX_PHASES) -> tuple[RingPhase, ...] | None:
    """Find the phases of a schedule.

    Returns
    -------
    tuple of RingPhase or None
        In program order; None if the schedule is not made of phases only, or of more than `most`. One with slots is
        alone.
    """
    found: list[_Rounds] = []
    for block in schedule.blocks:
        if block.n_fences or (block.times > 1 and block.n_hops != 1) or not len(block.body):
            return None
        # How often connections change between hops, at least, by a sum over each hop that could hide a change.
        connection = block.body["src"].astype(np.int64) << 20 ^ block.body["dst"]
        begins = np.flatnonzero(np.diff(block.body["hop"], prepend=-1))
        if np.count_nonzero(np.diff(np.add.reduceat(connection * connection, begins))) >= most:
            return None
        for low, high in itertools.pairwise([*begins.tolist(), len(block.body)]):
            run = _run(schedule, block if len(begins) == 1 else _rows(block, slice(low, high)))
            if run is None:
                return None
            joined = _join(found[-1], run, schedule) if found else None
            found[-1:] = [*found[-1:], run] if joined is None else [joined]
            if len(found) > (1 if any(rounds.slot.any() for rounds in found) else most):
                return None
    phases = [_phase(run) for run in found]
    return None if any(phase is None for phase in phases) else tuple(phase for phase in phases if phase is not None)


def _rows(block: Block, which: slice) -> Block:
    """Return a hop of a block that does not repeat."""
    orders = None if block.orders is None else block.orders.rows(which)
    return Block(block.body[which], 1, 0, 1, block.first, block.step, block.xor, orders)


@dataclass(frozen=True, slots=True, eq=False)
class _Rounds:
    """Rounds on the same connections, by (source, destination, channel, slot): what they carry first and last."""

    src: Whole
    dst: Whole
    channel: Whole
    slot: Whole
    count: Whole
    first: Whole
    last: Whole
    feeder: Whole | None
    rounds: tuple[tuple[int, bool], ...]


def _run(schedule: Schedule, block: Block) -> _Rounds | None:
    """Read the rounds of a block of one hop; None if its connections are no cycles."""
    times, here = block.times, _by_connection(schedule, schedule.repetitions(block, [0]))
    if here is None:
        return None
    rows, order, address = here
    src, dst, channel, count = (rows[name].astype(np.int64) for name in ("src", "dst", "channel", "count"))
    rounds = ((times, bool(rows["op"][0] == REDUCE)),)
    begins, row = np.ones(len(src), bool), np.arange(len(src))
    begins[1:] = (np.diff(src) != 0) | (np.diff(dst) != 0) | (np.diff(channel) != 0)
    slot = row - np.maximum.accumulate(np.where(begins, row, 0))
    if times == 1:
        return _Rounds(src, dst, channel, slot, count, address, address, None, rounds)
    then = _by_connection(schedule, schedule.repetitions(block, [1]))
    if then is None or not all(np.array_equal(rows[name], then[0][name]) for name in ("src", "dst", "channel")):
        return None
    feeder = _feeder(schedule, src, dst, address, then[2])
    if feeder is None or not (np.array_equal(count[feeder], count) and np.array_equal(then[0]["count"], count)):
        return None
    # Repetition i is the image of repetition 0 under i steps. So what feeds what is the same in all of them if a step,
    # which takes connections to connections, takes each connection's feeder to the feeder of the connection's image.
    place = np.empty(len(order), np.intp)
    place[then[1]] = np.arange(len(order))
    image = place[order]
    if block.xor or block.step[0] != block.step[1] or not np.array_equal(feeder[image], image[feeder]):
        return None
    if block.orders is not None:  # chunks of a connection and of its feeder must then take the same steps
        along = block.orders.of_row[order]
        if not np.array_equal(along[feeder], along):
            return None
    at_last = _by_connection(schedule, schedule.repetitions(block, [times - 1]))
    return None if at_last is None else _Rounds(src, dst, channel, slot, count, address, at_last[2], feeder, rounds)


def _by_connection(schedule: Schedule, rows: Transfers) -> tuple[Transfers, NDArray[np.intp], Whole] | None:
    """Sort one round by connection, and there as written; return it, its order, the addresses. None unless plain."""
    src = rows["src"].copy()
    order = np.roll(np.arange(len(src)), -int(src.argmin()))
    if not (np.diff(src[order]) > 0).all():  # else they rise all round, from somewhere on: a ring in order
        order = np.lexsort((rows["channel"], rows["dst"], src))
    rows = rows[order]
    address = schedule.src_address(rows)
    plain = (rows["src"] != rows["dst"]) & (address == schedule.dst_address(rows)) & (rows["op"] == rows["op"][0])
    return (rows, order, address) if plain.all() else None


def _feeder(schedule: Schedule, src: Whole, dst: Whole, before: Whole, after: Whole) -> Whole | None:
    """Find the connection that brought, in the round before, what each connection carries now; None if not one each."""
    arrived = dst * schedule.n_addresses + before
    needed = src * schedule.n_addresses + after
    by_arrival, by_need = np.argsort(arrived), np.argsort(needed)
    come, go = arrived[by_arrival], needed[by_need]
    if not np.array_equal(come, go) or (come[1:] == come[:-1]).any():
        return None
    feeder = np.empty(len(src), np.int64)
    feeder[by_need] = by_arrival
    return feeder


def _join(a: _Rounds, b: _Rounds, schedule: Schedule) -> _Rounds | None:
    """Put two runs spans, if in the second messages move on as in the first."""
    if len(a.src) != len(b.src) or not all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("src", "dst", "channel", "count")
    ):
        return None
    feeder = _feeder(schedule, a.src, a.dst, a.last, b.first)
    if feeder is None or not np.array_equal(a.count[feeder], a.count):
        return None
    if any(run.feeder is not None and not np.array_equal(run.feeder, feeder) for run in (a, b)):
        return None
    (n, reduces), (more, also_reduces) = a.rounds[-1], b.rounds[0]
    middle = ((n + more, reduces),) if reduces == also_reduces else (a.rounds[-1], b.rounds[0])
    rounds = (*a.rounds[:-1], *middle, *b.rounds[1:])
    return _Rounds(a.src, a.dst, a.channel, a.slot, a.count, a.first, b.last, feeder, rounds)


def _phase(run: _Rounds) -> RingPhase | None:
    """Lay out the cycles; None if they are not equally long, or chunks of different messages overlap."""
    order, length = np.arange(len(run.src)), 1
    if run.feeder is not None:
        from commsim.core.jit import expected_work

        from .ring_phase_kernel import cycles

        following = np.empty_like(run.feeder)
        following[run.feeder] = np.arange(len(following))
        with expected_work(len(following)):
            order, lengths = cycles(following)
        length = int(lengths[0])
        if (lengths != length).any():
            return None
    columns = (run.src, run.dst, run.channel, run.first, run.count, run.slot)
    src, dst, channel, first, count, slot = (column[order].reshape(-1, length).T.copy() for column in columns)
    phase = RingPhase(src, dst, channel, first, count, slot, run.rounds, bool(slot.any()))
    return phase if run.feeder is None or _keeps_apart(phase) else None


def _keeps_apart(phase: RingPhase) -> bool:
    """Whether no cycle meets a participant twice, and no two messages that meet at a participant overlap."""
    if (np.diff(np.sort(phase.src, axis=0), axis=0) == 0).any():
        return False
    order = np.argsort(phase.address, axis=0)
    address = np.take_along_axis(phase.address, order, axis=0)
    if (np.diff(address, axis=0) < phase.count[:1]).any():
        return False
    if np.bincount(phase.src.ravel()).max() == 1:
        return True
    flat = np.argsort(phase.address, axis=None)
    return bool((np.diff(phase.address.ravel()[flat]) >= phase.count.ravel()[flat][:-1]).all())
