"""Ring algorithms: every rank talks to its next neighbour only."""

from __future__ import annotations

import math

import numpy as np

from collectives import collective
from collectives.pieces import MAX_PIECES_OF_RANKS, USUAL
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule

# Bytes of gloo's longest segment, and its fewest segments of a chunk: one is sent while another one is reduced.
SEGMENT_BYTES, FEWEST_SEGMENTS = 2**20, 2


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


def gloo_segments(n_ranks: int, size: float) -> int:
    """Segments of each of p chunks: at least 2, none longer than 1 MiB."""
    wanted = max(math.ceil(size / (n_ranks * SEGMENT_BYTES)), FEWEST_SEGMENTS)
    return min(wanted, max(USUAL, MAX_PIECES_OF_RANKS // n_ranks))


def gloo_ring_cost(n_ranks: int, size: float, link: LogGP, n_chunks: int | None = None) -> float:
    """Cost of rounds of k segments: max(k w, w + L) each with w = o + S/(pkB), and more where segments are reduced.

    With g = gamma S/(pk) and m = max(w, g), the last segment is complete on its rank after
    w + L + g + (k-1) m + (p-2) max(k m, w + L + g), or leaves when all before it have left, after (p k - 1) w. Then
    p - 2 rounds and a message follow.
    """
    if n_ranks == 1:
        return 0.0
    k = n_chunks or gloo_segments(n_ranks, size)
    segment = size / n_ranks / k
    come, sent, reduced = link.message(segment), link.message(segment) - link.L, link.gamma * segment
    slower = max(sent, reduced)
    complete = come + reduced + (k - 1) * slower + (n_ranks - 2) * max(k * slower, come + reduced)
    return max(complete, (n_ranks * k - 1) * sent) + (n_ranks - 2) * max(k * sent, come) + come


@collective("all_reduce", cost=gloo_ring_cost, pieces=gloo_segments)
def gloo_ring_all_reduce(n_ranks: int, n_chunks: int | None = None) -> Schedule:
    """All-reduce as gloo does it, a ring of k segments a chunk: 2(p-1)(k o + S/(pB)) + L seconds if L is short.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int, optional
        k, segments of each of p chunks. By default as many as gloo makes of the size: at least 2, of at most 1 MiB.

    Returns
    -------
    Schedule
        2(p-1) rounds; in each, every rank sends k segments to the rank before it. Chunk c starts at rank c-1, and is
        complete at rank c: values are added in the order in which gloo adds them.

    References
    ----------
    Gloo (https://github.com/pytorch/gloo), gloo/allreduce.cc, function ring.
    """
    k = n_chunks or FEWEST_SEGMENTS
    p = Program(n_ranks, n_chunks=n_ranks * k)
    rank, segment = np.arange(n_ranks)[:, np.newaxis], np.arange(k)
    before = (rank - 1) % n_ranks
    with p.repeat(n_ranks - 1, chunk=k):
        p.reduce((rank + 1) % n_ranks * k + segment, src=rank, dst=before)
    with p.repeat(n_ranks - 1, chunk=k):
        p.copy(rank * k + segment, src=rank, dst=before)
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
