"""Tags of datagrams: 16 bytes behind the values, which only who has the job's key can write.

A tag covers the frame and the upper half of its packet's number, which does not travel: both sides know about where
the sequence is, as in RFC 3711. So no datagram of a job can be played again in another round. Each worker has a
key of its own towards the switch; results have one key, since workers of a job trust each other.

References
----------
RFC 7693 (BLAKE2b, keyed); RFC 3711, section 3.3.1 (the part of a packet's index that does not travel).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .frames import TAG_BYTES

TAG_WORDS = TAG_BYTES // 4
_FROM_SWITCH = 0xFFFF


def result_state(key: bytes) -> blake2b:
    """Return the hash of a job's results before its first byte."""
    return _state(key, _FROM_SWITCH)


def worker_state(key: bytes, rank: int) -> blake2b:
    """Return the hash of one worker's frames before its first byte."""
    return _state(key, rank)


def write_tags(words: NDArray[np.uint32], rows: NDArray[np.integer], states: Iterable[blake2b]) -> None:
    """Write the tags of frames.

    Parameters
    ----------
    words : uint32[n_rows, 4 + k + 4]
        Frames; word 0 is the upper half of the packet's number.
    rows : int[n]
        Rows to tag.
    states : iterable of hash
        State of each row's hash.
    """
    words[rows, -TAG_WORDS:] = _tags(words, rows, states)


def right_tags(words: NDArray[np.uint32], rows: NDArray[np.integer], states: Iterable[blake2b]) -> NDArray[np.bool_]:
    """Find the frames that have the right tag; bool[n], see `write_tags`."""
    # All 16 bytes of all frames are compared, so the time says nothing about where a wrong one differs.
    right: NDArray[np.bool_] = (words[rows, -TAG_WORDS:] == _tags(words, rows, states)).all(1)
    return right


def _state(key: bytes, sender: int) -> blake2b:
    return blake2b(key=key, digest_size=TAG_BYTES, salt=sender.to_bytes(2, "big"), person=b"commsim frame")


def _tags(words: NDArray[np.uint32], rows: NDArray[np.integer], states: Iterable[blake2b]) -> NDArray[np.uint32]:
    memory, step = memoryview(words.reshape(-1).view(np.uint8).data), words.strides[0]
    tags = []
    for row, state in zip(rows.tolist(), states, strict=False):  # `states` may repeat one without end
        copy = state.copy()
        copy.update(memory[row * step : (row + 1) * step - TAG_BYTES])
        tags.append(copy.digest())
    return np.frombuffer(b"".join(tags), np.uint32).reshape(len(tags), TAG_WORDS)
