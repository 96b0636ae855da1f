"""All-to-all: every rank has a block for every rank. Input and output are different memory."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule


def direct_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of p-1 messages that leave one port together."""
    others = n_ranks - 1
    return others * (link.o + size / (n_ranks * link.B)) + (link.L if others else 0.0)


@collective("all_to_all", cost=direct_cost)
def direct_all_to_all(n_ranks: int) -> Schedule:
    """All-to-all with everything at once: (p-1)(o + S/(pB)) + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        p-1 messages from every rank that do not wait for each other.

    References
    ----------
    Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
    message-passing systems", IEEE TPDS 1997, for the problem; this is its one-step solution with p-1 ports.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    with p.repeat(n_ranks, dst=1, src_chunk=1):  # the first one is the local copy
        p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=rank, dst_buffer=OUTPUT)
    return p.build()


def pairwise_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of p-1 rounds of one block each."""
    return (n_ranks - 1) * link.message(size / n_ranks)


@collective("all_to_all", cost=pairwise_cost)
def pairwise_all_to_all(n_ranks: int) -> Schedule:
    """All-to-all in rounds of one partner each: (p-1)(o + L + S/(pB)) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1. Partners are rank xor round when p is a power of two, else rank plus and minus round.

    Returns
    -------
    Schedule
        p-1 rounds, each ended by a fence: a rank is done with one partner before it turns to the next.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.3.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=rank, dst_buffer=OUTPUT)
    with p.repeat(n_ranks - 1, dst=1, src_chunk=1, first=1, xor=n_ranks & (n_ranks - 1) == 0):
        p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=rank, dst_buffer=OUTPUT)
        p.fence()
    return p.build()
