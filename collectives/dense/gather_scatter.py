"""Gather and scatter without a tree: the root exchanges messages with all ranks, all at once."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule


def direct_gather_cost(n_ranks: int, size: float, link: LogGP, root: int = 0) -> float:  # noqa: ARG001
    """Cost of p-1 messages that start together and share the root's port."""
    return link.message((n_ranks - 1) / n_ranks * size) if n_ranks > 1 else 0.0


@collective("gather", cost=direct_gather_cost)
def direct_gather(n_ranks: int, root: int = 0) -> Schedule:
    """Gather with everything at once: o + L + (p-1)S/(pB) seconds; no tree moves fewer bytes into the root.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    root : int
        Rank that gets every block.

    Returns
    -------
    Schedule
        One message from every other rank.

    References
    ----------
    Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
    Concurrency and Computation 2007, for the lower bound on the volume that this meets.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    others = np.delete(np.arange(n_ranks), root)
    p.copy(others, src=others, dst=root)
    return p.build()


def direct_scatter_cost(n_ranks: int, size: float, link: LogGP, root: int = 0) -> float:  # noqa: ARG001
    """Cost of p-1 messages that leave one port together."""
    others = n_ranks - 1
    return others * (link.o + size / (n_ranks * link.B)) + (link.L if others else 0.0)


@collective("scatter", cost=direct_scatter_cost)
def direct_scatter(n_ranks: int, root: int = 0) -> Schedule:
    """Scatter with everything at once: (p-1)(o + S/(pB)) + L seconds; the overheads are all the root's.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    root : int
        Rank that has every block.

    Returns
    -------
    Schedule
        One message to every other rank.

    References
    ----------
    Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience",
    Concurrency and Computation 2007.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    others = np.delete(np.arange(n_ranks), root)
    p.copy(others, src=root, dst=others)
    return p.build()
