"""Tables that begin where a line of the processor's cache does."""

from __future__ import annotations

from typing import Any

import numpy as np

LINE = 64  # bytes


def on_lines(table: Any) -> Any:
    """Let a table begin where a cache line does, so that a row of 64 bytes is on one line; copied unless it does."""
    if table.ctypes.data % LINE == 0:
        return table
    aligned = zeros_on_lines(len(table), table.dtype)
    aligned[:] = table
    return aligned


def zeros_on_lines(n: int, dtype: Any) -> Any:
    """Rows of zeros from the beginning of a cache line on."""
    n_bytes = n * np.dtype(dtype).itemsize
    raw: Any = np.zeros(n_bytes + LINE, np.uint8)
    begin = -raw.ctypes.data % LINE
    return raw[begin : begin + n_bytes].view(dtype)
