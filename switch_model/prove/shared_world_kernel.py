"""Fragments in shared slots, a parameter server, and what is under way: as tables, and packed into words.

What is under way is what has ever been sent, as in `slot_world_kernel`; packets to the server that it would not count
any more are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_called, njit_norefcount
from switch_model.prove.packed_kernel import Words, put, take
from switch_model.slot_kernel import Rows, Sets

NOTHING, WRONG, RIGHT = range(3)  # what a slot holds of a worker
RESTARTS, REBOOTS = range(2)  # of `budget`
MAX_SETS = 16  # of up to four workers, the empty one included


class SharedModel(NamedTuple):
    """What a system of shared slots is, and what may happen to it.

    Parameters
    ----------
    workers, slots, chunks : int
        Numbers.
    bug : int
        Seeded bug, or 0.
    """

    workers: int
    slots: int
    chunks: int
    bug: int


class SharedWorld(NamedTuple):
    """One state.

    Parameters
    ----------
    slots : SLOT_ROW[n_slots]
        State of the switch, on which the rule works.
    sets : uint64[n_slots + n_chunks + 2, 1]
        Sets of workers: of the slots, those that the server has counted of each chunk, a packet's, and all.
    register : int64[n_slots, n_workers]
        What each slot holds of each worker.
    spoilt : int64[n_chunks]
        1 if the server's sum is wrong.
    up : int64[2, n_chunks]
        Sets of workers whose sum is under way to the server, wrong ones and right ones; bit b is the set b.
    down, results : int64[n_chunks]
        Results under way to the switch, and from there to workers: 1 a wrong one, 2 a right one.
    got : int64[n_workers]
        Chunks whose result a worker has; bits.
    budget : int64[2]
        Restarts and reboots that may still happen.
    orders, renamed : int64[n_orders, n_workers], int64[n_orders, 16]
        Orders of the workers that count as the same state, and what each makes of a set.
    work : uint64[1, n_words]
        Work space.
    """

    slots: Rows
    sets: Sets
    register: NDArray[np.int64]
    spoilt: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]
    results: NDArray[np.int64]
    got: NDArray[np.int64]
    budget: NDArray[np.int64]
    orders: NDArray[np.int64]
    renamed: NDArray[np.int64]
    work: Words


@njit_called
def encode(m: SharedModel, world: SharedWorld, words: Words, row: int) -> None:
    """Pack a state into a row: as the least of what the orders of the workers make of it."""
    for order in range(len(world.orders)):
        _encode(m, world, world.work, order)
        less = order == 0
        for word in range(words.shape[1] if order else 0):
            if world.work[0, word] != words[row, word]:
                less = world.work[0, word] < words[row, word]
                break
        for word in range(words.shape[1] if less else 0):
            words[row, word] = world.work[0, word]


@njit_norefcount
def _encode(m: SharedModel, world: SharedWorld, words: Words, order: int) -> None:
    for word in range(words.shape[1]):
        words[0, word] = np.uint64(0)
    who, renamed = world.orders[order], world.renamed[order]
    bit = put(words, 0, put(words, 0, 0, world.budget[RESTARTS], 2), world.budget[REBOOTS], 2)
    for w in range(m.workers):
        bit = put(words, 0, bit, world.got[who[w]], m.chunks)
    for at in range(m.slots):
        bit = put(words, 0, bit, world.slots[at]["key"], 4)
        bit = put(words, 0, bit, renamed[np.int64(world.sets[at, 0])], m.workers)
        for w in range(m.workers):
            bit = put(words, 0, bit, world.register[at, who[w]], 2)
    for q in range(m.chunks):
        bit = put(words, 0, bit, renamed[np.int64(world.sets[m.slots + q, 0])], m.workers)
        bit = put(words, 0, bit, world.spoilt[q], 1)
        bit = put(words, 0, bit, world.down[q], 2)
        bit = put(words, 0, bit, world.results[q], 2)
        for right in range(2):
            bit = put(words, 0, bit, _rename_all(m, world.up[right, q], renamed), 1 << m.workers)


@njit_norefcount
def _rename_all(m: SharedModel, sets: int, renamed: NDArray[np.int64]) -> int:
    found = 0
    for b in range(1 << m.workers if sets else 0):
        found |= (sets >> b & 1) << renamed[b]
    return found


@njit_called
def decode(m: SharedModel, world: SharedWorld, words: Words, row: int) -> None:
    """Unpack a state from a row."""
    world.budget[RESTARTS], world.budget[REBOOTS] = take(words, row, 0, 2), take(words, row, 2, 2)
    bit = 4
    for w in range(m.workers):
        world.got[w] = take(words, row, bit, m.chunks)
        bit += m.chunks
    for at in range(m.slots):
        world.slots[at]["key"] = take(words, row, bit, 4)
        world.sets[at, 0] = np.uint64(take(words, row, bit + 4, m.workers))
        bit += 4 + m.workers
        for w in range(m.workers):
            world.register[at, w] = take(words, row, bit, 2)
            bit += 2
    for q in range(m.chunks):
        world.sets[m.slots + q, 0] = np.uint64(take(words, row, bit, m.workers))
        bit += m.workers
        world.spoilt[q] = take(words, row, bit, 1)
        world.down[q], world.results[q] = take(words, row, bit + 1, 2), take(words, row, bit + 3, 2)
        bit += 5
        for right in range(2):
            world.up[right, q] = take(words, row, bit, 1 << m.workers)
            bit += 1 << m.workers
