"""Binomial trees that reduce: to one rank, or to one rank and back to all."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule


def binomial_reduce_cost(n_ranks: int, size: float, link: LogGP, root: int = 0) -> float:  # noqa: ARG001
    """Cost of ceil(log2 p) rounds of the whole vector, reduced on arrival; independent of the root."""
    return (n_ranks - 1).bit_length() * (link.message(size) + link.gamma * size)


@collective("reduce", cost=binomial_reduce_cost)
def binomial_reduce(n_ranks: int, root: int = 0) -> Schedule:
    """Reduce over a binomial tree: ceil(log2 p)(o + L + S/B + gamma S) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    root : int
        Rank that gets the sum.

    Returns
    -------
    Schedule
        Rounds, each ended by a fence; in each, the farther half of the ranks that are left hands its sums to the
        nearer half.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.4.
    """
    p = Program(n_ranks, n_chunks=1)
    _reduce(p, root)
    return p.build()


def binomial_tree_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of the rounds up the tree and those down again."""
    return (n_ranks - 1).bit_length() * (2 * link.message(size) + link.gamma * size)


@collective("all_reduce", cost=binomial_tree_cost)
def binomial_tree_all_reduce(n_ranks: int) -> Schedule:
    """All-reduce up and down a binomial tree: ceil(log2 p)(2(o + L + S/B) + gamma S) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        A binomial reduce to rank 0 and a binomial broadcast from it, every round ended by a fence.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005,
    section 4.5: the algorithm that the others are compared with.
    """
    p = Program(n_ranks, n_chunks=1)
    _reduce(p, 0)
    for distance in (2**j for j in range((n_ranks - 1).bit_length())):
        sender = np.arange(min(distance, n_ranks - distance))
        p.copy(0, src=sender, dst=sender + distance)
        p.fence()
    return p.build()


def _reduce(p: Program, root: int) -> None:
    """Write the rounds towards the root; `distance` halves from the largest power of two below p."""
    for distance in (2**j for j in reversed(range((p.n_ranks - 1).bit_length()))):
        receiver = np.arange(min(distance, p.n_ranks - distance))
        p.reduce(0, src=(root + receiver + distance) % p.n_ranks, dst=(root + receiver) % p.n_ranks)
        p.fence()
