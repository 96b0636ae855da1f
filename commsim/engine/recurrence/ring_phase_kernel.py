"""Kernels of rings: the max-plus recurrence of messages that move on by one connection per round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, long_loops

from .connection_costs import SLACK

Ticks = NDArray[np.int64]


@kernel
def cycles(following: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut a permutation into its cycles.

    Parameters
    ----------
    following : int64[n]
        What comes after each.

    Returns
    -------
    order : int64[n], length : int64[n_cycles]
        Members, cycle by cycle, and the length of each.
    """
    n = following.shape[0]
    order, length = np.empty(n, np.int64), np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    n_cycles = m = 0
    for i in range(n):
        begin = m
        while not seen[i]:
            seen[i] = True
            order[m] = i
            m += 1
            i = following[i]
        if m > begin:
            length[n_cycles] = m - begin
            n_cycles += 1
    return order, length[:n_cycles].copy()


@kernel
def _pass_once(a: Ticks, b: Ticks, send: Ticks, onward: Ticks, n_cycles: int) -> None:
    """One round from `a` to `b`; in slices, whose indices are plainly not negative, so that it becomes vector code."""
    behind = a.shape[0] - n_cycles
    to, free, sends, fed, comes = b[:n_cycles], a[:n_cycles], send[:n_cycles], a[behind:], onward[behind:]
    for i in range(n_cycles):
        to[i] = max(free[i] + sends[i], fed[i] + comes[i])
    to, free, sends = b[n_cycles:], a[n_cycles:], send[n_cycles:]
    for i in range(behind):
        to[i] = max(free[i] + sends[i], a[i] + onward[i])


@kernel
def _starts_in_step(start: Ticks, pairs: NDArray[np.int64]) -> bool:
    """Whether both connections of each pair start at the same time."""
    for k in range(pairs.shape[0]):  # noqa: SIM110 - Numba compiles no generator expressions
        if abs(start[pairs[k, 0]] - start[pairs[k, 1]]) > SLACK:
            return False
    return True


@long_loops
@kernel
def pass_on(start: Ticks, send: Ticks, onward: Ticks, pairs: NDArray[np.int64], n_cycles: int, n_rounds: int) -> bool:
    """Simulate rounds in which nothing is reduced: start at the later of having sent, and of the feeder's arrival.

    Parameters
    ----------
    start : int64[n], ticks
        Time at which each connection starts; modified in place. Connection i is fed by connection ``i - n_cycles``,
        modulo n.
    send, onward : int64[n], ticks
        What sending takes, and sending and arriving.
    pairs : int64[m, 2]
        Wires that have to start together in every round.
    n_cycles, n_rounds : int
        Cycles, and rounds.

    Returns
    -------
    bool
        Whether they did.
    """
    then = np.empty_like(start)
    for k in range(n_rounds):
        if k % 2 == 0:
            if pairs.shape[0] > 0 and not _starts_in_step(start, pairs):
                return False
            _pass_once(start, then, send, onward, n_cycles)
        else:
            if pairs.shape[0] > 0 and not _starts_in_step(then, pairs):
                return False
            _pass_once(then, start, send, onward, n_cycles)
    if n_rounds % 2:
        for i in range(start.shape[0]):
            start[i] = then[i]
    return True


@kernel
def _follow(start: Ticks, sent: Ticks, done: Ticks, n_cycles: int) -> None:
    """Start the next round: at the later of having sent, and of what has arrived."""
    behind = start.shape[0] - n_cycles
    to, free, fed = start[:n_cycles], sent[:n_cycles], done[behind:]
    for i in range(n_cycles):
        to[i] = max(free[i], fed[i])
    to, free = start[n_cycles:], sent[n_cycles:]
    for i in range(behind):
        to[i] = max(free[i], done[i])


@long_loops
@kernel
def pass_on_and_reduce(
    start: Ticks,
    done: Ticks,
    sent: Ticks,
    costs: tuple[Ticks, Ticks, Ticks],
    pairs: NDArray[np.int64],
    n_cycles: int,
    n_rounds: int,
) -> bool:
    """Simulate rounds whose messages are complete only after a reduction, one after the other on each connection.

    Parameters
    ----------
    start, done : int64[n], ticks
        Time at which each connection starts, and at which its last message was complete; modified in place.
    sent : int64[n], ticks
        Written: when each connection had sent in the last round.
    costs : (int64[n], int64[n], int64[n]), ticks
        What sending, arriving and reducing take.
    pairs, n_cycles, n_rounds
        Same as in :func:`pass_on`.

    Returns
    -------
    bool
        Whether all pairs started together.
    """
    send, latency, reduction = costs
    for _ in range(n_rounds):
        if not _starts_in_step(start, pairs):
            return False
        for i in range(start.shape[0]):
            sent[i] = start[i] + send[i]
            done[i] = max(sent[i] + latency[i], done[i]) + reduction[i]
        _follow(start, sent, done, n_cycles)
    return True
