"""What a worker does with a batch of results: take them in, see which packets may go next, and write their frames.

For integers, packet p carries block p. For floats it carries block p - lead, and the exponent of block p: the workers
must agree on that before they can scale the block, so the first `lead` packets carry exponents only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import long_loops, njit_norefcount
from switch_model import slot_sequence
from switch_model.live.frame_fields_kernel import (
    LOW,
    exponent_of,
    job_of,
    pool_index_of,
    swapped,
    tsi_of,
    type_and_size_of,
    write_exponents,
    write_header,
)
from switch_model.live.frame_kernel import Rows
from switch_model.live.frames import LEAD_WORDS
from switch_model.quantize import INT32_MAX

TENSOR = np.dtype(
    [
        ("n_elements", np.int64),
        ("n_packets", np.int64),  # exponents' included
        ("n_blocks", np.int64),
        ("lead", np.int64),  # packets that carry exponents only; for integers 0
        ("tsi", np.int64),  # of the first packet; its lower half travels
        ("shift", np.int64),  # position in the sequence of slots at the first packet
        ("n_done", np.int64),  # packets whose result has come
        ("n_workers", np.int64),
        ("job_number", np.int64),
        ("first_slot", np.int64),
        ("n_slots", np.int64),
        ("type_and_size", np.int64),
        ("elements", np.int64),  # of a packet
        ("now", np.float64),  # in seconds
        ("timeout", np.float64),  # of a packet that is sent for the first time
        ("strange", np.int64),  # frames that came and are no result of an outstanding packet
    ]
)
# The exponent that it carries, the largest one, which came back; whether it may go, and its result has come.
PACKET = np.dtype([("own", np.int8), ("agreed", np.int8), ("listed", np.bool_), ("done", np.bool_)])
# Per slot: the packet that is out, or -1, when it was sent last, and after how many seconds it is sent again.
OUTSTANDING = np.dtype([("packet", np.int64), ("sent_at", np.float64), ("timeout", np.float64)])
NO_EXPONENT = -128

slot_and_version = njit_norefcount(slot_sequence.slot_and_version)


@long_loops
@njit_norefcount
def take_results(
    words: NDArray[np.uint32],
    arrived: Rows,
    t: Rows,
    window: Rows,
    packets: Rows,
    integers: NDArray[np.uint32],
    floats: NDArray[np.float32],
    taken: NDArray[np.int64],
) -> int:
    """Store the results among what came.

    Parameters
    ----------
    words : uint32[n_rows, at least 4 + k]
        Frames.
    arrived : ARRIVED[n]
        What came, from the switch.
    t : TENSOR[1]
        Progress.
    window, packets : OUTSTANDING[n_slots], PACKET[n_packets]
        State.
    integers, floats : uint32[n_elements], float32[n_elements]
        The tensor, as both; what it holds is replaced by sums block by block.
    taken : int64[at least n]
        Written: packets whose result has come.

    Returns
    -------
    int
        How many.
    """
    n = 0
    for i in range(len(arrived)):
        row = arrived[i]["row"]
        packet = _packet(words, row, t, window) if row >= 0 else -1
        if packet < 0:
            t[0]["strange"] += 1
            continue
        slot, _ = slot_and_version(packet, t[0]["shift"], t[0]["n_slots"])
        window[slot]["packet"] = -1
        packets[packet]["done"] = True
        packets[packet]["agreed"] = exponent_of(words, row, 0)
        _store(words, row, t, packets, integers, floats, packet - t[0]["lead"])
        taken[n], n = packet, n + 1
    t[0]["n_done"] += n
    return n


@njit_norefcount
def next_packets(t: Rows, packets: Rows, taken: NDArray[np.int64], n_taken: int, numbers: NDArray[np.int64]) -> int:
    """List the packets that may go because these results have come; int64[at least 2 n_taken], returns how many.

    A packet waits for the one before it on its slot, and if it carries floats for the agreed exponent of its block.
    """
    n, n_slots, lead = 0, t[0]["n_slots"], t[0]["lead"]
    for i in range(n_taken):
        for packet in (taken[i] + n_slots, taken[i] + lead):
            if packet == taken[i] or packet >= t[0]["n_packets"] or packets[packet]["listed"]:
                continue
            free = packet < n_slots or packets[packet - n_slots]["done"]
            if free and (not lead or packets[packet - lead]["done"]):
                packets[packet]["listed"] = True
                numbers[n], n = packet, n + 1
    return n


@long_loops
@njit_norefcount
def write_frames(
    words: NDArray[np.uint32],
    t: Rows,
    window: Rows,
    packets: Rows,
    integers: NDArray[np.uint32],
    floats: NDArray[np.float32],
    numbers: NDArray[np.int64],
) -> None:
    """Write frames into the rows of their slots, and note that they are out; `numbers` becomes the rows, in place."""
    for i in range(len(numbers)):
        packet = numbers[i]
        slot, version = slot_and_version(packet, t[0]["shift"], t[0]["n_slots"])
        window[slot]["packet"], window[slot]["sent_at"], window[slot]["timeout"] = packet, t[0]["now"], t[0]["timeout"]
        index = (version << 15) | (t[0]["first_slot"] + slot)
        write_header(words, slot, t[0]["type_and_size"], t[0]["job_number"], t[0]["tsi"] + packet, index)
        write_exponents(words, slot, packets[packet]["own"], 0)
        _fill(words, slot, t, packets, integers, floats, packet - t[0]["lead"])
        numbers[i] = slot


@njit_norefcount
def expired(window: Rows, now: float, longest: float, rows: NDArray[np.int64]) -> int:
    """List the slots whose packet must be sent again, as sent now; each time its timeout doubles, up to `longest`."""
    n = 0
    for slot in range(len(window)):
        if window[slot]["packet"] >= 0 and now - window[slot]["sent_at"] >= window[slot]["timeout"]:
            window[slot]["sent_at"] = now
            window[slot]["timeout"] = min(2 * window[slot]["timeout"], longest)
            rows[n], n = slot, n + 1
    return n


@njit_norefcount
def _packet(words: NDArray[np.uint32], row: int, t: Rows, window: Rows) -> int:
    """Return the outstanding packet that a frame is the result of, or -1."""
    index = pool_index_of(words, row)
    slot = (index & 0x7FFF) - t[0]["first_slot"]
    if not 0 <= slot < t[0]["n_slots"] or job_of(words, row) != t[0]["job_number"]:
        return -1
    packet = window[slot]["packet"]
    if packet < 0 or type_and_size_of(words, row) != t[0]["type_and_size"]:
        return -1
    return packet if tsi_of(words, row) == (t[0]["tsi"] + packet) & LOW else -1


@njit_norefcount
def _store(
    words: NDArray[np.uint32],
    row: int,
    t: Rows,
    packets: Rows,
    integers: NDArray[np.uint32],
    floats: NDArray[np.float32],
    block: int,
) -> None:
    if block < 0:
        return
    k = t[0]["elements"]
    begin, n = block * k, min(k, t[0]["n_elements"] - block * k)
    if not t[0]["lead"]:
        for i in range(n):
            integers[begin + i] = swapped(words[row, LEAD_WORDS + i])
        return
    scale = math.ldexp(INT32_MAX / t[0]["n_workers"], -int(packets[block]["agreed"]))
    for i in range(n):
        floats[begin + i] = np.int32(swapped(words[row, LEAD_WORDS + i])) / scale


@njit_norefcount
def _fill(
    words: NDArray[np.uint32],
    row: int,
    t: Rows,
    packets: Rows,
    integers: NDArray[np.uint32],
    floats: NDArray[np.float32],
    block: int,
) -> None:
    k = t[0]["elements"]
    n, begin = 0, block * k
    if block >= 0:
        n = min(k, t[0]["n_elements"] - begin)
    if n and not t[0]["lead"]:
        for i in range(n):
            words[row, LEAD_WORDS + i] = swapped(integers[begin + i])
    elif n:
        scale = math.ldexp(INT32_MAX / t[0]["n_workers"], -int(packets[block]["agreed"]))
        for i in range(n):
            words[row, LEAD_WORDS + i] = swapped(np.uint32(np.int32(np.rint(np.float64(floats[begin + i]) * scale))))
    for i in range(n, k):
        words[row, LEAD_WORDS + i] = 0
