"""Recursive doubling of the whole vector: the fewest rounds, for short vectors."""

from __future__ import annotations

import numpy as np

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .. import collective
from .halving_doubling import fold, real_ranks


def doubling_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """k(o + L + S/B + gamma S), and 2(o + L + S/B) + gamma S more when ranks are folded."""
    k, r = fold(n_ranks)
    cost = k * (link.message(size) + link.gamma * size)
    return cost + (2 * link.message(size) + link.gamma * size if r else 0.0)


@collective("all_reduce", cost=doubling_cost)
def recursive_doubling_all_reduce(n_ranks: int) -> Schedule:
    """All-reduce by recursive doubling of the whole vector: k(o + L + S/B + gamma S) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. With p = 2^k + r, the first r even ranks hand their vector to their odd neighbours before
        and get the result after, which costs 2(o + L + S/B) + gamma S more.

    Returns
    -------
    Schedule
        k rounds, in each of which partners exchange their sums.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.5.
    """
    k, r = fold(n_ranks)
    p = Program(n_ranks, n_chunks=1)
    virtual, rank = np.arange(2**k), real_ranks(n_ranks)
    behind = 2 * np.arange(r)
    p.reduce(0, src=behind, dst=behind + 1)
    for distance in (2**j for j in range(k)):
        p.reduce(0, src=rank, dst=rank[virtual ^ distance])
    p.copy(0, src=behind + 1, dst=behind)
    return p.build()
