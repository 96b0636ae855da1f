"""gTop-k: the k largest elements of a sum, selected again after every addition on the way up a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import Schedule
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm

from .. import collective
from ..dense.binomial_tree import binomial_tree_all_reduce, binomial_tree_cost


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
