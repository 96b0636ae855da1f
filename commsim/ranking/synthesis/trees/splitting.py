"""Switches split off, evenly where possible: what is left joins ranks only, with the links behind every arc."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import PhysicsError

from .max_flow_kernel import Arcs, PathSearch, reaches_all
from .optimum import graph_of
from .pools_kernel import NONE, Pools, append_link, join_pairs, n_parts_joined, take_arcs, write_taken
from .splitting_kernel import replace_pair, split_exactly
from .whole_rates import Numbers, WholeNetwork

Path = tuple[int, ...]
T = TypeVar("T", bound=np.generic)

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
    pools : Pools
        Units and links of each arc, which together are its capacity or more.
    """

    arcs: Arcs
    search: PathSearch
    n_ranks: int
    roots: Numbers
    pools: Pools

    def take(self, src: Sequence[int], dst: Sequence[int], units: int) -> list[list[tuple[int, Path]]]:
        """Take as many units of several arcs, and return units and links of what each has got."""
        arcs = self.arcs.between[np.asarray(src, np.int64), np.asarray(dst, np.int64)]
        taken, size = np.empty_like(arcs), np.empty(2, np.int64)
        take_arcs(self.pools, arcs, units, taken, size)
        parts, links = np.empty((int(size[0]), 3), np.int64), np.empty(int(size[1]), np.int64)
        write_taken(self.pools, taken, parts, links)
        got: list[list[tuple[int, Path]]] = [[] for _ in src]
        listed, end = links.tolist(), 0
        for arc, have, n_links in parts.tolist():
            got[arc].append((have, tuple(listed[end : end + n_links])))
            end += n_links
        return got


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
    pools = _pools_of(whole, arcs)
    pairs = np.empty((n_nodes * n_nodes, 3), np.int64)
    for switch in _order(whole):
        if not careful:
            pools = _joined(pools, arcs, switch, _split_all(arcs, switch))
            continue
        for share, spread in itertools.product(SHARES, (True, False)):
            split = _evenly(arcs, search, switch, whole.n_ranks, wanted, share, spread)
            if split is not None:
                pools = _joined(pools, arcs, switch, split)
                break
        n_pairs = split_exactly(arcs, search, switch, whole.n_ranks, wanted, pairs)
        if n_pairs < 0:
            name = whole.network.nodes[int(whole.node[switch])]
            raise PhysicsError(f"{whole.network.name}: {name} could not be split off")
        pools = _joined(pools, arcs, switch, pairs[:n_pairs])
    return RankGraph(arcs, search, whole.n_ranks, roots, _with_room(pools, whole.n_ranks, 0))  # a tree cuts so many


def _pools_of(whole: WholeNetwork, arcs: Arcs) -> Pools:
    """Return the links of all arcs of a network, and their units."""
    count = sum(map(len, whole.links))
    pools = Pools(
        np.full(len(arcs.head), NONE, np.int32), np.empty(len(arcs.head), np.int32), np.empty(count, np.int64),
        np.empty(count, np.int32), np.empty(count, np.int32), np.empty((count, 3), np.int32), np.array([0, 0, NONE]),
    )  # fmt: skip
    for arc, (a, b) in enumerate(zip(whole.src.tolist(), whole.dst.tolist(), strict=True)):
        for link in whole.links[arc]:
            if whole.link_rate[link]:
                append_link(pools, int(arcs.between[a, b]), link, int(whole.link_rate[link]))
    return pools


def _joined(pools: Pools, arcs: Arcs, switch: int, pairs: NDArray[np.int64]) -> Pools:
    """Let units of arcs to and from the switch become units of arcs past it, over the links of both."""
    pools = _with_room(pools, 2 * len(pairs), n_parts_joined(pools, arcs.between, switch, pairs))
    join_pairs(pools, arcs.between, switch, pairs)
    return pools


def _with_room(pools: Pools, n_parts: int, n_paths: int) -> Pools:
    """Return the same with room for more parts and paths."""
    parts, paths = pools.used[:2].tolist()
    return pools._replace(
        units=_longer(pools.units, parts, n_parts), path=_longer(pools.path, parts, n_parts),
        next=_longer(pools.next, parts, n_parts), halves=_longer(pools.halves, paths, n_paths),
    )  # fmt: skip


def _longer(table: NDArray[T], used: int, more: int) -> NDArray[T]:
    """Return a table with room for more rows behind those that are used, at least a quarter more if it must grow."""
    if used + more <= len(table):
        return table
    longer = np.empty((used + max(more, used // 4), *table.shape[1:]), table.dtype)
    longer[:used] = table[:used]
    return longer


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
