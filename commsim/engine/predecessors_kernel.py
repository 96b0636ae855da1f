"""What each transfer waited for last, and which transfer did not wait for what it had to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Times = NDArray[np.float64]


@kernel
def last_predecessors(
    first: NDArray[np.int64],
    code: NDArray[np.int32],
    queue: NDArray[np.int32],
    connection_of: NDArray[np.int32],
    sent: NDArray[np.float64],
    done: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Find what each transfer waited for last.

    Parameters
    ----------
    first : int64[n + 1], code : int32[m]
        A plan's rows of ``2 * successor + (1 when it waits for completion)``.
    queue : int32[n]
        Transfers by connection, in program order: each waits until the one before it on its connection was sent.
    connection_of : int32[n]
        Wire of each transfer.
    sent, done : float64[n], s
        Times at which transfers left their sender, and were complete.

    Returns
    -------
    before : int64[n]
        The predecessor; -1 for a transfer that waited for nothing.
    completes : bool[n]
        Whether until that was complete, and not only sent.
    """
    n = len(done)
    before = np.full(n, -1, np.int64)
    completes = np.zeros(n, np.bool_)
    latest = np.full(n, -np.inf)
    for u in range(n):
        for e in range(first[u], first[u + 1]):
            v = code[e] >> 1
            complete = code[e] & 1 == 1
            gate = done[u] if complete else sent[u]
            if gate > latest[v]:
                latest[v], before[v], completes[v] = gate, u, complete
    for i in range(1, n):
        u, v = queue[i - 1], queue[i]
        if connection_of[u] == connection_of[v] and sent[u] > latest[v]:
            latest[v], before[v], completes[v] = sent[u], u, False
    return before, completes


@kernel
def find_too_early(
    times: tuple[Times, Times, Times],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    queue: NDArray[np.int32],
    connection_of: NDArray[np.int32],
    slack: float,
) -> tuple[int, int, bool]:
    """Find a transfer that started before what it waits for was sent or complete, or before its connection was free.

    Parameters
    ----------
    times : (float64[n], float64[n], float64[n]), s
        Times at which each transfer started, had left, and was complete.
    successors : (int64[n + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion).
    queue, connection_of : int32[n]
        Transfers by connection, and the connection of each.
    slack : float, s
        Time by which it may be early.

    Returns
    -------
    before, after, waits : int, int, bool
        The two transfers, or -1 and -1; and whether one waits for the other, and does not only share its connection.
    """
    start, sent, done = times
    first, code = successors
    for i in range(start.shape[0]):
        for k in range(first[i], first[i + 1]):
            if start[code[k] // 2] < (done[i] if code[k] % 2 == 1 else sent[i]) - slack:
                return i, code[k] // 2, True
    for k in range(1, queue.shape[0]):
        before, after = queue[k - 1], queue[k]
        if connection_of[before] == connection_of[after] and start[after] < sent[before] - slack:
            return before, after, False
    return -1, -1, False
