"""The tables that the kernel of rounds works on; a row of each is a NumPy record."""

from __future__ import annotations

import numpy as np

MOVE = np.dtype(
    [
        ("wire", np.int32), ("stage", np.int32),
        ("read", np.int32), ("read_end", np.int32), ("write", np.int32), ("write_end", np.int32),
        ("reduces", np.bool_),
    ],
    align=True,
)  # fmt: skip
"""One transfer: cells that it reads and writes; a cell is a run of chunks that no transfer cuts."""

LANE = np.dtype(
    [
        ("src", np.int32), ("dst", np.int32), ("unit", np.int32), ("unit_seen", np.int32),
        ("overhead", np.int64), ("latency", np.int64), ("ready", np.int64),
        ("per_byte", np.float64), ("gamma", np.float64),  # ticks per byte
        ("free", np.int64), ("last", np.int64),  # when its last message had left, and was complete
    ],
    align=True,
)  # fmt: skip
"""One wire; `unit` is the reduction unit that it might share, or -1."""

CLUSTER = np.dtype([("since", np.int64), ("busy", np.int64), ("part", np.float64), ("number", np.int32)], align=True)
"""Intervals on a resource that may overlap: when the one before had ended, when these end, their parts in all."""
