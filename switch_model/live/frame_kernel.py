"""Fields of a frame, read from and written to a row of words; `frames` says where they are.

What the live switch does with a batch of frames: check, count, add, and make results of those that end a round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from switch_model.live.frames import LEAD_WORDS
from switch_model.slot_kernel import ADD, ALL, DUPLICATE, OVERWRITE, READ, contribute

LOW = 0xFFFFFFFF

Rows = NDArray[np.void]


@njit_norefcount
def swapped(word: np.uint32) -> np.uint32:
    """Turn a word from the wire's order of bytes into this machine's, or back."""
    x = np.uint32(word)
    return np.uint32(
        (x >> np.uint32(24))
        | ((x >> np.uint32(8)) & np.uint32(0xFF00))
        | ((x & np.uint32(0xFF00)) << np.uint32(8))
        | ((x & np.uint32(0xFF)) << np.uint32(24))
    )


@njit_norefcount
def type_and_size_of(words: NDArray[np.uint32], row: int) -> np.int64:
    """First byte of the frame in this row."""
    return (np.int64(words[row, 1]) >> 16) & 0xFF


@njit_norefcount
def job_of(words: NDArray[np.uint32], row: int) -> np.int64:
    """Job number, 0..255."""
    return np.int64(words[row, 1]) >> 24


@njit_norefcount
def tsi_of(words: NDArray[np.uint32], row: int) -> np.int64:
    """Which packet it is, 0..2**32 - 1."""
    return np.int64(swapped(words[row, 2]))


@njit_norefcount
def pool_index_of(words: NDArray[np.uint32], row: int) -> np.int64:
    """Version in bit 15, slot in the bits below."""
    word = np.int64(words[row, 3])
    return ((word & 0xFF) << 8) | ((word >> 8) & 0xFF)


@njit_norefcount
def exponent_of(words: NDArray[np.uint32], row: int, which: int) -> np.int64:
    """Exponent 0 or 1, -128..127."""
    byte = (np.int64(words[row, 3]) >> (16 + 8 * which)) & 0xFF
    return byte - 256 if byte > 127 else byte


@njit_norefcount
def write_exponents(words: NDArray[np.uint32], row: int, first: int, second: int) -> None:
    """Replace both exponents."""
    pool_index = np.int64(words[row, 3]) & 0xFFFF
    words[row, 3] = np.uint32(pool_index | ((int(first) & 0xFF) << 16) | ((int(second) & 0xFF) << 24))


@njit_norefcount
def write_header(words: NDArray[np.uint32], row: int, type_and_size: int, job: int, tsi: int, pool_index: int) -> None:
    """Write all fields but the exponents, which become 0; `tsi` has 64 bits, of which 32 travel."""
    words[row, 0] = np.uint32((tsi >> 32) & LOW)
    words[row, 1] = np.uint32((type_and_size << 16) | (job << 24))
    words[row, 2] = swapped(np.uint32(tsi & LOW))
    words[row, 3] = np.uint32((pool_index >> 8) | ((pool_index & 0xFF) << 8))


# What is counted, in frames. Everything that comes in is one of first, add, duplicate or a dropped_ but those of what
# goes out, injected_out and not_sent.
# `first`: overwrote a slot; `add`: added to one; `duplicate`: counted already; `complete`: was the last of its round;
# `answered`: a duplicate that got the result. Each complete round sends a frame to every worker of its job.
COUNTERS = (
    "packets_in", "packets_out", "first", "add", "duplicate", "complete", "answered",
    "dropped_wrong_length", "dropped_unknown_source", "dropped_wrong_type", "dropped_wrong_job",
    "dropped_no_such_slot", "dropped_out_of_sequence", "dropped_injected_in", "dropped_injected_out",
    "dropped_not_sent", "dropped_wrong_tag",
)  # fmt: skip
(PACKETS_IN, PACKETS_OUT, FIRST, ADDED, DUPLICATES, COMPLETE, ANSWERED, WRONG_LENGTH, UNKNOWN_SOURCE, WRONG_TYPE,
 WRONG_JOB, NO_SUCH_SLOT, OUT_OF_SEQUENCE, INJECTED_IN, INJECTED_OUT, NOT_SENT,
 WRONG_TAG) = range(len(COUNTERS))  # fmt: skip
FORGED = -2  # in place of the row of a frame whose tag is wrong

MEMBER = np.dtype(
    [
        ("source", np.int64),  # by which the array is sorted
        ("child", np.int32),  # rank in its job
        ("fan_in", np.int32),  # workers of its job
        ("job_number", np.int32),
        ("first_slot", np.int32),
        ("n_slots", np.int32),
        ("address", np.int32),  # where its address is; those of the job follow one another
    ],
    align=True,
)
# What a slot's version holds, beside its sums: which packet of the sequence, and the largest exponents.
ROUND = np.dtype([("tsi", np.int64), ("first_exponent", np.int8), ("second_exponent", np.int8)], align=True)


@njit_norefcount
def whole_tsi(tsi: int, near: int) -> int:
    """Return the 64-bit number of a packet of which 32 bits have travelled: the one that is nearest to `near`."""
    ahead = (tsi - near) & LOW
    return near + ahead - ((ahead >> 31) << 32)


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
    """Say why a frame is dropped, as a counter; 0 if it is not.

    Only the present packet of a slot's version may come, or the one that follows it once both versions are complete.
    So a worker's late copy of an old packet, or one of another tensor, cannot be taken for a new packet.
    """
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
    at, tsi = _place(words, row), tsi_of(words, row)
    held, beside = rounds[at]["tsi"], rounds[at ^ 1]["tsi"]
    complete = slots[at]["count"] == 0
    if tsi == held & LOW:
        seen = slots[at]["seen"] >> np.uint64(members[m]["child"]) & np.uint64(1)
        return OUT_OF_SEQUENCE if complete and not seen else 0
    follows = tsi == (held + 2 * n_slots) & LOW and tsi == (beside + n_slots) & LOW
    return 0 if follows and complete and slots[at ^ 1]["count"] == 0 else OUT_OF_SEQUENCE


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
