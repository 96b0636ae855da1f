"""What can happen to a job in reserved slots: every event in every state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from switch_model.prove import seeded
from switch_model.prove.packed_kernel import Words
from switch_model.prove.slot_events_kernel import (
    arrive,
    begin_epoch,
    has_all,
    has_values,
    is_done,
    restart,
    take_result,
)
from switch_model.prove.slot_world_kernel import (
    EPOCH,
    REBOOTS,
    RESTARTS,
    SlotModel,
    SlotWorld,
    clear_switch,
    decode,
    encode,
    rounds_of,
)
from switch_model.prove.step_labels import COMES, REBOOT, RESTART, RESULT
from switch_model.slot_kernel import ALL, READ


@njit_norefcount
def expand_slots(
    m: SlotModel, world: SlotWorld, states: Words, first: int, end: int, new: Words, origin: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> tuple[int, int]:  # fmt: skip
    """Write what states can become in one step.

    Parameters
    ----------
    m, world : SlotModel, SlotWorld
        System, and work space.
    states : uint64[n, n_words]
        States.
    first, end : int
        Which of them.
    new, origin, labels : uint64[room, n_words], int32[room], int64[room]
        Written: the next states, from which one each comes, and the step, with what it shows to be wrong from bit 56.

    Returns
    -------
    n, done : int
        States written, and the first state that is still to be expanded.
    """
    n, most = 0, m.workers * m.slots * m.rounds * (2 + world_epochs(m)) + m.workers + 1
    for i in range(first, end):
        if n + most > len(origin):
            return n, i
        n_before = n
        n = _arrivals(m, world, states, i, new, labels, n)
        n = _results(m, world, states, i, new, labels, n)
        n = _failures(m, world, states, i, new, labels, n)
        for row in range(n_before, n):
            origin[row] = i
    return n, end


@njit_norefcount
def complete_slots(
    m: SlotModel, world: SlotWorld, states: Words, first: int, end: int, new: Words, origin: NDArray[np.int32],
    done: NDArray[np.bool_],
) -> tuple[int, int]:  # fmt: skip
    """Write what states become when a worker repeats a packet and neither it nor its answer is lost.

    Parameters
    ----------
    m, world, states, first, end, new, origin
        Same as `expand_slots`.
    done : bool[n]
        Set where all workers have all results; such states and those that are set are left out.
    """
    n, most = 0, m.workers * m.slots
    for i in range(first, end):
        if n + most > len(origin):
            return n, i
        if done[i]:
            continue
        decode(m, world, states, i)
        done[i] = is_done(m, world)
        if done[i]:
            continue
        for w in range(m.workers):
            for slot in range(m.slots):
                decode(m, world, states, i)
                r = world.awaits[w, slot]
                if r < rounds_of(m, slot) and _may_repeat(m, world, w, slot):
                    if not _sends(m, world, w, slot, r):
                        continue
                    _deliver(m, world, w, slot, r, arrive(m, world, w, slot, r, 0))
                    encode(m, world, new, n)
                    origin[n] = i
                    n += 1
    return n, end


@njit_norefcount
def world_epochs(m: SlotModel) -> int:
    """Return how many earlier epochs there can be at most."""
    return 6 * m.epochs


@njit_norefcount
def _arrivals(
    m: SlotModel, world: SlotWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:
    """Let each packet come that may be under way."""
    decode(m, world, states, i)
    epoch = world.budget[EPOCH]
    for w in range(m.workers):
        for slot in range(m.slots):
            for r in range(rounds_of(m, slot)):
                for ago in range(epoch + 1):
                    decode(m, world, states, i)
                    if not _may_come(m, world, w, slot, r, ago):
                        continue
                    action = arrive(m, world, w, slot, r, ago)
                    if action < 0 and m.reorder >= m.rounds:
                        continue
                    encode(m, world, new, n)
                    labels[n] = COMES | w << 8 | (r * m.slots + slot) << 16 | ago << 24 | (action + 1) << 32
                    n += 1
    return n


@njit_norefcount
def _may_come(m: SlotModel, world: SlotWorld, w: int, slot: int, r: int, ago: int) -> bool:
    """Whether a packet of this round may be under way: it was sent, and later ones have not come too long ago."""
    if not _sends(m, world, w, slot, r):
        return False
    if ago > 0:
        return m.reorder >= m.rounds or world.passed[w, slot] == 0
    if m.bug == seeded.NEVER_REPEATS and world.passed[w, slot] > r:
        return False
    return bool(r <= world.sent[w, slot] and r + 1 + m.reorder >= world.passed[w, slot])


@njit_norefcount
def _may_repeat(m: SlotModel, world: SlotWorld, w: int, slot: int) -> bool:
    return m.bug != seeded.NEVER_REPEATS or world.passed[w, slot] <= world.awaits[w, slot]


@njit_norefcount
def _sends(m: SlotModel, world: SlotWorld, w: int, slot: int, r: int) -> bool:
    return m.bug != seeded.EMPTY_NOT_SENT or has_values(m, world, w, slot, r)


@njit_norefcount
def _results(
    m: SlotModel, world: SlotWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:
    """Let each result come that is under way."""
    for w in range(m.workers):
        for slot in range(m.slots):
            for r in range(rounds_of(m, slot)):
                for right in range(2):
                    decode(m, world, states, i)
                    under_way = world.good[w, slot] if right else world.bad[w, slot]
                    if not under_way >> r & 1:
                        continue
                    verdict = take_result(m, world, w, slot, r, right == 1)
                    if verdict < 0:
                        continue
                    encode(m, world, new, n)
                    labels[n] = RESULT | w << 8 | (r * m.slots + slot) << 16 | right << 32 | verdict << 56
                    n += 1
    return n


@njit_norefcount
def _deliver(m: SlotModel, world: SlotWorld, sender: int, slot: int, r: int, action: int) -> None:
    """Hand the answer to a packet, if it is a right sum, to those that it goes to; what was sent before is lost."""
    for w in range(m.workers if action >= 0 and action & READ else 0):
        is_for = action & ALL or w == sender
        if is_for and world.awaits[w, slot] == r and world.good[w, slot] >> r & 1:
            take_result(m, world, w, slot, r, True)


@njit_norefcount
def _failures(
    m: SlotModel, world: SlotWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:
    """Restart each worker, and reboot the switch, where that may still happen."""
    decode(m, world, states, i)
    restarts, reboots = world.budget[RESTARTS], world.budget[REBOOTS]
    if is_done(m, world):
        return n
    for w in range(m.workers if restarts else 0):
        decode(m, world, states, i)
        if has_all(m, world, w):
            continue
        world.budget[RESTARTS] -= 1
        if m.epochs:
            begin_epoch(m, world)
        else:
            restart(m, world, w)
        encode(m, world, new, n)
        labels[n] = RESTART | w << 8
        n += 1
    if reboots:
        decode(m, world, states, i)
        world.budget[REBOOTS] -= 1
        if m.epochs:
            begin_epoch(m, world)
        else:
            clear_switch(m, world)
        encode(m, world, new, n)
        labels[n] = REBOOT
        n += 1
    return n
