"""TopkA: every rank collects the top-k lists of all others and adds them up; gTop-k adds and cuts along a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.dense.binomial_tree import binomial_tree_all_reduce, binomial_tree_cost
from collectives.dense.halving_doubling import gather_by_doubling, recursive_doubling_cost
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH, Schedule
from commsim.sparse.block_sets import UNLIMITED
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm


def whole_lists(schedule: Schedule, k: int) -> NDArray[np.int64]:  # noqa: ARG001 - lists start with k, and stay so
    """Return the limits of messages that are not cut on the way: all is lost before they start."""
    return np.full(schedule.n_transfers, UNLIMITED)


def topk_a_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of gathering p vectors by recursive doubling, and of p-1 additions after the last one has come."""
    return recursive_doubling_cost(n_ranks, n_ranks * size, link) + (n_ranks - 1) * link.gamma * size


@collective("all_reduce", cost=topk_a_cost, sparse=SparseForm(coo, truncate=whole_lists))
def topk_a(n_ranks: int) -> Schedule:
    """All-reduce of top-k lists by all-gather and sums: k(o + L) + (p-1)(S/B + gamma S) s, p = 2^k, S = 2dM.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. The all-gather is :func:`collectives.dense.halving_doubling.recursive_doubling_all_gather`.

    Returns
    -------
    Schedule
        Every rank puts its list in its place of p, and partners exchange all lists that they have. Then every rank
        adds them up in the order of the ranks, so that all have the same sum bit for bit.

    Notes
    -----
    For p = 2^k every rank sends and receives p-1 lists of its k elements' indices and values, 2k(p-1) numbers; for
    other p the r folded ranks receive all p lists at the end. What a rank does not select stays in its residual: with
    x the gradient, s the selected elements and e the residual, x = s + e exactly, and so sum x = result + sum e up to
    the rounding of the sum.

    References
    ----------
    Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification for low bandwidth networks",
    ICDCS 2019, compare with it; the repository's README has log P alpha + 2k(P - 1) beta.
    """
    p = Program(n_ranks, n_chunks=1, n_scratch=n_ranks)
    p.room_for(n_ranks**2)  # of the sums alone
    rank = np.arange(n_ranks)
    p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=rank, dst_buffer=SCRATCH)
    gather_by_doubling(p, SCRATCH)
    p.copy(src=rank, dst=rank, src_chunk=0, dst_chunk=0, src_buffer=SCRATCH)
    for i in range(1, n_ranks):
        p.reduce(src=rank, dst=rank, src_chunk=i, dst_chunk=0, src_buffer=SCRATCH)
    return p.build()


def every_sum(schedule: Schedule, k: int) -> NDArray[np.int64]:
    """Return the limit k for all that is written: sums are cut to it, and copies of them are no longer."""
    return np.full(schedule.n_transfers, k)


@collective("all_reduce", cost=binomial_tree_cost, sparse=SparseForm(coo, truncate=every_sum))
def gtop_k(n_ranks: int) -> Schedule:
    """All-reduce of top-k lists with re-selection on a tree: ceil(log2 p)(2(o + L + S/B) + gamma S) s, S = 2dM.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        That of :func:`collectives.dense.binomial_tree.binomial_tree_all_reduce`. A rank that has added a list to its
        own
        keeps the k largest elements of the sum, so that no message is longer than a list; the last k come back down.

    Notes
    -----
    All ranks together send at most 2(p-1) lists of 2k numbers; 2 log2 p of them lie behind one another, half on the
    way up and half on the way down.

    What is cut away stays with the rank that cuts it, in its residual. So for any data and order of selection
    sum x = result + sum e, exactly where additions are exact. The authors put back what is not in the result at the
    ranks that it came from; then an element is lost that is cut on one branch and survives on another, since its
    index is in the result.

    References
    ----------
    Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification for low bandwidth networks"
    (gTop-k), ICDCS 2019, algorithms 2 and 3.
    """
    return binomial_tree_all_reduce(n_ranks)
