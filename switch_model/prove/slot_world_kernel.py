"""A job in reserved slots, its workers and what is under way: as tables that the rule works on, and packed into words.

What is under way is what has ever been sent: a packet may come late, twice or never, so that losses, copies and
repetitions need no counting. What a slot holds is, for each worker, whose round's values were added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_called, njit_norefcount
from switch_model.prove.packed_kernel import Words, put, take
from switch_model.prove.seeded import SENDS_AHEAD
from switch_model.slot_kernel import Rows

# What a slot holds of a worker: nothing, something that does not belong there, or FIRST + r, its values of round r.
NOTHING, WRONG, FIRST = 0, 1, 2
ANY = 1 << 20  # of `reorder`
RESTARTS, REBOOTS, EPOCH = range(3)  # of `budget`


class SlotModel(NamedTuple):
    """What a system of reserved slots is, and what may happen to it.

    Parameters
    ----------
    workers, slots, chunks, rounds : int
        Numbers; a slot has at most `rounds` chunks.
    guarded : int
        1 if the switch asks whether a packet is in sequence.
    skips_empty : int
        1 if packets of workers that lack a block have no values.
    reorder : int
        By how many rounds a packet may come too late, or ANY.
    epochs : int
        1 if a failure begins a new epoch with clean slots, 0 if it goes unnoticed.
    step : int
        Packets' numbers of an epoch.
    bug : int
        Seeded bug, or 0.
    symmetric : int
        1 if states that differ in the workers' numbers only are one.
    round_bits, sent_bits, passed_bits, code_bits, held_bits, column_bits : int
        Widths of packed numbers: of the round that a worker awaits, of the last one sent and of the last one that has
        come (0 where they are not needed), of what a slot holds of a worker, of a packet's number, of a worker's part.
    """

    workers: int
    slots: int
    chunks: int
    rounds: int
    guarded: int
    skips_empty: int
    reorder: int
    epochs: int
    step: int
    bug: int
    symmetric: int
    round_bits: int
    sent_bits: int
    passed_bits: int
    code_bits: int
    held_bits: int
    column_bits: int


class SlotWorld(NamedTuple):
    """One state.

    Parameters
    ----------
    slots : SLOT_ROW[2 n_slots]
        State of the switch, on which the rule works; the two versions of a slot stand side by side.
    held, filled, register : int64[2 n_slots], bool[2 n_slots], int64[2 n_slots, n_workers]
        Packet's number that each version holds, whether values have come in its round, and whose.
    awaits, sent, passed : int64[n_workers, n_slots]
        Round whose result a worker waits for, the last round that it has ever sent a packet of, and 1 + the last round
        of which a packet has come to the switch.
    good, bad : int64[n_workers, n_slots]
        Rounds of which a right, and a wrong, result is under way to a worker; bits.
    owns : int64[n_workers]
        Chunks of which a worker has values; bits.
    budget : int64[3]
        Restarts and reboots that may still happen, and number of the epoch.
    columns : uint64[n_workers]
        Work space.
    """

    slots: Rows
    held: NDArray[np.int64]
    filled: NDArray[np.bool_]
    register: NDArray[np.int64]
    awaits: NDArray[np.int64]
    sent: NDArray[np.int64]
    passed: NDArray[np.int64]
    good: NDArray[np.int64]
    bad: NDArray[np.int64]
    owns: NDArray[np.int64]
    budget: NDArray[np.int64]
    columns: NDArray[np.uint64]


@njit_norefcount
def rounds_of(m: SlotModel, slot: int) -> int:
    """Return how many chunks a slot has."""
    return (m.chunks - slot + m.slots - 1) // m.slots


@njit_norefcount
def last_sent(m: SlotModel, world: SlotWorld, w: int, slot: int) -> int:
    """Return the last round that a worker has sent a packet of, if it never began again."""
    ahead = 1 if m.bug == SENDS_AHEAD else 0
    return int(min(world.awaits[w, slot] + ahead, rounds_of(m, slot) - 1))


@njit_norefcount
def clear_switch(m: SlotModel, world: SlotWorld) -> None:
    """Forget what the switch holds; each version expects the first packet of the epoch that belongs there."""
    for at in range(2 * m.slots):
        row = world.slots[at]
        row["seen"], row["key"], row["count"] = np.uint64(0), 0, 0
        row["has_result"], row["ecn"], row["in_unit"] = False, False, False
        world.filled[at] = False
        world.held[at] = world.budget[EPOCH] * m.step + at // 2 + m.slots * (at & 1) - 2 * m.slots
        for w in range(m.workers):
            world.register[at, w] = NOTHING


@njit_called
def encode(m: SlotModel, world: SlotWorld, words: Words, row: int) -> None:
    """Pack a state into a row; workers are put in order where their numbers do not matter."""
    for word in range(words.shape[1]):
        words[row, word] = np.uint64(0)
    bit = put(words, row, 0, world.budget[RESTARTS], 2)
    bit = put(words, row, bit, world.budget[REBOOTS], 2)
    bit = put(words, row, bit, world.budget[EPOCH], 3)
    for at in range(2 * m.slots):
        bit = put(words, row, bit, world.slots[at]["count"], 3)
        bit = put(words, row, bit, world.slots[at]["has_result"], 1)
        bit = put(words, row, bit, world.filled[at], m.skips_empty)
        first = at // 2 + m.slots * (at & 1) - 2 * m.slots
        bit = put(words, row, bit, (world.held[at] - first) // (2 * m.slots), m.held_bits)
    for w in range(m.workers):
        world.columns[w] = _column(m, world, w)
    if m.symmetric:
        _sort(world.columns)
    for w in range(m.workers):
        bit = put(words, row, bit, int(np.int64(world.columns[w])), m.column_bits)


@njit_called
def decode(m: SlotModel, world: SlotWorld, words: Words, row: int) -> None:
    """Unpack a state from a row."""
    world.budget[RESTARTS] = take(words, row, 0, 2)
    world.budget[REBOOTS] = take(words, row, 2, 2)
    world.budget[EPOCH] = take(words, row, 4, 3)
    bit = 7
    for at in range(2 * m.slots):
        slot = world.slots[at]
        slot["seen"] = np.uint64(0)
        slot["count"] = take(words, row, bit, 3)
        slot["has_result"] = take(words, row, bit + 3, 1) != 0
        world.filled[at] = take(words, row, bit + 4, m.skips_empty) != 0
        bit += 4 + m.skips_empty
        first = at // 2 + m.slots * (at & 1) - 2 * m.slots
        world.held[at] = first + 2 * m.slots * take(words, row, bit, m.held_bits)
        bit += m.held_bits
    for w in range(m.workers):
        _spread(m, world, w, take(words, row, bit, m.column_bits))
        bit += m.column_bits


@njit_norefcount
def name_again(m: SlotModel, world: SlotWorld, states: Words, new: Words) -> None:
    """Write the states as they are known, whatever numbers the workers have."""
    for row in range(len(states)):
        decode(m, world, states, row)
        encode(m, world, new, row)


@njit_norefcount
def _column(m: SlotModel, world: SlotWorld, w: int) -> np.uint64:
    """Pack what belongs to a worker; the fields that matter most for order last."""
    bits, at = np.int64(0), 0
    for slot in range(m.slots):
        bits |= world.awaits[w, slot] << at
        at += m.round_bits
        bits |= (world.sent[w, slot] if m.sent_bits else 0) << at
        at += m.sent_bits
        bits |= world.passed[w, slot] << at
        at += m.passed_bits
        bits |= world.good[w, slot] << at
        bits |= world.bad[w, slot] << (at + m.rounds)
        at += 2 * m.rounds
    for i in range(2 * m.slots):
        bits |= np.int64(world.slots[i]["seen"] >> np.uint64(w) & np.uint64(1)) << at
        bits |= world.register[i, w] << (at + 1)
        at += 1 + m.code_bits
    if m.skips_empty:
        bits |= world.owns[w] << at
    return np.uint64(bits)


@njit_norefcount
def _spread(m: SlotModel, world: SlotWorld, w: int, bits: int) -> None:
    rounds_mask, code_mask = (1 << m.rounds) - 1, (1 << m.code_bits) - 1
    for slot in range(m.slots):
        world.awaits[w, slot] = bits & ((1 << m.round_bits) - 1)
        bits >>= m.round_bits
        world.sent[w, slot] = bits & ((1 << m.sent_bits) - 1) if m.sent_bits else last_sent(m, world, w, slot)
        bits >>= m.sent_bits
        world.passed[w, slot] = bits & ((1 << m.passed_bits) - 1)
        bits >>= m.passed_bits
        world.good[w, slot] = bits & rounds_mask
        world.bad[w, slot] = bits >> m.rounds & rounds_mask
        bits >>= 2 * m.rounds
    for at in range(2 * m.slots):
        world.slots[at]["seen"] |= np.uint64(bits & 1) << np.uint64(w)
        world.register[at, w] = bits >> 1 & code_mask
        bits >>= 1 + m.code_bits
    world.owns[w] = bits if m.skips_empty else (1 << m.chunks) - 1


@njit_norefcount
def _sort(columns: NDArray[np.uint64]) -> None:
    for i in range(1, len(columns)):
        for j in range(i, 0, -1):
            if columns[j - 1] <= columns[j]:
                break
            columns[j - 1], columns[j] = columns[j], columns[j - 1]
