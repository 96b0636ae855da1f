"""What the live switch does with a batch of frames: check, count, add, and make results of those that end a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, njit_norefcount
from switch_model.live.frames import LEAD_WORDS
from switch_model.slot_kernel import ADD, ALL, DUPLICATE, OVERWRITE, READ, contribute, in_sequence

from .frame_fields_kernel import (
    ADDED,
    ANSWERED,
    COMPLETE,
    DUPLICATES,
    FIRST,
    FORGED,
    INJECTED_IN,
    LOW,
    NO_SUCH_SLOT,
    OUT_OF_SEQUENCE,
    PACKETS_IN,
    UNKNOWN_SOURCE,
    WRONG_JOB,
    WRONG_LENGTH,
    WRONG_TAG,
    WRONG_TYPE,
    exponent_of,
    job_of,
    pool_index_of,
    swapped,
    tsi_of,
    type_and_size_of,
    whole_tsi,
    write_exponents,
)

Rows = Records


@njit_norefcount
def complete_leads(words: NDArray[np.uint32], arrived: Rows, held: NDArray[np.int64]) -> None:
    """Write what a tag covers and does not travel: the upper half of each packet's number, and zeros.

    Parameters
    ----------
    words : uint32[n_rows, 4 + k + 4]
        Frames; words 0 and 1 are written.
    arrived : ARRIVED[n]
        What came.
    held : int64[2 n_slots] or int64[1]
        Numbers that packets of each version of a slot are near to, or all packets.
    """
    for i in range(len(arrived)):
        row = arrived[i]["row"]
        if row >= 0:
            tsi = whole_tsi(int(tsi_of(words, row)), int(held[_place(words, row) % len(held)]))
            words[row, 0] = np.uint32((tsi >> 32) & LOW)
            words[row, 1] = np.uint32(np.int64(words[row, 1]) & 0xFFFF0000)


@njit_norefcount
def handle_batch(
    words: NDArray[np.uint32],
    arrived: Rows,
    members: Rows,
    slots: Rows,
    rounds: Rows,
    registers: NDArray[np.uint32],
    counters: NDArray[np.int64],
    replies: Rows,
) -> int:
    """Handle frames in the order in which they came.

    Parameters
    ----------
    words : uint32[n_rows, 4 + k]
        The frames; one that is answered becomes its answer, in place.
    arrived : ARRIVED[n]
        What came.
    members : MEMBER[n_members]
        Registered workers, sorted.
    slots : SLOT_ROW[2 n_slots]
        State; the two versions of a slot stand side by side.
    rounds, registers : ROUND[2 n_slots], uint32[2 n_slots, k]
        What they hold.
    counters : int64[len(COUNTERS)]
        Added to.
    replies : REPLY[room for every worker of a job, for each frame]
        Written.

    Returns
    -------
    int
        Replies.
    """
    n_replies = 0
    for i in range(len(arrived)):
        counters[PACKETS_IN] += 1
        row = arrived[i]["row"]
        if arrived[i]["lost"]:
            counters[INJECTED_IN] += 1
            continue
        m = _member(members, arrived[i]["source"])
        cause = _refusal(words, row, members, m, slots, rounds, registers.shape[1])
        if cause:
            counters[cause] += 1
            continue
        at = _place(words, row)
        action = contribute(slots, at, at ^ 1, members[m]["child"], members[m]["fan_in"], False)
        _carry_out(words, row, action, rounds, registers, at)
        counters[DUPLICATES if action & DUPLICATE else ADDED if action & ADD else FIRST] += 1
        if not action & READ:
            continue
        first, n = members[m]["address"], 1
        if action & ALL:
            first, n = first - members[m]["child"], members[m]["fan_in"]
        counters[COMPLETE if action & ALL else ANSWERED] += 1
        for child in range(n):
            replies[n_replies]["row"], replies[n_replies]["to"] = row, first + child
            n_replies += 1
    return n_replies


@njit_norefcount
def _member(members: Rows, source: int) -> int:
    """Return the row of the member that sent it, or -1."""
    low, high = 0, len(members)
    while low < high:
        middle = (low + high) // 2
        if members[middle]["source"] < source:
            low = middle + 1
        else:
            high = middle
    return low if low < len(members) and members[low]["source"] == source else -1


@njit_norefcount
def _place(words: NDArray[np.uint32], row: int) -> int:
    index = pool_index_of(words, row)
    return int(2 * (index & 0x3FFF) + (index >> 15))


@njit_norefcount
def _refusal(
    words: NDArray[np.uint32], row: int, members: Rows, m: int, slots: Rows, rounds: Rows, elements: int
) -> int:
    """Return why a frame is dropped, as a counter; 0 if it is not."""
    if row < 0:
        return WRONG_TAG if row == FORGED else WRONG_LENGTH
    if m < 0:
        return UNKNOWN_SOURCE
    if type_and_size_of(words, row) != (0x11 if elements == 64 else 0x13):
        return WRONG_TYPE
    if job_of(words, row) != members[m]["job_number"]:
        return WRONG_JOB
    index, n_slots = pool_index_of(words, row), members[m]["n_slots"]
    if index & 0x4000 or not 0 <= (index & 0x3FFF) - members[m]["first_slot"] < n_slots:
        return NO_SUCH_SLOT
    at, held, beside = _place(words, row), rounds[_place(words, row)]["tsi"], rounds[_place(words, row) ^ 1]["tsi"]
    fits = in_sequence(slots, at, members[m]["child"], int(tsi_of(words, row)), held, beside, n_slots)
    return 0 if fits else OUT_OF_SEQUENCE


@njit_norefcount
def _carry_out(
    words: NDArray[np.uint32], row: int, action: int, rounds: Rows, registers: NDArray[np.uint32], at: int
) -> None:
    first, second = exponent_of(words, row, 0), exponent_of(words, row, 1)
    k = registers.shape[1]
    if action & OVERWRITE:
        rounds[at]["tsi"] = whole_tsi(int(tsi_of(words, row)), int(rounds[at]["tsi"]))
        rounds[at]["first_exponent"], rounds[at]["second_exponent"] = first, second
        for i in range(k):
            registers[at, i] = swapped(words[row, LEAD_WORDS + i])
    elif action & ADD:
        rounds[at]["first_exponent"] = max(rounds[at]["first_exponent"], first)
        rounds[at]["second_exponent"] = max(rounds[at]["second_exponent"], second)
        for i in range(k):
            registers[at, i] += swapped(words[row, LEAD_WORDS + i])
    if action & READ:
        write_exponents(words, row, rounds[at]["first_exponent"], rounds[at]["second_exponent"])
        for i in range(k):
            words[row, LEAD_WORDS + i] = swapped(registers[at, i])
