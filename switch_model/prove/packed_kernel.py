"""States of a protocol as rows of words, and the set of those that have been found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

Words = NDArray[np.uint64]  # one state a row
FULL = -2  # no room for another state


@njit_norefcount
def put(words: Words, row: int, at: int, value: int, width: int) -> int:
    """Write a number into a row of zeros from bit `at` on; return the bit after it. `width` is 0 to 63."""
    if width == 0:
        return at
    word, bit = at >> 6, at & 63
    words[row, word] |= np.uint64(value) << np.uint64(bit)
    if bit + width > 64:
        words[row, word + 1] |= np.uint64(value) >> np.uint64(64 - bit)
    return at + width


@njit_norefcount
def take(words: Words, row: int, at: int, width: int) -> int:
    """Read the number of `width` bits, 0 to 63, that begins at bit `at` of a row."""
    if width == 0:
        return 0
    word, bit = at >> 6, at & 63
    value = words[row, word] >> np.uint64(bit)
    if bit + width > 64:
        value |= words[row, word + 1] << np.uint64(64 - bit)
    return int(np.int64(value & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))))


@njit_norefcount
def place_of(states: Words, table: NDArray[np.int32], new: Words, row: int) -> int:
    """Return the place in the table where a state is, or would be."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for word in range(new.shape[1]):
        h = (h ^ new[row, word]) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    mask = np.uint64(len(table) - 1)
    at = h & mask
    while table[at] >= 0:
        same = True
        for word in range(new.shape[1]):
            same = same and states[table[at], word] == new[row, word]
        if same:
            break
        at = (at + np.uint64(1)) & mask
    return int(np.int64(at))


@njit_norefcount
def insert(
    states: Words, n_states: int, table: NDArray[np.int32], parents: NDArray[np.int32], new: Words,
    origin: NDArray[np.int32], n_new: int,
) -> int:  # fmt: skip
    """Add the states that are not known yet.

    Parameters
    ----------
    states, parents : uint64[room, n_words], int32[room]
        Known states in the order in which they were found, and from which other each was reached; written.
    n_states : int
        Known states.
    table : int32[power of two, more than room]
        Number of the state at each place of the hash table, or -1; written.
    new, origin : uint64[at least n_new, n_words], int32[at least n_new]
        States, and from which one each is reached.
    n_new : int
        How many.

    Returns
    -------
    int
        Known states, or FULL.
    """
    for row in range(n_new):
        at = place_of(states, table, new, row)
        if table[at] >= 0:
            continue
        if n_states == len(states):
            return FULL
        for word in range(new.shape[1]):
            states[n_states, word] = new[row, word]
        parents[n_states] = origin[row]
        table[at] = n_states
        n_states += 1
    return n_states


@njit_norefcount
def rehash(states: Words, n_states: int, table: NDArray[np.int32]) -> None:
    """Fill an empty table with all states."""
    for row in range(n_states):
        table[place_of(states, table, states, row)] = row


@njit_norefcount
def mark_completing(
    states: Words, table: NDArray[np.int32], completes: NDArray[np.bool_], new: Words, origin: NDArray[np.int32],
    n_new: int,
) -> int:  # fmt: skip
    """Mark states from which one is reached that is marked, the last ones first; return how many are newly marked."""
    n = 0
    for row in range(n_new - 1, -1, -1):
        if completes[origin[row]]:
            continue
        target = table[place_of(states, table, new, row)]
        if target >= 0 and completes[target]:
            completes[origin[row]] = True
            n += 1
    return n
