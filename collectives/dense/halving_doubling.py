"""Halving and doubling: partners at distances that are powers of two."""

from __future__ import annotations

from typing import Literal

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import INPUT, Schedule

Order = Literal["nearest", "farthest"]


def non_power_of_two(n_ranks: int) -> tuple[int, int]:
    """Split p into 2**k + r with r below 2**k: k rounds among 2**k ranks, r ranks that stand behind another."""
    k = n_ranks.bit_length() - 1
    return k, n_ranks - 2**k


def real_ranks(n_ranks: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Ranks that take part beyond a power of two: of the first 2r the odd ones, and all others."""
    k, r = non_power_of_two(n_ranks)
    virtual = np.arange(2**k)
    return np.where(virtual < r, 2 * virtual + 1, virtual + r)


def halving_doubling_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    order: Order = "nearest",  # noqa: ARG001 - on a star all partners are as near
) -> float:
    """2k(o + L) + (2 S/B + gamma S)(1 - 1/2**k), and 2(o + L + S/B) + gamma S more when p is no power of two."""
    k, r = non_power_of_two(n_ranks)
    part = 1 - 0.5**k
    cost = 2 * k * (link.o + link.L) + (2 * size / link.B + link.gamma * size) * part
    return cost + (2 * link.message(size) + link.gamma * size if r else 0.0)


@collective("all_reduce", cost=halving_doubling_cost)
def halving_doubling_all_reduce(n_ranks: int, order: Order = "nearest") -> Schedule:
    """All-reduce by recursive halving and doubling: 2k(o + L) + (2S/B + gamma S)(1 - 1/2^k) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. With p = 2^k + r, the first r even ranks hand their vector to their odd neighbours before
        and get the result after, which costs 2(o + L + S/B) + gamma S more.
    order : {"nearest", "farthest"}
        Partner that gets the largest half: the one at distance 1, as in MPICH, or the one at p/2.

    Returns
    -------
    Schedule
        k rounds of exchanging half of what is left, and k rounds of exchanging what is complete.

    Notes
    -----
    On a star the order changes nothing. Where near ranks are near in the network, nearest first keeps large messages
    off the links that many ranks share: half of the vector stays between neighbours, and 1/p of it crosses the network.

    References
    ----------
    Rabenseifner, "Optimization of collective reduction operations", ICCS 2004. Thakur, Rabenseifner and Gropp,
    IJHPCA 2005, section 4.5. MPICH 1.1 to 4, MPI_Allreduce by reduce-scatter and all-gather: the mask of the partner
    starts at 1 and doubles, while what is exchanged is halved.
    """
    k, r = non_power_of_two(n_ranks)
    p = Program(n_ranks, n_chunks=2**k)
    virtual, rank = np.arange(2**k), real_ranks(n_ranks)
    behind = 2 * np.arange(r)
    p.reduce(0, src=behind, dst=behind + 1, count=2**k)
    first = np.zeros_like(virtual)  # of the chunks that each rank still adds up
    gathers = []
    for i, bit in enumerate(range(k) if order == "nearest" else reversed(range(k))):
        half, keeps_upper = 2 ** (k - 1 - i), virtual >> bit & 1
        partner = rank[virtual ^ 1 << bit]
        p.reduce(first + (1 - keeps_upper) * half, src=rank, dst=partner, count=half)
        first = first + keeps_upper * half
        gathers.append((first, partner, half))
    for start, partner, half in reversed(gathers):
        p.copy(start, src=rank, dst=partner, count=half)
    p.copy(0, src=behind + 1, dst=behind, count=2**k)
    return p.build()


def recursive_halving_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """k(o + L) + (S/B + gamma S)(1 - 1/p) for p = 2**k; with r ranks beyond it, halves of up to 2**j + r chunks."""
    k, r = non_power_of_two(n_ranks)
    chunk = size / n_ranks
    halves: list[float] = [(2**j + min(2**j, r)) * chunk for j in range(k)]
    cost = sum(link.message(half) + link.gamma * half for half in halves)
    return cost + (link.message(size) + link.gamma * size + link.message(chunk) if r else 0.0)


@collective("reduce_scatter", cost=recursive_halving_cost)
def recursive_halving_reduce_scatter(n_ranks: int) -> Schedule:
    """Reduce-scatter by recursive halving: k(o + L) + (p-1)(S/(pB) + gamma S/p) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. With p = 2^k + r, the first r even ranks hand their vector to their odd neighbours before
        and get their chunk after; the round that leaves 2^j ranks then carries up to 2^j + min(2^j, r) chunks.

    Returns
    -------
    Schedule
        k rounds; in each, partners exchange the half that the other one keeps, that of the farthest partner first.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.4.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    k, r = non_power_of_two(n_ranks)
    virtual, rank = np.arange(2**k), real_ranks(n_ranks)
    behind = 2 * np.arange(r)
    first = np.concatenate((virtual + np.minimum(virtual, r), [n_ranks]))  # chunk with which each virtual rank ends
    p.reduce(0, src=behind, dst=behind + 1, count=n_ranks)
    for distance in (2**j for j in reversed(range(k))):
        p.fence()
        begin = (virtual ^ distance) & ~(distance - 1)  # what the partner keeps
        count = first[begin + distance] - first[begin]
        p.reduce(first[begin], src=rank, dst=rank[virtual ^ distance], count=count)
    p.fence()
    p.copy(behind, src=behind + 1, dst=behind)
    return p.build()


def recursive_doubling_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """k(o + L) + (p-1) S/(pB) for p = 2**k; with r ranks beyond it, round j carries 2**j + min(2**j, r) chunks."""
    k, r = non_power_of_two(n_ranks)
    chunk = size / n_ranks
    cost = sum(link.message((2**j + min(2**j, r)) * chunk) for j in range(k))
    return cost + (link.message(chunk) + link.message(size) if r else 0.0)


@collective("all_gather", cost=recursive_doubling_cost)
def recursive_doubling_all_gather(n_ranks: int) -> Schedule:
    """All-gather by recursive doubling: k(o + L) + (p-1)S/(pB) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. With p = 2^k + r, the first r even ranks hand their chunk to their odd neighbours before
        and get the whole vector after; round j then carries up to 2^j + min(2^j, r) chunks.

    Returns
    -------
    Schedule
        k rounds; in each, partners exchange all that they have.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.1.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    gather_by_doubling(p)
    return p.build()


def gather_by_doubling(p: Program, buffer: int = INPUT) -> None:
    """Write the hops of an all-gather by recursive doubling, in which rank r starts with chunk r of as many chunks.

    Parameters
    ----------
    p : Program
        Written to.
    buffer : int
        INPUT or SCRATCH: where the chunks are.
    """
    n_ranks = p.n_ranks
    k, r = non_power_of_two(n_ranks)
    virtual, rank = np.arange(2**k), real_ranks(n_ranks)
    behind = 2 * np.arange(r)
    first = np.concatenate((virtual + np.minimum(virtual, r), [n_ranks]))  # chunk that each virtual rank starts with
    p.copy(behind, src=behind, dst=behind + 1, src_buffer=buffer, dst_buffer=buffer)
    for distance in (2**j for j in range(k)):
        p.fence()
        begin = virtual & ~(distance - 1)
        count = first[begin + distance] - first[begin]
        partner = rank[virtual ^ distance]
        p.copy(first[begin], src=rank, dst=partner, count=count, src_buffer=buffer, dst_buffer=buffer)
    p.fence()
    p.copy(0, src=behind + 1, dst=behind, count=n_ranks, src_buffer=buffer, dst_buffer=buffer)


def doubling_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """k(o + L + S/B + gamma S), and 2(o + L + S/B) + gamma S more when p is no power of two."""
    k, r = non_power_of_two(n_ranks)
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
        k rounds; in each, partners exchange their sums.

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005, 4.5.
    """
    k, r = non_power_of_two(n_ranks)
    p = Program(n_ranks, n_chunks=1)
    virtual, rank = np.arange(2**k), real_ranks(n_ranks)
    behind = 2 * np.arange(r)
    p.reduce(0, src=behind, dst=behind + 1)
    for distance in (2**j for j in range(k)):
        p.reduce(0, src=rank, dst=rank[virtual ^ distance])
    p.copy(0, src=behind + 1, dst=behind)
    return p.build()
