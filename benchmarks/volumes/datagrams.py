"""Packets at the live switch without its sockets: jobs that are summed while others forge, and damaged captures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from switch_model.live.data_plane import DataPlane
from switch_model.live.datagrams import ARRIVED, address_key
from switch_model.live.frame_tags import worker_state, write_tags
from switch_model.live.frames import LEAD, LEAD_WORDS, frame_bytes, new_rows

# Packets of a trial, about; half of them are forged.
PACKETS = 1000
ELEMENTS, JOB, KEY = 64, 7, b"k" * 32
_STRANGER = ("10.9.8.7", 6543)


def trial(seed: int, number: int) -> str:
    """Sum tensors of two to four workers while forged packets come; return what is wrong."""
    rng = np.random.default_rng([seed, number])
    tagged = bool(rng.integers(2))
    plane = DataPlane(64, ELEMENTS, tagged=tagged)
    n_workers, slots, first = int(rng.integers(2, 5)), int(rng.integers(2, 17)), int(rng.integers(0, 40))
    peers = [("127.0.0.1", 9000 + rank) for rank in range(n_workers)]
    begin = 2 * slots * int(rng.choice([0, 1, 2**31 // (2 * slots), 2**32 // (2 * slots) - 3]))
    plane.open(JOB, peers, first, slots, begin, KEY if tagged else b"")
    states = [worker_state(KEY, rank) for rank in range(n_workers)] if tagged else []
    sources = np.array([address_key(*peer) for peer in peers])
    n_sent, n_right = 0, 0
    for step in range(max(2, PACKETS // (2 * n_workers * slots))):
        numbers = begin + step * slots + np.arange(slots)
        values = rng.integers(-(2**31), 2**31, (n_workers, slots, ELEMENTS), np.int64)
        sums = values.sum(axis=0).astype(np.uint64).astype(np.uint32)
        words, arrived = _right(numbers, values, sources, first, slots, plane.tag_bytes)
        if tagged:
            words[:, 0] = np.tile(numbers >> 32, n_workers)
            ranks = np.repeat(np.arange(n_workers), slots)
            write_tags(words, np.arange(len(words)), [states[rank] for rank in ranks.tolist()])
        words, arrived = _with_forged(rng, words, arrived, plane.tag_bytes)
        replies = plane.handle(words, arrived)
        n_sent += len(arrived)
        n_right += slots
        problem = _wrong_reply(words, replies, numbers, sums, n_workers)
        if problem:
            return f"step {step}: {problem}"
    counts = plane.counts()
    incoming = sum(
        n for name, n in counts.items() if name.startswith("dropped_") and not name.endswith(("_out", "sent"))
    )
    handled = counts["first"] + counts["add"] + counts["duplicate"] + incoming
    if not counts["packets_in"] == handled == n_sent:
        return f"{n_sent} packets came, and {handled} of {counts['packets_in']} were handled"
    return "" if counts["complete"] == n_right else f"{counts['complete']} of {n_right} sums are complete"


def _right(
    numbers: NDArray[np.int64], values: NDArray[np.int64], sources: NDArray[Any], first: int, slots: int, tag_bytes: int
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Write the frames of all workers, one of each for each packet, as the protocol wants them."""
    n_workers, n = values.shape[0], values.shape[0] * len(numbers)
    words, arrived = new_rows(n, ELEMENTS, tag_bytes), np.zeros(n, ARRIVED)
    frames = words.view(np.uint8)[:, LEAD:]
    place = np.tile(numbers % (2 * slots), n_workers)
    frames[:, 0], frames[:, 1] = 0x11, JOB
    frames[:, 2:6] = np.tile(numbers % 2**32, n_workers).astype(">u4").view(np.uint8).reshape(n, 4)
    frames[:, 6:8] = (first + place % slots | place // slots << 15).astype(">u2").view(np.uint8).reshape(n, 2)
    body = values.reshape(n, ELEMENTS).astype(np.uint64).astype(np.uint32)
    words[:, LEAD_WORDS : LEAD_WORDS + ELEMENTS] = body.byteswap()
    arrived["source"], arrived["row"] = np.repeat(sources, len(numbers)), np.arange(n)
    arrived["n_bytes"] = frame_bytes(ELEMENTS, tag_bytes)
    return words, arrived


def _with_forged(
    rng: np.random.Generator, words: NDArray[np.uint32], arrived: NDArray[Any], tag_bytes: int
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Put as many forged frames among the right ones, each of which the switch can tell; all in any order."""
    n = len(arrived)
    both, came = new_rows(2 * n, ELEMENTS, tag_bytes), np.concatenate((arrived, arrived))
    both[:n], both[n:] = words, words[rng.permutation(n)]
    came["row"][n:] = n + np.arange(n)
    frames = both.view(np.uint8)[n:, LEAD:]
    kind = rng.integers(0, 6, n)
    # From a port of nobody, whatever they say; some with random bytes everywhere.
    came["source"][n:] = np.where(kind == 0, address_key(*_STRANGER), came["source"][n:])
    frames[kind == 0] = rng.integers(0, 256, (int((kind == 0).sum()), frames.shape[1]), np.uint8)
    frames[kind == 1, 0] ^= rng.integers(1, 256, int((kind == 1).sum()), np.uint8)
    frames[kind == 2, 1] ^= rng.integers(1, 256, int((kind == 2).sum()), np.uint8)
    frames[kind == 3, 6] |= 0x40  # slots that no switch has
    frames[kind == 4, 2] ^= rng.integers(1, 128, int((kind == 4).sum()), np.uint8)  # far from what comes next
    wrong_length = n + np.flatnonzero(kind == 5)
    came["row"][wrong_length], came["n_bytes"][wrong_length] = -1, rng.integers(0, 1500, len(wrong_length))
    if tag_bytes:  # with a right head, other values under the old tag
        lies = rng.integers(0, 2, n).astype(bool) & (kind != 5)
        came["source"][n:][lies] = arrived["source"][rng.integers(0, n, int(lies.sum()))]
        frames[lies, 10 : 10 + 4 * ELEMENTS] = rng.integers(0, 256, (int(lies.sum()), 4 * ELEMENTS), np.uint8)
    return both, came[rng.permutation(2 * n)]


def _wrong_reply(
    words: NDArray[np.uint32],
    replies: NDArray[Any],
    numbers: NDArray[np.int64],
    sums: NDArray[np.uint32],
    n_workers: int,
) -> str:
    """Return what is wrong with the answers of a step: each packet's sum goes to each worker, once."""
    got = np.zeros((len(numbers), n_workers), np.int64)
    for row, to in zip(replies["row"].tolist(), replies["to"].tolist(), strict=True):
        tsi = int(words[row, 2].byteswap())
        at = int((tsi - int(numbers[0])) % 2**32)
        if at >= len(numbers):
            return f"an answer to packet {tsi}, which nobody waits for"
        if (words[row, LEAD_WORDS : LEAD_WORDS + ELEMENTS].byteswap() != sums[at]).any():
            return f"a wrong sum of packet {tsi}"
        got[at, to] += 1
    return "" if (got == 1).all() else f"answers came {got.min()} to {got.max()} times"
