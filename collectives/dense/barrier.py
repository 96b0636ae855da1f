"""Barriers: no rank goes on before all ranks have arrived."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule


def dissemination_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of ceil(log2 p) messages of `size` bytes each: 0 in a pure barrier."""
    return (n_ranks - 1).bit_length() * (link.message(size) + link.gamma * size)


@collective("barrier", cost=dissemination_cost)
def dissemination_barrier(n_ranks: int) -> Schedule:
    """Barrier by dissemination: ceil(log2 p)(o + L + S/B + gamma S) seconds, S = 0 unless messages carry something.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any.

    Returns
    -------
    Schedule
        In round j every rank signals to the rank 2^j further on, and has by then heard of 2^j ranks. What it has
        heard is kept as a sum, so that each round waits for the one before.

    References
    ----------
    Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", International Journal of Parallel
    Programming 1988.
    """
    p = Program(n_ranks, n_chunks=1)
    rank = np.arange(n_ranks)
    for distance in (2**j for j in range((n_ranks - 1).bit_length())):
        p.reduce(0, src=rank, dst=(rank + distance) % n_ranks)
    return p.build()
