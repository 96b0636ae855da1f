"""Fields of a frame, read from and written to a row of words; `frames` says where they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

LOW = 0xFFFFFFFF
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
    """Write all fields but the exponents, which become 0; `tsi` has 64 bits, and 32 of them travel."""
    words[row, 0] = np.uint32((tsi >> 32) & LOW)
    words[row, 1] = np.uint32((type_and_size << 16) | (job << 24))
    words[row, 2] = swapped(np.uint32(tsi & LOW))
    words[row, 3] = np.uint32((pool_index >> 8) | ((pool_index & 0xFF) << 8))


@njit_norefcount
def whole_tsi(tsi: int, near: int) -> int:
    """Return the 64-bit number of a packet whose lower 32 bits have travelled: the one that is nearest to `near`."""
    ahead = (tsi - near) & LOW
    return near + ahead - ((ahead >> 31) << 32)
