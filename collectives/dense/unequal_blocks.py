"""The v-variants: blocks of different sizes, written as different numbers of equal chunks."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.operations import operation
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule

Counts = tuple[int, ...]


def ring_v_cost(n_ranks: int, size: float, link: LogGP, counts: Counts | None = None) -> float:
    """Cost of the largest block on its way round; all others keep ahead of it or behind it."""
    counts = counts or (1,) * n_ranks
    return (n_ranks - 1) * link.message(max(counts) / sum(counts) * size)


@collective("all_gather_v", cost=ring_v_cost)
def ring_all_gather_v(n_ranks: int, counts: Counts | None = None) -> Schedule:
    """All-gather of unequal blocks over a ring: (p-1)(o + L + mS/B) seconds, m the largest block's share; S/(pB) alike.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    counts : tuple of int, optional
        Chunks of each rank's block, 0 or more; by default one each.

    Returns
    -------
    Schedule
        Every block goes round the ring as one message per hop. A rank that has little to pass on waits for the
        largest block, which is why the time is that of p largest blocks.

    Raises
    ------
    InputError
        If there is not one count per rank, or one is negative, or all are 0.

    References
    ----------
    Träff, Ripke, Siebert, Balaji, Thakur and Gropp, "A pipelined algorithm for large, irregular all-gather
    problems", IJHPCA 2010: the ring is what they improve on.
    """
    counts = (1,) * n_ranks if counts is None else tuple(counts)
    p = Program(n_ranks, n_chunks=operation("all_gather_v").least_chunks(n_ranks, counts))
    begins = np.cumsum(counts) - counts
    rank = np.flatnonzero(counts)  # an empty block is no message
    with p.repeat(n_ranks - 1, src=1, dst=1):
        p.copy(begins[rank], src=rank, dst=(rank + 1) % n_ranks, count=np.array(counts)[rank])
    return p.build(layout=counts)


def direct_v_bounds(n_ranks: int, size: float, link: LogGP, counts: Counts | None = None) -> tuple[float, float]:
    """Bounds on the time on an idle star: the busiest port, and the busiest pair of ports one after the other.

    At any time a message is held up by its sender's or its receiver's port, which then is full (max-min fairness);
    so it takes at most the time that both need for all that passes them.

    Returns
    -------
    lower, upper : float, s
    """
    counts = counts or (1,) * n_ranks**2
    chunk = size / operation("all_to_all_v").least_chunks(n_ranks, counts)
    chunks = np.reshape(counts, (n_ranks, n_ranks)) * (1 - np.eye(n_ranks, dtype=np.int64))
    if not chunks.any():
        return 0.0, 0.0
    out = link.o * (chunks > 0).sum(axis=1) + chunk / link.B * chunks.sum(axis=1)
    into = chunk / link.B * chunks.sum(axis=0)
    lower = max(out.max(), link.o + into.max())
    upper = np.where(chunks > 0, out[:, np.newaxis] + into, 0.0).max()
    return float(lower + link.L), float(upper + link.L)


@collective("all_to_all_v", bounds=direct_v_bounds)
def direct_all_to_all_v(n_ranks: int, counts: Counts | None = None) -> Schedule:
    """All-to-all of unequal blocks, everything at once: the busiest port's sum of o + S/(kB) per chunk, + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    counts : tuple of int, optional
        Chunks from rank i to rank j, row by row of i, p times p of them, 0 or more; by default one each. k is the
        most that any rank sends or receives, and S the bytes of these.

    Returns
    -------
    Schedule
        One message for every pair that has something to send. Blocks lie one behind the other, in the order of the
        ranks that they go to, or come from.

    Raises
    ------
    InputError
        If there is not one count per pair, or one is negative, or all are 0.

    Notes
    -----
    With equal counts it is ``direct_all_to_all``, and the lower bound of :func:`direct_v_bounds` is the time.

    References
    ----------
    MPI Forum, "MPI: A message-passing interface standard", version 4.1, section 6.8 (MPI_Alltoallv).
    """
    if counts is None:
        Program(n_ranks, n_chunks=1).room_for(n_ranks**2)  # before the counts are listed
    counts = (1,) * n_ranks**2 if counts is None else tuple(counts)
    p = Program(n_ranks, n_chunks=operation("all_to_all_v").least_chunks(n_ranks, counts))
    chunks = np.reshape(np.array(counts, np.int64), (n_ranks, n_ranks))
    src, dst = np.nonzero(chunks)
    read, write = (np.cumsum(chunks, axis=axis) - chunks for axis in (1, 0))
    p.copy(
        src=src, dst=dst, src_chunk=read[src, dst], dst_chunk=write[src, dst], count=chunks[src, dst],
        dst_buffer=OUTPUT,
    )  # fmt: skip
    return p.build(layout=counts)
