"""Kernel that finds how far each transfer is from the start: what is equally far is under way at about one time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def levels(
    connection_of: NDArray[np.int32], first: NDArray[np.int64], successor: NDArray[np.int32], level: NDArray[np.int32]
) -> None:
    """Count the transfers on the longest chain before each.

    Program order is an order in which nothing comes before what it waits for, so one pass is enough.

    Parameters
    ----------
    connection_of : int32[n_transfers]
        Connection of each transfer; its messages are sent one after the other.
    first, successor : int64[n_transfers + 1], int32[m]
        Rows of 2 * successor + (1 when it waits for completion).
    level : int32[n_transfers]
        Zeros; written.
    """
    n = connection_of.shape[0]
    next_on = np.zeros(n, np.int32)  # of each connection; at most as many as transfers
    for i in range(n):
        w = connection_of[i]
        level[i] = max(level[i], next_on[w])
        next_on[w] = level[i] + 1
        for k in range(first[i], first[i + 1]):
            j = successor[k] // 2
            level[j] = max(level[j], level[i] + 1)
