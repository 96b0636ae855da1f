"""Broadcasts: a binomial tree for short messages, a pipelined chain for long ones; the same chain as a reduce."""

from __future__ import annotations

import numpy as np

from collectives import collective
from collectives.pieces import USUAL, count_pieces
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule


def binomial_cost(n_ranks: int, size: float, link: LogGP, root: int = 0) -> float:  # noqa: ARG001 - all roots alike
    """Cost of ceil(log2 p) rounds of the whole vector."""
    return (n_ranks - 1).bit_length() * link.message(size)


@collective("broadcast", cost=binomial_cost)
def binomial_broadcast(n_ranks: int, root: int = 0) -> Schedule:
    """Broadcast over a binomial tree: ceil(log2 p)(o + L + S/B) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    root : int
        Rank that has the data.

    Returns
    -------
    Schedule
        Rounds, each ended by a fence; in each, all that have the vector send it to one that has not.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.2.
    """
    p = Program(n_ranks, n_chunks=1)
    for distance in (2**j for j in range((n_ranks - 1).bit_length())):
        sender = np.arange(min(distance, n_ranks - distance))
        p.copy(0, src=(root + sender) % n_ranks, dst=(root + sender + distance) % n_ranks)
        p.fence()
    return p.build()


def chain_pieces(n_ranks: int, size: float) -> int:
    """Chunks of a chain: its p-1 hops are the pipeline, and the whole vector passes each."""
    return count_pieces(n_ranks, size, n_ranks - 1)


def chain_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_chunks: int | None = None,
    root: int = 0,  # noqa: ARG001 - all roots alike
) -> float:
    """Cost of the first chunk over p-1 hops, and of the other chunks behind it."""
    k = chain_pieces(n_ranks, size) if n_chunks is None else n_chunks
    chunk = size / k
    return (n_ranks - 1) * link.message(chunk) + (k - 1) * (link.o + chunk / link.B if n_ranks > 1 else 0.0)


@collective("broadcast", cost=chain_cost, pieces=chain_pieces)
def chain_broadcast(n_ranks: int, n_chunks: int | None = None, root: int = 0) -> Schedule:
    """Broadcast over a pipelined chain of k chunks: (p-1)(o + L + S/(kB)) + (k-1)(o + S/(kB)) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int, optional
        k. The best is sqrt(S (p-2) / (o B)); by default that with o B = 16 KiB, and 64 where the size is not known.
    root : int
        Rank that has the data.

    Returns
    -------
    Schedule
        One hop of k messages, repeated along the chain; a rank passes a chunk on while it receives the next.

    References
    ----------
    Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for large, irregular all-gather
    problems", IJHPCA 2010, for the pipelined chain.
    """
    k = USUAL if n_chunks is None else n_chunks
    p = Program(n_ranks, n_chunks=k)
    with p.repeat(n_ranks - 1, src=1, dst=1):
        p.copy(np.arange(k), src=root, dst=(root + 1) % n_ranks)
    return p.build()


def chain_reduce_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_chunks: int | None = None,
    root: int = 0,  # noqa: ARG001 - all roots alike
) -> float:
    """Cost of the first chunk over p-1 hops, and of the others behind it, as far apart as the slower of the stages."""
    k = chain_pieces(n_ranks, size) if n_chunks is None else n_chunks
    chunk = size / k
    if n_ranks == 1:
        return 0.0
    first = (n_ranks - 1) * (link.message(chunk) + link.gamma * chunk)
    return first + (k - 1) * max(link.o + chunk / link.B, link.gamma * chunk)


@collective("reduce", cost=chain_reduce_cost, pieces=chain_pieces)
def chain_reduce(n_ranks: int, n_chunks: int | None = None, root: int = 0) -> Schedule:
    """Reduce over a pipelined chain, c = S/k: (p-1)(o+L+S/(kB)+gamma c) + (k-1)max(o+S/(kB), gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int, optional
        k, by default as for :func:`chain_broadcast`. Sending and reducing are two stages of the pipeline, and the
        slower one decides how chunks follow.
    root : int
        Rank that gets the sum, at the end of the chain.

    Returns
    -------
    Schedule
        One hop of k messages, repeated along the chain from the rank behind the root round to the root.

    References
    ----------
    Worringen, "Pipelining and overlapping for MPI collective operations", LCN 2003.
    """
    k = USUAL if n_chunks is None else n_chunks
    p = Program(n_ranks, n_chunks=k)
    with p.repeat(n_ranks - 1, src=1, dst=1):
        p.reduce(np.arange(k), src=(root + 1) % n_ranks, dst=(root + 2) % n_ranks)
    return p.build()
