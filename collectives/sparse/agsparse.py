"""AGsparse: every rank collects the lists of all others, and adds them up itself."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import INPUT, SCRATCH, Schedule
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm


def agsparse_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of p-1 rounds of whole vectors, each added while the next one arrives.

    A round takes t = o + L + S/B, an addition g = gamma S, and the last vector that arrives is added last:
    t + g + (p-2) max(t, g).
    """
    if n_ranks == 1:
        return 0.0
    arrives, added = link.message(size), link.gamma * size
    return arrives + added + (n_ranks - 2) * max(arrives, added)


@collective("all_reduce", cost=agsparse_cost, sparse=SparseForm(coo))
def agsparse(n_ranks: int) -> Schedule:
    """All-reduce by all-gather of lists and local sums: (p-1)(o + L + S/B) + gamma S seconds, S = 2dM for density d.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        p-1 rounds around a ring; in each, every rank passes on the list that it has just received, and adds
        it to its own vector. Lists stay apart on the wire, so that nothing is saved where they overlap, and nothing
        grows either: each rank sends all lists but its successor's, which is (p-1)(4 + v)k bytes for k elements of
        v bytes each.

    Notes
    -----
    Where adding takes longer than a round, the sum takes t + (p-1) gamma S; see :func:`agsparse_cost`.

    References
    ----------
    Fei et al. (OmniReduce), SIGCOMM 2021, compare with it; Wang et al. (ZEN), OSDI 2025, call it one-shot and
    centralised at every node.
    """
    p = Program(n_ranks, n_chunks=1, n_scratch=n_ranks - 1)
    p.room_for(2 * n_ranks * (n_ranks - 1))
    rank = np.arange(n_ranks)
    for i in range(n_ranks - 1):
        first = i == 0
        p.copy(
            src=rank,
            dst=(rank + 1) % n_ranks,
            src_chunk=0 if first else i - 1,
            dst_chunk=i,
            src_buffer=INPUT if first else SCRATCH,
            dst_buffer=SCRATCH,
        )
    for i in range(n_ranks - 1):
        p.reduce(src=rank, dst=rank, src_chunk=i, dst_chunk=0, src_buffer=SCRATCH)
    return p.build()
