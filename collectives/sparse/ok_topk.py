"""Ok-Topk: ranges of the vector are added up by one rank each, and the largest of every range are gathered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from commsim.core.schedule import REDUCE, Schedule
from commsim.sparse.block_sets import UNLIMITED
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm

from .sparcml import sparcml_split, split_cost


def equal_shares(schedule: Schedule, k: int) -> NDArray[np.int64]:
    """Return the limits under which each range's sum keeps its share of k elements, at least one."""
    transfers = schedule.expand()
    shares = np.maximum(1, np.diff(np.arange(schedule.n_chunks + 1) * k // schedule.n_chunks))
    return np.where(transfers["op"] == REDUCE, shares[transfers["dst_chunk"]], UNLIMITED)


@collective("all_reduce", cost=split_cost, sparse=SparseForm(coo, balanced=True, truncate=equal_shares))
def ok_topk(n_ranks: int) -> Schedule:
    """All-reduce of top-k lists, split then gathered: (p-1)(o + 2S/(pB) + gamma S/p) + L + k(o + L) s for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any.

    Returns
    -------
    Schedule
        That of :func:`collectives.sparse.sparcml.sparcml_split`. Ranges are such that every rank has about k/p of its k
        elements in each (:func:`commsim.sparse.partition.balanced_bounds`). Their owners add up what comes, keep
        the largest, and gather these by recursive doubling.

    Notes
    -----
    A rank sends 2k(p-1)/p numbers to the owners, and receives as many of the k that survive: 4k(p-1)/p in all, where
    no all-reduce to k elements can do with less than 2k(p-1)/p. The authors' bound is 6k(p-1)/p: they cut all ranges
    at one threshold, which leaves more in some than in others, and then even that out by up to 2k(p-1)/p numbers
    before they gather. Here each range keeps k/p, which is what is left then. Bounds and
    thresholds serve 32, 64 or 128 iterations, so that their own all-reduces are left out.

    What a rank does not select stays in its residual, and what an owner cuts in the owner's: sum x = result + sum e,
    exactly where additions are exact.

    References
    ----------
    Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning" (Ok-Topk), PPoPP 2022.
    """
    return sparcml_split(n_ranks)
