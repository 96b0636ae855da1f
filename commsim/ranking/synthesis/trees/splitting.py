"""Switches split off, evenly where possible: what is left joins ranks only, with the links behind every arc."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import PhysicsError

from .max_flow_kernel import Arcs, PathSearch, reaches_all
from .optimum import graph_of
from .splitting_kernel import replace_pair, split_exactly
from .whole_rates import Numbers, WholeNetwork

Path = tuple[int, ...]

# Parts of a switch's capacity that are tried to be split evenly.
SHARES = (1.0, 0.75, 0.5, 0.25)


@dataclass(frozen=True, slots=True, eq=False)
class RankGraph:
    """Arcs between ranks, and over which links they go.

    Parameters
    ----------
    arcs, search : Arcs, PathSearch
        The graph; its last node is the source of all roots. Of other nodes only the ranks have arcs.
    n_ranks : int
        Ranks.
    roots : int64[n_ranks]
        Unit trees of each root.
    paths : dict
        Units and links by (src, dst), which together are the arc's capacity or more.
    """

    arcs: Arcs
    search: PathSearch
    n_ranks: int
    roots: Numbers
    paths: dict[tuple[int, int], deque[tuple[int, Path]]]


def split_switches(whole: WholeNetwork, roots: Numbers, *, careful: bool = True) -> RankGraph:
    """Split all switches off.

    First evenly: shares of what each source has for each destination in proportion to capacity, kept if every rank can
    still be reached by all trees. So a switch becomes a mesh, in which trees are low; exact splitting would make
    chains. What is left is split exactly, which always succeeds for switches with as much in as out.

    Parameters
    ----------
    whole : WholeNetwork
        Balanced at its switches; its rates are the unit trees that links can carry.
    roots : int64[n_ranks]
        Unit trees of each rank, which fit.
    careful : bool
        Whether all trees still fit afterwards. If not, everything is split evenly, what cannot be is dropped, and no
        flows are needed: whether trees fit is then seen by packing them.

    References
    ----------
    Zhao et al., "ForestColl", 2024, section 5, for the exact rule; even splitting is ours.
    """
    n_nodes, wanted = whole.n_nodes, int(roots.sum())
    n_switches = n_nodes - whole.n_ranks
    spare = n_nodes * n_nodes // 2 + 3 if n_switches else 0
    arcs, search = graph_of(whole, roots, spare)
    paths: dict[tuple[int, int], deque[tuple[int, Path]]] = defaultdict(deque)
    for arc, (a, b) in enumerate(zip(whole.src.tolist(), whole.dst.tolist(), strict=True)):
        paths[a, b].extend((int(whole.link_rate[link]), (link,)) for link in whole.links[arc] if whole.link_rate[link])
    pairs = np.empty((n_nodes * n_nodes, 3), np.int64)
    for switch in _order(whole):
        if not careful:
            _join_paths(paths, switch, _split_all(arcs, switch))
            continue
        for share, spread in itertools.product(SHARES, (True, False)):
            split = _evenly(arcs, search, switch, whole.n_ranks, wanted, share, spread)
            if split is not None:
                _join_paths(paths, switch, split)
                break
        n_pairs = split_exactly(arcs, search, switch, whole.n_ranks, wanted, pairs)
        if n_pairs < 0:
            name = whole.network.nodes[int(whole.node[switch])]
            raise PhysicsError(f"{whole.network.name}: {name} could not be split off")
        _join_paths(paths, switch, pairs[:n_pairs])
    return RankGraph(arcs, search, whole.n_ranks, roots, paths)


def _order(whole: WholeNetwork) -> list[int]:
    """Switches in the order in which they are split off: those farthest from ranks first, then those with few arcs."""
    n = whole.n_nodes
    distance = np.full(n, n)
    distance[: whole.n_ranks] = 0
    for _ in range(n):
        nearer = distance.copy()
        np.minimum.at(nearer, whole.dst, distance[whole.src] + 1)
        if (nearer == distance).all():
            break
        distance = nearer
    degree = np.bincount(whole.dst, minlength=n)
    return sorted(range(whole.n_ranks, n), key=lambda w: (-distance[w], degree[w], w))


def _split_all(arcs: Arcs, switch: int) -> NDArray[np.int64]:
    """Split a switch evenly, and drop what is left of it."""
    split = _even_split(arcs, switch, 1.0)
    for u, t, units in split.tolist():
        replace_pair(arcs, u, switch, t, units)
    at = arcs.between[switch]
    arcs.room[at[at >= 0]] = 0
    arcs.room[at[at >= 0] ^ 1] = 0
    return split


def _evenly(
    arcs: Arcs, search: PathSearch, switch: int, n_ranks: int, wanted: int, share: float, spread: bool
) -> NDArray[np.int64] | None:
    """Split a share of a switch's capacity evenly; None, with nothing changed, if that would make a cut too small."""
    split = _even_split(arcs, switch, share, spread=spread)
    if not len(split):
        return None
    for u, t, units in split.tolist():
        replace_pair(arcs, u, switch, t, units)
    if reaches_all(arcs, search, len(arcs.first) - 1, n_ranks, wanted) < 0:
        return split
    for u, t, units in split.tolist():
        replace_pair(arcs, u, switch, t, -units)
    return None


def _even_split(arcs: Arcs, switch: int, share: float, *, spread: bool = False) -> NDArray[np.int64]:
    """Return source, destination and amount of an even split of a share of a switch: int64[n, 3]."""
    at = arcs.between[switch, :-1]
    near = np.flatnonzero(at >= 0)
    into, out = arcs.room[arcs.between[near, switch]], arcs.room[at[near]]
    amount = _even_amounts(into, out, share, spread=spread)
    row, column = np.nonzero(amount)
    return np.stack((near[row], near[column], amount[row, column]), axis=1)


def _even_amounts(into: Numbers, out: Numbers, share: float, *, spread: bool) -> Numbers:
    """Whole amounts for each pair of different neighbours, in proportion to what comes in and goes out."""
    amount = np.outer(into, out).astype(np.float64)
    np.fill_diagonal(amount, 0.0)
    for _ in range(50):  # rows and columns in turn, until both have the right sums
        for axis, sums in ((1, into), (0, out)):
            total = amount.sum(axis=axis, keepdims=True)
            amount *= np.divide(np.expand_dims(sums, axis), total, out=np.zeros_like(total), where=total > 0)
    # a sum that is met only in the limit must not be passed; amounts that are whole but for rounding are
    over = np.maximum(1.0, amount.sum(axis=1) / np.maximum(into, 1))
    amount *= share / over[:, np.newaxis]
    return _spread(amount) if spread else np.asarray(np.floor(amount + 1e-6), np.int64)


def _spread(amount: NDArray[np.float64]) -> Numbers:
    """Round fractions up and down so that no row or column passes its sum, one diagonal after the other.

    Where a source has less than a unit for each destination, rounding down would leave nothing, and exact splitting a
    chain; so it has one unit for some of them, and its neighbours for others.
    """
    whole = np.asarray(np.floor(amount + 1e-6), np.int64)
    part = amount - whole
    rows, columns = (np.floor(part.sum(axis=axis) + 1e-6).astype(np.int64) for axis in (1, 0))
    n = len(amount)
    for shift in range(n):
        for i in np.flatnonzero(rows).tolist():
            j = (i + shift) % n
            if columns[j] and part[i, j] > 1e-6:
                whole[i, j] += 1
                rows[i] -= 1
                columns[j] -= 1
    return whole


def _join_paths(paths: dict[tuple[int, int], deque[tuple[int, Path]]], switch: int, pairs: NDArray[np.int64]) -> None:
    """Let units of arcs to and from the switch become units of arcs past it, over the links of both."""
    for u, t, units in pairs.tolist():
        before, after = take(paths[u, switch], units), take(paths[switch, t], units)
        if u == t:
            continue
        while before and after:
            amount = min(before[-1][0], after[-1][0])
            (a, first), (b, second) = before.pop(), after.pop()
            if a > amount:
                before.append((a - amount, first))
            if b > amount:
                after.append((b - amount, second))
            paths[u, t].append((amount, first + second))


def take(pool: deque[tuple[int, Path]], units: int) -> list[tuple[int, Path]]:
    """Take units from the front of a pool, cutting its last part where needed.

    Parameters
    ----------
    pool : deque of (int, tuple of int)
        Units and what they are.
    units : int
        Number of units, at most what the pool has.
    """
    trees = []
    while units:
        have, path = pool.popleft()
        used = min(have, units)
        trees.append((used, path))
        if have > used:
            pool.appendleft((have - used, path))
        units -= used
    return trees
