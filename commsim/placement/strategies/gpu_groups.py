"""Groups of free GPUs: hosts, racks and pods with room, what is near what, and the order of ranks."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.placement.link_use import numbers_of

from .fabric_groups import groups_of

# One node per GPU, in the order of ranks: neighbours on the ring are near each other.
Taken = NDArray[np.int64]

_MANY = 2**20  # GPUs


def _powers() -> Iterator[int]:
    return (2**k for k in itertools.count())


class GpuGroups:
    """Free GPUs of a network's nodes, by the groups that they are in.

    Parameters
    ----------
    network : Network
        Network.
    free : int64[n_nodes]
        Free GPUs of each node; changed as they are taken.
    """

    def __init__(self, network: Network, free: NDArray[np.int64]) -> None:
        self.network, self.free = network, free
        self.path, self.is_poor = groups_of(network)

    def _shared(self, nodes: Taken, name: str) -> Taken:
        """How many groups of each level nodes share with the one of a name."""
        shared: Taken = (self.path[nodes] == self.path[numbers_of(self.network)[name]]).sum(axis=1)
        return shared

    @contextlib.contextmanager
    def _only(self, here: NDArray[np.bool_]) -> Iterator[None]:
        """Hide what is free elsewhere while some is taken."""
        hidden = np.where(here, 0, self.free)
        self.free -= hidden
        try:
            yield
        finally:
            self.free += hidden

    def level(self, gpus: Taken) -> int:
        """How many levels of groups hold all of them: the more, the closer together they are."""
        return int((self.path[gpus] == self.path[gpus[0]]).all(axis=0).sum())

    def nodes(self) -> list[str]:
        """Return the name of the node of each GPU that is free, by the order of the network."""
        return [self.network.nodes[i] for i in np.repeat(np.arange(len(self.free)), self.free).tolist()]

    def names(self, gpus: Taken, after: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names of nodes, those near the last of the ranks before them first."""
        if after:
            gpus = gpus[np.argsort(-self._shared(gpus, after[-1]), kind="stable")]
        return tuple(self.network.nodes[i] for i in gpus)

    def _first(self, nodes: Taken, n: int) -> Taken:
        """Return the node of each of the first `n` free GPUs of nodes in some order."""
        before = np.cumsum(self.free[nodes]) - self.free[nodes]
        return np.repeat(nodes, np.clip(n - before, 0, self.free[nodes]))

    def _seats(self, n: int, racks: Taken) -> tuple[Taken, Taken]:
        """Return the node of each free GPU, and how many of that node come before it.

        Of very many GPUs only those that can be among the first `n` that racks and their hosts give in turn.
        """
        free = self.free
        if free.sum() > _MANY:
            with_room = np.flatnonzero(free > 0)
            rack = np.unique(racks[with_room], return_inverse=True)[1]
            room = np.bincount(rack, weights=free[with_room])
            level = next(k for k in _powers() if np.minimum(room, k).sum() >= n)
            enough = next(
                k for k in _powers()
                if (np.bincount(rack, weights=np.minimum(free[with_room], k)) >= np.minimum(room, level)).all()
            )  # fmt: skip
            free = np.minimum(free, enough)
        nodes = np.repeat(np.arange(len(free)), free)
        return nodes, np.arange(len(nodes)) - np.searchsorted(nodes, nodes)

    def _take(self, nodes: Taken) -> Taken:
        np.subtract.at(self.free, nodes, 1)
        return self.in_order(nodes)

    def in_order(self, nodes: Taken) -> Taken:
        """Sort by nearness, so that the ring leaves each group once."""
        ordered: Taken = nodes[np.lexsort(self.path[nodes].T[::-1])]
        return ordered

    def _near(self, nodes: Taken, column: int, n: int, rng: np.random.Generator | None) -> None:
        """Take `n` of `nodes`, which are in one group of every level before `column`."""
        level, nodes = self._smallest(nodes, column, n, rng)
        if level == self.path.shape[1]:
            self.free[nodes] -= n
            return
        good = nodes[~self.is_poor[nodes, level:].any(axis=1)]
        nodes = good if self.free[good].sum() >= n else nodes
        room, inverse = self._rooms(nodes, level, rng)
        poor = np.zeros(len(room), np.bool_)
        np.logical_or.at(poor, inverse, self.is_poor[nodes, level:].any(axis=1))
        order = np.lexsort((-room, poor))
        before = np.cumsum(room[order]) - room[order]
        # whole groups, until what is left fits into one
        whole = order[: int((before + room[order] >= n).argmax())]
        is_whole = np.isin(inverse, whole)
        self.free[nodes[is_whole]] = 0
        self._near(nodes[~is_whole], level, n - int(room[whole].sum()), rng)

    def _smallest(self, nodes: Taken, column: int, n: int, rng: np.random.Generator | None) -> tuple[int, Taken]:
        """Return the nodes of the smallest group with room for `n`, and the column after its level.

        In the first place without counting nodes whose traffic to others of the group would pass what is poor; all of
        them where no group has room.
        """
        last = self.path.shape[1] - 1
        for with_poor in (False, True) if self.is_poor[nodes].any() else (True,):
            for level in range(last, column - 1, -1):
                inside = nodes if with_poor else nodes[~self.is_poor[nodes, level + 1 :].any(axis=1)]
                room, inverse = self._rooms(inside, level, rng)
                fitting = np.flatnonzero(room >= n)
                if fitting.size:
                    parts = self._parts(inside, inverse, level, n)[fitting]
                    chosen = inside[inverse == fitting[np.lexsort((room[fitting], parts))[0]]]
                    return level + 1, nodes[self.path[nodes, level] == self.path[chosen[0], level]]
        return column, nodes

    def _parts(self, nodes: Taken, group: Taken, level: int, n: int) -> Taken:
        """Over how many groups of the next level `n` would be split in each group, the largest first."""
        if level + 1 >= self.path.shape[1]:
            return np.ones(int(group.max()) + 1, np.int64)
        _, first, child = np.unique(self.path[nodes, level + 1], return_index=True, return_inverse=True)
        room, parent = np.bincount(child, weights=self.free[nodes]), group[first]
        order = np.lexsort((-room, parent))
        room, parent = room[order], parent[order]
        before = np.cumsum(room) - room
        starts = np.flatnonzero(np.r_[True, parent[1:] != parent[:-1]])
        before -= np.repeat(before[starts], np.diff(np.r_[starts, len(parent)]))
        return np.bincount(parent[before < n], minlength=int(group.max()) + 1)

    def _rooms(self, nodes: Taken, level: int, rng: np.random.Generator | None) -> tuple[Taken, Taken]:
        """Return the free GPUs of each group of a level, and the group of each node, numbered in a drawn order."""
        groups, inverse = np.unique(self.path[nodes, level], return_inverse=True)
        if rng is not None and len(groups) > 1:
            inverse = rng.permutation(len(groups))[inverse]
        return np.bincount(inverse, weights=self.free[nodes], minlength=len(groups)).astype(np.int64), inverse
