"""Reduce along a pipelined chain, for long vectors."""

from __future__ import annotations

import numpy as np

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .. import collective


def chain_reduce_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_chunks: int = 64,
    root: int = 0,  # noqa: ARG001 - all roots alike
) -> float:
    """Cost of the first chunk over p-1 hops, and of the others behind it, as far apart as the slower of the stages."""
    chunk = size / n_chunks
    if n_ranks == 1:
        return 0.0
    first = (n_ranks - 1) * (link.message(chunk) + link.gamma * chunk)
    return first + (n_chunks - 1) * max(link.o + chunk / link.B, link.gamma * chunk)


@collective("reduce", cost=chain_reduce_cost)
def chain_reduce(n_ranks: int, n_chunks: int = 64, root: int = 0) -> Schedule:
    """Reduce over a pipelined chain, c = S/k: (p-1)(o+L+S/(kB)+gamma c) + (k-1)max(o+S/(kB), gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int
        k. Sending and reducing are two stages of the pipeline, and the slower one decides how chunks follow.
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
    p = Program(n_ranks, n_chunks=n_chunks)
    with p.repeat(n_ranks - 1, src=1, dst=1):
        p.reduce(np.arange(n_chunks), src=(root + 1) % n_ranks, dst=(root + 2) % n_ranks)
    return p.build()
