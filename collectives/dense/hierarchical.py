"""Hierarchical all-reduce: rings inside groups, and rings across groups between the ranks that hold the same part."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .ring import half_ring_cost, reducing_ring_cost, ring_cost

Groups = tuple[tuple[int, ...], ...]
Ranks = NDArray[np.int64]
# Chunks on all ranks together, beyond which unequal groups are refused: an engine keeps some words for each.
MAX_ADDRESSES = 2**26


def default_groups(n_ranks: int) -> Groups:
    """Consecutive ranks in groups of the largest divisor of p that is at most its square root."""
    size = max(d for d in range(1, math.isqrt(n_ranks) + 1) if n_ranks % d == 0)
    return tuple(tuple(range(i, i + size)) for i in range(0, n_ranks, size))


def hierarchical_cost(n_ranks: int, size: float, link: LogGP, groups: Groups | None = None) -> float:
    """Cost of reduce-scatter in groups of m, all-reduce of S/m across g groups, all-gather in groups.

    Raises
    ------
    InputError
        If the groups are not of equal size: then no closed form is known.
    """
    groups = groups or default_groups(n_ranks)
    if len({len(g) for g in groups}) > 1:
        raise InputError("hierarchical_all_reduce has a closed form for groups of equal size only")
    m, g = len(groups[0]), len(groups)
    inside = reducing_ring_cost(m, size, link) + half_ring_cost(m, size, link)
    return inside + ring_cost(g, size / m, link)


@collective("all_reduce", needs=("groups",), cost=hierarchical_cost)
def hierarchical_all_reduce(n_ranks: int, groups: Groups | None = None) -> Schedule:
    """All-reduce in g groups of m: 2(m-1)(a + S/(mB)) + 2(g-1)(a + S/(mgB)) + gamma S (p-1)/p seconds, a = o + L.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    groups : tuple of tuple of int, optional
        Ranks of each group, in the order of its ring; of any sizes. By default consecutive ranks, in groups of the
        largest divisor of p up to its square root.

    Returns
    -------
    Schedule
        Ring reduce-scatter inside every group, ring all-reduce across the groups between the owners of the same
        part, ring all-gather inside every group. With unequal groups a part is a shard of 1/lcm of the sizes.

    Raises
    ------
    InputError
        If `groups` is not a partition of the ranks, or its sizes have too large a common multiple.

    References
    ----------
    Jia et al., "Highly scalable deep learning training system with mixed-precision", 2018, section 4.3; the
    across-group ring of every member at once is the two-level scheme of Horovod and NCCL.
    """
    groups = default_groups(n_ranks) if groups is None else tuple(tuple(group) for group in groups)
    if sorted(itertools.chain.from_iterable(groups)) != list(range(n_ranks)) or not all(groups):
        raise InputError(
            f"hierarchical_all_reduce: groups must hold each rank 0..{n_ranks - 1} exactly once, and none be empty"
        )
    sizes = sorted({len(group) for group in groups})
    n_shards, g = math.lcm(*sizes), len(groups)
    if n_shards * g > n_ranks and n_ranks * n_shards * g > MAX_ADDRESSES:
        raise InputError(
            f"hierarchical_all_reduce: {g} groups of sizes {', '.join(map(str, sizes))} need {n_shards * g} chunks on "
            f"{n_ranks} ranks, which no memory holds; use sizes with a smaller common multiple"
        )
    p = Program(n_ranks, n_chunks=n_shards * g)
    # a member of a group of m owns 1/m of the chunks
    rings = [(m, n_shards // m * g, *_rings([group for group in groups if len(group) == m])) for m in sizes]
    for m, count, rank, following, place in rings:
        with p.repeat(m - 1, chunk=-count):
            p.reduce((place - 1) % m * count, src=rank, dst=following, count=count)
    _across(p, groups, n_shards)
    for m, count, rank, following, place in rings:
        with p.repeat(m - 1, chunk=-count):
            p.copy(place * count, src=rank, dst=following, count=count)
    return p.build()


def _rings(groups: list[tuple[int, ...]]) -> tuple[Ranks, Ranks, Ranks]:
    """Rank, the next one in its group's ring, and its place in the group, for all groups of one size."""
    members = np.array(groups)
    place = np.broadcast_to(np.arange(members.shape[1]), members.shape)
    return members.ravel(), np.roll(members, -1, axis=1).ravel(), place.ravel()


def _across(p: Program, groups: Groups, n_shards: int) -> None:
    """Ring all-reduce of every shard between its owners, all shards at once.

    Neighbouring shards with the same owners in all groups travel as one message. The part of a shard that starts at
    group c is its c-th of g parts; in round r it moves from group c+r to the next, so that peers step and chunks stay.
    """
    g = len(groups)
    bounds = sorted({i * n_shards // len(group) for group in groups for i in range(len(group))})
    owner = np.array([[group[b * len(group) // n_shards] for b in bounds] for group in groups])  # [group, segment]
    count = np.diff([*bounds, n_shards])
    part = np.arange(g)[:, np.newaxis]
    chunk = np.array(bounds) * g + part * count
    step = (np.roll(owner, -1, axis=0) - owner) % p.n_ranks
    for write, begin in ((p.reduce, 0), (p.copy, -1)):
        if (step == step.flat[0]).all():  # the same step from any group to the next: kept as one round
            first = np.roll(owner, -begin, axis=0)
            with p.repeat(g - 1, src=int(step.flat[0]), dst=int(step.flat[0])):
                write(chunk, src=first, dst=np.roll(first, -1, axis=0), count=count)
            continue
        for hop in range(begin, begin + g - 1):
            write(chunk, src=np.roll(owner, -hop, axis=0), dst=np.roll(owner, -hop - 1, axis=0), count=count)
