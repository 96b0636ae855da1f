"""Kernel that looks for a transfer which did not wait for what it had to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Times = NDArray[np.float64]


@kernel
def find_too_early(
    times: tuple[Times, Times, Times],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    queue: NDArray[np.int32],
    wire_of: NDArray[np.int32],
    slack: float,
) -> tuple[int, int, bool]:
    """Find a transfer that started before what it waits for had left, or was complete, or before its wire was free.

    Parameters
    ----------
    times : (float64[n], float64[n], float64[n]), s
        When each transfer started, had left, and was complete.
    successors : (int64[n + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion).
    queue, wire_of : int32[n]
        Transfers by wire, and the wire of each.
    slack : float, s
        By which it may be early.

    Returns
    -------
    before, after, waits : int, int, bool
        The two transfers, or -1 and -1; and whether one waits for the other, and does not only share its wire.
    """
    start, sent, done = times
    first, code = successors
    for i in range(start.shape[0]):
        for k in range(first[i], first[i + 1]):
            if start[code[k] // 2] < (done[i] if code[k] % 2 == 1 else sent[i]) - slack:
                return i, code[k] // 2, True
    for k in range(1, queue.shape[0]):
        before, after = queue[k - 1], queue[k]
        if wire_of[before] == wire_of[after] and start[after] < sent[before] - slack:
            return before, after, False
    return -1, -1, False
