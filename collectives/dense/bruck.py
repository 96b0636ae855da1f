"""Bruck's algorithms: a logarithm of rounds for any number of ranks, at the price of moving blocks in local memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, SCRATCH, Schedule


def _distances(n_ranks: int) -> Iterator[int]:
    return (2**j for j in range((n_ranks - 1).bit_length()))


def bruck_gather_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of ceil(log2 p) messages that carry p-1 blocks in all."""
    return sum(link.message(min(d, n_ranks - d) * size / n_ranks) for d in _distances(n_ranks))


@collective("all_gather", cost=bruck_gather_cost)
def bruck_all_gather(n_ranks: int) -> Schedule:
    """All-gather in a logarithm of rounds for any p: ceil(log2 p)(o + L) + (p-1)S/(pB) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any, without the folding that recursive doubling needs.

    Returns
    -------
    Schedule
        Scratch block i of rank r is the block of rank r+i. In the round of distance d a rank sends its first blocks,
        d of them or what is missing, to rank r-d; each round is ended by a fence. Local copies begin and end it.

    References
    ----------
    Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
    message-passing systems", IEEE TPDS 1997 (concatenation).
    """
    p = Program(n_ranks, n_chunks=n_ranks, n_scratch=n_ranks)
    rank = np.arange(n_ranks)
    p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=0, dst_buffer=SCRATCH)
    for d in _distances(n_ranks):
        count = min(d, n_ranks - d)
        p.copy(
            src=rank, dst=(rank - d) % n_ranks, src_chunk=0, dst_chunk=d, count=count,
            src_buffer=SCRATCH, dst_buffer=SCRATCH,
        )  # fmt: skip
        p.fence()
    # scratch 0..p-r-1 are blocks r..p-1, and the rest are blocks 0..r-1
    p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=rank, count=n_ranks - rank, src_buffer=SCRATCH)
    wraps = rank[1:]
    p.copy(src=wraps, dst=wraps, src_chunk=n_ranks - wraps, dst_chunk=0, count=wraps, src_buffer=SCRATCH)
    return p.build()


def blocks_of_round(n_ranks: int, distance: int) -> int:
    """Blocks 0..p-1 whose number has the bit `distance`: what one round of the all-to-all carries."""
    whole, rest = divmod(n_ranks, 2 * distance)
    return whole * distance + max(0, rest - distance)


def bruck_exchange_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of ceil(log2 p) messages, round j of the blocks whose number has bit j."""
    return sum(link.message(blocks_of_round(n_ranks, d) * size / n_ranks) for d in _distances(n_ranks))


@collective("all_to_all", cost=bruck_exchange_cost)
def bruck_all_to_all(n_ranks: int) -> Schedule:
    """All-to-all in a logarithm of rounds: sum over j of o + L + m_j S/(pB), m_j blocks, seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1. m_j is how many of 0..p-1 have bit j: p/2 when p is a power of two.

    Returns
    -------
    Schedule
        Scratch block i of a rank is on its way to the rank i further on. In round j the blocks with bit j are packed,
        travel 2^j ranks as one message, and are put back; each round is ended by a fence.

    References
    ----------
    Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
    message-passing systems", IEEE TPDS 1997 (index).
    """
    most = max((blocks_of_round(n_ranks, d) for d in _distances(n_ranks)), default=0)
    packed, arrived = n_ranks, n_ranks + most  # where blocks are packed in scratch memory, and where they arrive
    p = Program(n_ranks, n_chunks=n_ranks, n_scratch=n_ranks + 2 * most)
    listed = 2 + sum(1 + 2 * len(_first_of_runs(n_ranks, d)) for d in _distances(n_ranks))
    p.room_for(n_ranks * listed)  # before the first round is written: the last one may be too many
    rank = np.arange(n_ranks)
    with p.repeat(n_ranks, chunk=1):
        p.copy(src=rank, dst=rank, src_chunk=rank, dst_chunk=0, dst_buffer=SCRATCH)
    for d in _distances(n_ranks):
        _pack(p, d, packed, unpack=False)
        p.copy(
            src=rank, dst=(rank + d) % n_ranks, src_chunk=packed, dst_chunk=arrived, count=blocks_of_round(n_ranks, d),
            src_buffer=SCRATCH, dst_buffer=SCRATCH,
        )  # fmt: skip
        p.fence()
        _pack(p, d, arrived, unpack=True)
    with p.repeat(n_ranks, src_chunk=1, dst_chunk=-1):
        p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=rank, src_buffer=SCRATCH, dst_buffer=OUTPUT)
    return p.build()


def _pack(p: Program, distance: int, place: int, *, unpack: bool) -> None:
    """Copy the runs of blocks with one bit to `place`, one behind the other, or back from there."""
    rank = np.arange(p.n_ranks)
    first = _first_of_runs(p.n_ranks, distance)
    count = np.minimum(distance, p.n_ranks - first)
    loose, tight = first[:, np.newaxis], place + distance * np.arange(len(first))[:, np.newaxis]
    source, target = (tight, loose) if unpack else (loose, tight)
    p.copy(
        src=rank, dst=rank, src_chunk=source, dst_chunk=target, count=count[:, np.newaxis],
        src_buffer=SCRATCH, dst_buffer=SCRATCH,
    )  # fmt: skip


def _first_of_runs(n_ranks: int, distance: int) -> NDArray[np.int64]:
    """First blocks of the runs whose number has the bit `distance`, which is their length but perhaps of the last."""
    return np.arange(distance, n_ranks, 2 * distance)
