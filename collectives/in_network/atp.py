"""ATP's all-reduce: switches of the first hop add what they can, and a parameter server sums the rest."""

from __future__ import annotations

import itertools

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .reduction_tree import CHUNKS, Tree, all_reduce_chunk, read_tree, read_window, tree_cost


def atp_cost(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_chunks: int = CHUNKS,
    pool: int | None = None,
    collision: float = 0.0,
    tree: Tree | None = None,
) -> float:
    """Cost without collisions: k chunks up and down the tree, the server above it; see ``reduction_tree.tree_cost``.

    Raises
    ------
    InputError
        If chunks collide: then many paths of unequal length share the server's link, and no closed form is known.
    """
    if n_collisions(n_chunks, collision) and n_ranks > 1:
        raise InputError("atp has a closed form without collisions only; use --engine flow")
    return tree_cost("atp", read_tree("atp", n_ranks, tree, n_helpers=2), size, link, n_chunks, pool)


def n_collisions(n_chunks: int, collision: float) -> int:
    """Chunks that find no aggregator: the nearest whole number.

    Raises
    ------
    InputError
        If the share is none.
    """
    if not 0 <= collision <= 1:
        raise InputError(f"atp: collision must be a share of the chunks from 0 to 1, got {collision}")
    return round(n_chunks * collision)


@collective("all_reduce", cost=atp_cost, systems=("atp",))
def atp(
    n_ranks: int,
    n_chunks: int = CHUNKS,
    pool: int | None = None,
    collision: float = 0.0,
    tree: Tree | None = None,
) -> Schedule:
    """All-reduce by switch and server, c = S/k: 2d(o+L+S/(kB)) + sum f gamma c + (k-1)max(o+S/(kB), f gamma c) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    n_chunks : int
        k.
    pool : int, optional
        Chunks that a rank may have under way; by default as many as there are. Marks do not shrink it here.
    collision : float
        Share of the chunks whose aggregators other jobs hold, rounded to whole chunks and spread evenly. Every rank
        sends these straight to the server, which sums them.
    tree : tuple of int, optional
        Parent of each rank and then of each helper, -1 for the topmost, which is the server. By default one aggregator
        and the server; ``commsim run`` makes the tree of the ranks' first switches and the server's.

    Returns
    -------
    Schedule
        With a share x of collisions the server receives (1 + x(p - 1)) S; results go from it down the tree in any case.
        Switches between the server's and the ranks' neither add nor copy: a stream for each of the ranks' switches
        goes through them.
        The cost is that of x = 0.

    Raises
    ------
    InputError
        If the pool is empty, `collision` is no share, or `tree` is no tree with the ranks as its leaves.

    Notes
    -----
    On every level an aggregator adds what f children send, in f gamma c if adding takes time; see
    :func:`collectives.in_network.reduction_tree.tree_cost`, also for pools and unequal levels.

    References
    ----------
    Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021.
    """
    collided, window = n_collisions(n_chunks, collision), read_window("atp", n_chunks, pool)
    shape = read_tree("atp", n_ranks, tree, n_helpers=2)
    if n_ranks == 1:
        return Program(1, n_chunks).build()
    p = Program(n_ranks, n_chunks, n_helpers=shape.n_helpers, n_scratch=window or 0)
    straight = (np.arange(1, n_chunks + 1) * collided) // n_chunks > np.arange(n_chunks) * collided // n_chunks
    first = 0
    for collides, run in itertools.groupby(straight.tolist()):
        times = len(list(run))
        with p.repeat(times, chunk=1, first=first):
            all_reduce_chunk(p, shape, window, straight=collides)
        first += times
    return p.build()
