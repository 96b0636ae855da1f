"""Free GPUs, ways to take some (close together, far apart, smallest leftovers), and the order of ranks on them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, NoRoomError
from commsim.core.units import count_text
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import numbers_of
from commsim.training.sharing.periodic import PeriodicJob

from .fabric_groups import fabrics, groups_of

# One node per GPU, in the order of ranks: neighbours on the ring are near each other.
Taken = NDArray[np.int64]
# What each job takes, by its number.
Plan = dict[int, Taken]

_MAX_NAMED = 4  # jobs that wait
_MANY = 2**20  # GPUs


def unplaced(jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> list[int]:
    """Return the indices of the jobs to be placed: the largest first, or in a drawn order."""
    waiting = [i for i, job in enumerate(jobs) if job.placement is None]
    if rng is not None:
        return [waiting[k] for k in rng.permutation(len(waiting))]
    return sorted(waiting, key=lambda i: -jobs[i].n_gpus)


def _powers() -> Iterator[int]:
    return (2**k for k in itertools.count())


class NoRoomInFabricError(NoRoomError):
    """No fabric has room for a job, though all together have."""


class FreeGpus:
    """GPUs that no job has taken yet.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose free GPUs there are at first.
    jobs : sequence of PeriodicJob
        Those with a placement take theirs.

    Raises
    ------
    InputError
        If they do not have room together, or one is placed where no GPU is free: NoRoomError if they had without what
        is taken.
    """

    def __init__(self, cluster: Cluster, jobs: Sequence[PeriodicJob]) -> None:
        self.network = cluster.network
        self.path, self.is_poor = groups_of(cluster.network)
        self.free = cluster.free.copy()
        index = numbers_of(cluster.network)
        for job in jobs:
            for name in job.placement or ():
                if name not in index or not cluster.gpus[index[name]]:
                    raise InputError(f"job {job.name} is placed on {name}, which has no GPUs in {self.network.name}")
                self.free[index[name]] -= 1
                if self.free[index[name]] < 0:
                    asked = f"{count_text((job.placement or ()).count(name), 'GPU')} of {name}"
                    has = f"which has {cluster.gpus[index[name]]}, {cluster.free[index[name]]} free before these jobs"
                    fits = (job.placement or ()).count(name) <= cluster.gpus[index[name]]
                    raise (NoRoomError if fits else InputError)(f"job {job.name} asks {asked}, {has}")
        self._fabric = fabrics(cluster.network, self.path)
        self._largest = int(np.bincount(self._fabric, weights=cluster.gpus).max())
        waiting = [job for job in jobs if job.placement is None]
        wanted = sum(job.n_gpus for job in waiting)
        if wanted > self.free.sum():
            names = [job.name for job in waiting[:_MAX_NAMED]] + (["..."] if len(waiting) > _MAX_NAMED else [])
            who = f"the jobs that are not placed ({', '.join(names)})"
            fits = wanted <= cluster.gpus.sum() and all(job.n_gpus <= self._largest for job in waiting)
            raise (NoRoomError if fits else InputError)(f"{who} need {wanted} GPUs, and {self.free.sum()} are free")
        self.at_first = self.free.copy()

    def reset(self) -> None:
        """Give back what was taken since the beginning."""
        self.free[:] = self.at_first

    def take_near(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` in the smallest group that has room: a host, a rack, a pod; of these where it has fewest parts.

        Of equals the one with the least room is taken.
        Where none has, whole groups, those with less bandwidth to others than most last, and what is left as near.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            Decides between equals; by default the first.
        """
        with self._one_fabric(n, rng):
            before = self.free.copy()
            self._near(np.flatnonzero(self.free > 0), 0, n, rng)
            return self.in_order(np.repeat(np.arange(len(before)), before - self.free))

    def take_far(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` one by one from each rack in turn, and in a rack from each host in turn, most room first."""
        with self._one_fabric(n, rng):
            return self._far(n, rng)

    def _far(self, n: int, rng: np.random.Generator | None) -> Taken:
        racks = self.path[:, max(0, self.path.shape[1] - 3)]
        nodes, copy = self._seats(n, racks)
        if rng is not None:
            mixed = rng.permutation(len(nodes))
            nodes, copy = nodes[mixed], copy[mixed]
        rack = racks[nodes]
        room = np.bincount(racks[self.free > 0], weights=self.free[self.free > 0]).astype(np.int64)
        order = np.lexsort((-self.free[nodes], copy, rack))
        nth = np.empty(len(nodes), np.int64)
        nth[order] = np.arange(len(nodes)) - np.searchsorted(rack[order], rack[order])
        return self._take(nodes[np.lexsort((rack, -room[rack], nth))[:n]])

    def take_even(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take equal parts from as few racks as have room for them, as 8 and 8 in place of 15 and 1.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            Decides between equals; by default the first.
        """
        with self._one_fabric(n, rng):
            return self._even(n, rng)

    def _even(self, n: int, rng: np.random.Generator | None) -> Taken:
        before = self.free.copy()
        with_room = np.flatnonzero(self.free > 0)
        level = max(0, self.path.shape[1] - 3)
        rack = self.path[with_room, level]
        room = np.bincount(rack, weights=self.free[with_room]).astype(np.int64)
        poor = np.bincount(rack, weights=self.is_poor[with_room, level]) > 0
        for k in range(1, int((room > 0).sum()) + 1):
            parts = np.full(k, n // k) + (np.arange(k) < n % k)
            # the racks with the least room that is enough, as everywhere: large rooms stay for large jobs
            fitting = np.flatnonzero(room >= parts[0])
            key = room + (room.sum() if k > 1 else 0) * poor
            if len(fitting) >= k and n >= k:
                if rng is not None:
                    fitting = rng.permutation(fitting)
                for one, part in zip(fitting[np.argsort(key[fitting], kind="stable")][:k], parts, strict=True):
                    self._near(with_room[rack == one], 0, int(part), rng)
                return self.in_order(np.repeat(np.arange(len(before)), before - self.free))
        return self._far(n, rng)

    def take_leftovers(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` from the hosts with the fewest free GPUs, wherever they are."""
        with self._one_fabric(n, rng):
            nodes = np.flatnonzero(self.free > 0)
            tie = nodes if rng is None else rng.permutation(len(self.free))[nodes]
            return self._take(self._first(nodes[np.lexsort((tie, self.free[nodes]))], n))

    def take_beside(self, n: int, nodes: Sequence[str]) -> Taken:
        """Take the `n` that are nearest to one of some nodes, given by name."""
        with self._fabric_of(n, nodes):
            return self._beside(n, nodes)

    def _beside(self, n: int, nodes: Sequence[str]) -> Taken:
        each = np.flatnonzero(self.free > 0)
        shared = [self._shared(each, name) for name in dict.fromkeys(nodes)]
        return self._take(self._first(each[np.argsort(-np.max(shared, axis=0), kind="stable")], n))

    def _shared(self, nodes: Taken, name: str) -> Taken:
        """How many groups of each level nodes share with the one of a name."""
        shared: Taken = (self.path[nodes] == self.path[numbers_of(self.network)[name]]).sum(axis=1)
        return shared

    def take_any(self, n: int, rng: np.random.Generator) -> Taken:
        """Take `n` at random."""
        with self._one_fabric(n, rng):
            drawn = rng.choice(int(self.free.sum()), n, replace=False)
            return self._take(np.searchsorted(np.cumsum(self.free), drawn, "right"))

    @contextlib.contextmanager
    def _only(self, here: NDArray[np.bool_]) -> Iterator[None]:
        """Hide what is free elsewhere while some is taken."""
        hidden = np.where(here, 0, self.free)
        self.free -= hidden
        try:
            yield
        finally:
            self.free += hidden

    def _one_fabric(self, n: int, rng: np.random.Generator | None) -> contextlib.AbstractContextManager[None]:
        """Hide the GPUs of all fabrics but one with room for `n`: no path leads from one to another.

        It is the one with the least room that is enough, or a drawn one.

        Raises
        ------
        NoRoomInFabricError
            If none has room.
        InputError
            If none would have it without what is taken, either.
        """
        if not self._fabric.any():
            return contextlib.nullcontext()
        room = np.bincount(self._fabric, weights=self.free).astype(np.int64)
        fitting = np.flatnonzero(room >= n)
        if not fitting.size:
            raise (NoRoomInFabricError if n <= self._largest else InputError)(
                f"{self.network.name} has {(room > 0).sum()} fabrics that no path joins, and none has "
                f"{count_text(n, 'GPU')} free for one job: the most are {room.max()}"
            )
        one = fitting[room[fitting].argmin()] if rng is None else rng.choice(fitting)
        return self._only(self._fabric == one)

    def _fabric_of(self, n: int, nodes: Sequence[str]) -> contextlib.AbstractContextManager[None]:
        """Hide the GPUs of other fabrics than that of some nodes; of all where it has no room."""
        here = self._fabric == self._fabric[numbers_of(self.network)[nodes[0]]]
        return self._only(here) if self.free[here].sum() >= n else contextlib.nullcontext()

    def level(self, gpus: Taken) -> int:
        """How many levels of groups hold all of them: the more, the closer together they are."""
        return int((self.path[gpus] == self.path[gpus[0]]).all(axis=0).sum())

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
