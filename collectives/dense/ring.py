"""Ring algorithms: every rank talks to its next neighbour only."""

from __future__ import annotations

import numpy as np

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .. import collective


def half_ring_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of n-1 hops of one chunk each, nothing reduced: (p-1)(o + L + S/(pB))."""
    return (n_ranks - 1) * link.message(size / n_ranks)


def reducing_ring_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of n-1 hops of one chunk each, reduced on arrival: (p-1)(o + L + S/(pB) + gamma S/p)."""
    return half_ring_cost(n_ranks, size, link) + (n_ranks - 1) * link.gamma * size / n_ranks


def ring_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of a reduce-scatter and an all-gather: 2(p-1)(o + L + S/(pB)) + (p-1) gamma S/p."""
    return reducing_ring_cost(n_ranks, size, link) + half_ring_cost(n_ranks, size, link)


@collective("all_reduce", cost=ring_cost)
def ring_all_reduce(n_ranks: int) -> Schedule:
    """All-reduce over a ring, one chunk per rank: 2(p-1)(o + L + S/(pB)) + (p-1) gamma S/p seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        2(p-1) rounds; in each, every rank passes on the chunk that it has just received.

    References
    ----------
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009, section 4.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    following = (rank + 1) % n_ranks
    with p.repeat(n_ranks - 1, chunk=-1):
        p.reduce(rank, src=rank, dst=following)
    with p.repeat(n_ranks - 1, chunk=-1):
        p.copy(following, src=rank, dst=following)
    return p.build()


@collective("reduce_scatter", cost=reducing_ring_cost)
def ring_reduce_scatter(n_ranks: int) -> Schedule:
    """Reduce-scatter over a ring, one chunk per rank: (p-1)(o + L + S/(pB) + gamma S/p) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        p-1 rounds; chunk c starts at rank c+1, and comes home to rank c complete.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.4.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    with p.repeat(n_ranks - 1, chunk=-1):
        p.reduce((rank - 1) % n_ranks, src=rank, dst=(rank + 1) % n_ranks)
    return p.build()


@collective("all_gather", cost=half_ring_cost)
def ring_all_gather(n_ranks: int) -> Schedule:
    """All-gather over a ring, one chunk per rank: (p-1)(o + L + S/(pB)) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        p-1 rounds; every rank starts with its own chunk and passes on the one that it has just received.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.1.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    with p.repeat(n_ranks - 1, chunk=-1):
        p.copy(rank, src=rank, dst=(rank + 1) % n_ranks)
    return p.build()
