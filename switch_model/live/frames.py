"""SwitchML's frame, as it travels inside a UDP datagram, and the arrays that frames are kept in.

A frame is a header of 8 bytes, two exponents of 1 byte and k big-endian int32. A row of the arrays holds one frame and
begins with `LEAD` bytes that do not travel, so that the values, and each field of the header, are aligned in words:

====  ==================================================================
word  bytes
====  ==================================================================
0     nothing; with a secret the upper half of tsi's 64 bits is kept here
1     nothing (2), type and size (1), job number (1)
2     tsi (4): which packet it is; the switch sends it back
3     pool index (2): version in bit 15, slot below; exponents (1 and 1)
4...  values
...   with a secret: 16 bytes, see `frame_tags`
====  ==================================================================

References
----------
p4lang/p4app-switchML, `p4/headers.p4` and the DPDK worker's packet header.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError

LOOPBACK, PORT = "127.0.0.1", 0xBEE0  # where a switch listens, and is looked for
HEADER_BYTES = 10  # with the exponents
LEAD = 6
LEAD_WORDS = (LEAD + HEADER_BYTES) // 4
MESSAGE_TYPE = 1
SIZE_CODES = {64: 1, 256: 3}
MAX_SLOTS = 1 << 14  # bits of the pool index
TAG_BYTES = 16  # behind the values, where there is a secret
LARGEST_DATAGRAM = 65507
MAX_SEGMENTS = 64  # frames that Linux takes in one system call as one message, and hands over as one


def frame_bytes(elements: int, tag_bytes: int = 0) -> int:
    """Bytes of a frame of `elements` values inside its datagram."""
    return HEADER_BYTES + 4 * elements + tag_bytes


def type_and_size(elements: int) -> int:
    """First byte of every frame of `elements` values.

    Raises
    ------
    InputError
        If no such frame exists.
    """
    if elements not in SIZE_CODES:
        raise InputError(f"a packet has {' or '.join(map(str, SIZE_CODES))} elements, got {elements}")
    return MESSAGE_TYPE << 4 | SIZE_CODES[elements]


def most_segments(elements: int, tag_bytes: int = 0) -> int:
    """Frames that fit in one message to the kernel."""
    return min(MAX_SEGMENTS, LARGEST_DATAGRAM // frame_bytes(elements, tag_bytes))


def new_rows(n_rows: int, elements: int, tag_bytes: int = 0) -> NDArray[np.uint32]:
    """Make room for frames, on whole cache lines; uint32[n_rows, 4 + elements + tag_bytes / 4].

    Raises
    ------
    BackendError
        On a machine whose own integers are big-endian, which the kernels do not know.
    """
    if sys.byteorder != "little":
        raise BackendError("the live switch and its workers need a little-endian machine")
    row_words = LEAD_WORDS + elements + tag_bytes // 4
    n_words = n_rows * row_words
    memory = np.zeros(4 * n_words + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 4 * n_words].view(np.uint32).reshape(n_rows, row_words)
