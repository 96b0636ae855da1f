"""Which ranks are near each other: what collectives with locality take as `groups` and as `dims`."""

from __future__ import annotations

import itertools
import math

import numpy as np

from commsim.core.network import Network
from commsim.core.network_queries import is_torus, locality_levels, numbered
from commsim.core.placement import Placement

Groups = tuple[tuple[int, ...], ...]


def rank_levels(network: Network, placement: Placement, n_ranks: int) -> tuple[tuple[str, Groups], ...]:
    """Group ranks by where they sit: what collectives with locality take, for hierarchies of any depth.

    Returns
    -------
    tuple of (str, tuple of tuple of int)
        Name of a level and the ranks of each of its groups, the innermost level first. Levels that say nothing are
        left out: every rank by itself, all ranks together, or the same groups as the level before.
    """
    levels: list[tuple[str, Groups]] = []
    for level in locality_levels(network):
        group = np.full(network.n_nodes, -1, np.int64)
        group[network.endpoints] = level.group
        of_rank = group[placement.nodes[:n_ranks]]
        elsewhere = of_rank < 0  # ranks that sit on something else than endpoints are near nothing
        of_rank = numbered(np.where(elsewhere, network.n_nodes + placement.nodes[:n_ranks], of_rank))
        n_groups = int(of_rank.max()) + 1
        if 1 < n_groups < n_ranks:
            order = np.argsort(of_rank, kind="stable")
            cuts = np.searchsorted(of_rank[order], np.arange(1, n_groups))
            groups = tuple(tuple(part.tolist()) for part in np.split(order, cuts))
            if not levels or groups != levels[-1][1]:
                levels.append((level.name, groups))
    return tuple(levels)


def rank_groups(network: Network, placement: Placement, n_ranks: int) -> Groups:
    """Group the ranks by the innermost level that tells them apart: what collectives with locality take as `groups`.

    Returns
    -------
    tuple of tuple of int
        Ranks of each machine when some machine has several, else of each rack, and so on; else all in one.
    """
    levels = rank_levels(network, placement, n_ranks)
    return levels[0][1] if levels else (tuple(range(n_ranks)),)


def rank_grid(network: Network, placement: Placement, n_ranks: int) -> tuple[int, ...] | None:
    """Sides of the grid that a torus or the levels of locality make of the ranks: what collectives take as `dims`.

    Returns
    -------
    tuple of int or None
        Such as racks, machines per rack, ranks per machine; the sides of a torus whose hosts are all ranks, in order.
        None where a level's groups are not equal runs of ranks.
    """
    at = network.coordinates
    if at is not None and is_torus(network):
        own = at[placement.nodes[:n_ranks]]
        sides = tuple((own.max(axis=0) + 1).tolist())
        if math.prod(sides) == n_ranks and np.array_equal(own, np.stack(np.unravel_index(range(n_ranks), sides), 1)):
            return sides
    sizes = [1]
    for _, groups in rank_levels(network, placement, n_ranks):
        size = len(groups[0])
        runs = tuple(tuple(range(i, i + size)) for i in range(0, n_ranks, size))
        if groups != runs or n_ranks % size or size % sizes[-1]:
            return None
        sizes.append(size)
    sizes.append(n_ranks)
    return tuple(b // a for a, b in itertools.pairwise(sizes))[::-1] if len(sizes) > 2 else None
