"""What one event does to a job in reserved slots: packets go through the shipped rule, `switch_model.slot_kernel`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from switch_model.prove import seeded
from switch_model.prove.packed_kernel import Words
from switch_model.prove.slot_world_kernel import (
    EPOCH,
    FIRST,
    NOTHING,
    REBOOTS,
    RESTARTS,
    WRONG,
    SlotModel,
    SlotWorld,
    clear_switch,
    decode,
    encode,
    last_sent,
    rounds_of,
)
from switch_model.prove.step_labels import FINE, NOT_ONCE, TWO_SUMS
from switch_model.slot_kernel import (
    ADD,
    ALL,
    DUPLICATE,
    OVERWRITE,
    READ,
    SENDER,
    contribute,
    in_sequence,
    without_empty,
)
from switch_model.slot_sequence import slot_and_version

_slot_and_version = njit_norefcount(slot_and_version)


@njit_norefcount
def arrive(m: SlotModel, world: SlotWorld, w: int, slot: int, r: int, ago: int) -> int:
    """Hand a worker's packet of a round, of so many epochs ago, to the switch; return the action, -1 if refused."""
    chunk = r * m.slots + slot
    number = (world.budget[EPOCH] - ago) * m.step + chunk
    place, version = _slot_and_version(chunk, 0, m.slots)
    if m.bug == seeded.VERSION_NOT_FLIPPED:
        version = 0
    if m.bug == seeded.SEQUENCE_RESTARTS:
        version = (r - 3) % 2 if r >= 3 else version  # after a tensor of three chunks on the slot
    at = 2 * place + version
    if m.reorder < m.rounds and ago == 0:
        world.passed[w, slot] = max(world.passed[w, slot], r + 1)
    if m.guarded and not _fits(m, world, at, w, number):
        return -1
    action = _count(m, world, at, w)
    if action & OVERWRITE and m.bug != seeded.HELD_NOT_KEPT:
        world.held[at] = number
    if m.skips_empty:
        before = world.filled[at]
        action = without_empty(world.filled, at, action, not has_values(m, world, w, slot, r))
        if m.bug == seeded.FILLED_NOT_RESET and before and action & OVERWRITE:
            action = action & ~OVERWRITE | ADD
        if m.bug == seeded.EMPTY_OVERWRITES and not action & (OVERWRITE | ADD | DUPLICATE):
            action |= OVERWRITE
    empty = m.skips_empty and not has_values(m, world, w, slot, r)
    _add(m, world, at, w, action, NOTHING if empty else WRONG if ago else FIRST + r)
    if action & READ and ago == 0:
        _send_result(m, world, at, w, slot, r, action)
    return action


@njit_norefcount
def has_values(m: SlotModel, world: SlotWorld, w: int, slot: int, r: int) -> bool:
    """Whether a worker has values of the chunk of this round."""
    return bool(world.owns[w] >> (r * m.slots + slot) & 1)


@njit_norefcount
def _fits(m: SlotModel, world: SlotWorld, at: int, w: int, number: int) -> bool:
    if m.bug == seeded.SEQUENCE_NOT_ASKED:
        return True
    return in_sequence(world.slots, at, w, number, world.held[at], world.held[at ^ 1], m.slots)


@njit_norefcount
def _count(m: SlotModel, world: SlotWorld, at: int, w: int) -> int:
    """Let the rule count a packet; with a seeded bug, do it wrong."""
    slots, bit, bug = world.slots, np.uint64(1) << np.uint64(w), m.bug
    if bug == seeded.NO_BUG:
        return contribute(slots, at, at ^ 1, w, m.workers, False)
    seen, beside, left = slots[at]["seen"], slots[at ^ 1]["seen"], slots[at]["count"]
    if bug == seeded.SEEN_NOT_ASKED:
        slots[at]["seen"] &= ~bit
    fan_in = m.workers - (bug == seeded.ONE_TOO_FEW) + (bug == seeded.ONE_TOO_MANY)
    action = contribute(slots, at, at ^ 1, w, fan_in, False)
    if bug == seeded.SEEN_NOT_SET:
        slots[at]["seen"] = seen
    elif bug == seeded.SHADOW_NOT_CLEARED:
        slots[at ^ 1]["seen"] = beside
    elif bug == seeded.SHADOW_ALL_CLEARED:
        slots[at ^ 1]["seen"] = np.uint64(0)
    elif bug == seeded.PARTIAL_READ and action == DUPLICATE:
        action |= READ | SENDER
    elif bug == seeded.ADDS_TO_THE_OLD and action & OVERWRITE:
        action = action & ~OVERWRITE | ADD
    elif bug == seeded.OVERWRITES_ALWAYS and action & ADD:
        action = action & ~ADD | OVERWRITE
    elif bug == seeded.COUNTS_COPIES and action == DUPLICATE and left:
        slots[at]["count"] = left - 1
        slots[at]["has_result"] = left == 1
        action |= READ | ALL if left == 1 else 0
    elif bug == seeded.ANSWERS_NONE and action & DUPLICATE:
        action = DUPLICATE
    return action


@njit_norefcount
def _add(m: SlotModel, world: SlotWorld, at: int, w: int, action: int, code: int) -> None:
    """Do to what a slot holds what the action says."""
    if action & OVERWRITE:
        for other in range(m.workers):
            world.register[at, other] = NOTHING
        world.register[at, w] = code
    elif action & ADD:
        world.register[at, w] = code if world.register[at, w] == NOTHING else WRONG


@njit_norefcount
def _send_result(m: SlotModel, world: SlotWorld, at: int, w: int, slot: int, r: int, action: int) -> None:
    """Put a result under way: to all, or to the sender."""
    if m.bug == seeded.SHADOW_READ and action & SENDER:
        at ^= 1
    right = True
    for other in range(m.workers):
        wanted = FIRST + r if has_values(m, world, other, slot, r) else NOTHING
        right = right and world.register[at, other] == wanted
    for to in range(m.workers):
        if action & ALL or to == w:
            if right:
                world.good[to, slot] |= 1 << r
            else:
                world.bad[to, slot] |= 1 << r
    _forget_results(m, world)


@njit_norefcount
def _forget_results(m: SlotModel, world: SlotWorld) -> None:
    """Forget right results of rounds that a worker has: they are thrown away whenever they come."""
    if m.bug == seeded.ACCEPTS_ANY_RESULT or (not m.epochs and world.budget[RESTARTS] > 0):
        return
    for w in range(m.workers):
        for slot in range(m.slots):
            world.good[w, slot] &= -1 << world.awaits[w, slot]


@njit_norefcount
def take_result(m: SlotModel, world: SlotWorld, w: int, slot: int, r: int, right: bool) -> int:
    """Hand a result to a worker; return what that shows to be wrong, -1 if nothing happens."""
    awaited = world.awaits[w, slot]
    fits = awaited == r
    if m.bug == seeded.ACCEPTS_ANY_RESULT:
        fits = awaited < rounds_of(m, slot) and (awaited - r) % 2 == 0
    if not fits:
        return TWO_SUMS if r < awaited and not right else -1
    right = right and awaited == r
    world.awaits[w, slot] = awaited + 1
    world.sent[w, slot] = max(world.sent[w, slot], last_sent(m, world, w, slot))
    _forget_results(m, world)
    return FINE if right else NOT_ONCE


@njit_norefcount
def begin_epoch(m: SlotModel, world: SlotWorld) -> None:
    """Begin the job again: slots are clean, packets have other numbers, and results of before are nobody's."""
    world.budget[EPOCH] += 1
    if m.bug != seeded.SLOTS_NOT_CLEARED:
        clear_switch(m, world)
    for w in range(m.workers):
        for slot in range(m.slots):
            begin(m, world, w, slot)
            world.passed[w, slot] = 0
            world.good[w, slot] = world.bad[w, slot] = 0


@njit_norefcount
def begin(m: SlotModel, world: SlotWorld, w: int, slot: int) -> None:
    """Let a worker wait for its first result on a slot."""
    world.awaits[w, slot] = 0
    world.sent[w, slot] = last_sent(m, world, w, slot)


@njit_norefcount
def restart(m: SlotModel, world: SlotWorld, w: int) -> None:
    """Begin a worker again; where packets keep their order, those of before have come or are lost."""
    for slot in range(m.slots):
        sent = world.sent[w, slot]
        begin(m, world, w, slot)
        if m.reorder < m.rounds:
            world.passed[w, slot] = 0
        if m.reorder > 0:
            world.sent[w, slot] = sent


@njit_norefcount
def waiting_slots(m: SlotModel, world: SlotWorld, states: Words, row: int, waits: NDArray[np.int64]) -> None:
    """Write the chunk on each slot whose result each worker waits for, or -1, to int64[n_workers, n_slots]."""
    decode(m, world, states, row)
    for w in range(m.workers):
        for slot in range(m.slots):
            r = world.awaits[w, slot]
            waits[w, slot] = r * m.slots + slot if r < rounds_of(m, slot) else -1


@njit_norefcount
def is_done(m: SlotModel, world: SlotWorld) -> bool:
    """Whether all workers have all results."""
    done = True
    for w in range(m.workers):
        done = done and has_all(m, world, w)
    return done


@njit_norefcount
def has_all(m: SlotModel, world: SlotWorld, w: int) -> bool:
    """Whether a worker has all results."""
    left = 0
    for slot in range(m.slots):
        left += rounds_of(m, slot) - world.awaits[w, slot]
    return left == 0


@njit_norefcount
def first_slots(m: SlotModel, world: SlotWorld, restarts: int, reboots: int, new: Words, row: int) -> None:
    """Write the state in which all workers begin; the chunks that they own are in `world`."""
    world.budget[RESTARTS], world.budget[REBOOTS], world.budget[EPOCH] = restarts, reboots, 0
    clear_switch(m, world)
    for w in range(m.workers):
        for slot in range(m.slots):
            begin(m, world, w, slot)
            world.passed[w, slot] = world.good[w, slot] = world.bad[w, slot] = 0
    encode(m, world, new, row)
