"""Free GPUs, ways to take some (close together, far apart, smallest leftovers), and the order of ranks on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import locality_levels
from commsim.core.units import counted
from commsim.placement.cluster import Cluster
from commsim.workload.sharing.periodic import PeriodicJob

# One node per GPU, in the order of ranks: neighbours on the ring are near each other.
Taken = NDArray[np.int64]
# What each job takes, by its number.
Plan = dict[int, Taken]


def nearness(network: Network) -> NDArray[np.int64]:
    """Where each endpoint is, from the widest group to itself, int64[n_nodes, n_levels + 1]; others are at -1."""
    levels = locality_levels(network)
    path = np.full((network.n_nodes, len(levels) + 1), -1, np.int64)
    for column, level in enumerate(reversed(levels)):
        path[network.endpoints, column] = level.group
    path[network.endpoints, -1] = network.endpoints
    return path


def unplaced(jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> list[int]:
    """Return the indices of the jobs to be placed: the largest first, or in a drawn order."""
    waiting = [i for i, job in enumerate(jobs) if job.placement is None]
    if rng is not None:
        return [waiting[k] for k in rng.permutation(len(waiting))]
    return sorted(waiting, key=lambda i: -jobs[i].n_gpus)


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
        If they do not have room together, or one is placed where no GPU is free.
    """

    def __init__(self, cluster: Cluster, jobs: Sequence[PeriodicJob]) -> None:
        self.network = cluster.network
        self.path = nearness(cluster.network)
        self.free = cluster.free.copy()
        index = {name: i for i, name in enumerate(cluster.network.nodes)}
        for job in jobs:
            for name in job.placement or ():
                if name not in index or not cluster.gpus[index[name]]:
                    raise InputError(f"job {job.name} is placed on {name}, which has no GPUs in {self.network.name}")
                self.free[index[name]] -= 1
                if self.free[index[name]] < 0:
                    asked = f"{counted((job.placement or ()).count(name), 'GPU')} of {name}"
                    has = f"which has {cluster.gpus[index[name]]}, {cluster.free[index[name]]} free before these jobs"
                    raise InputError(f"job {job.name} asks {asked}, {has}")
        wanted = sum(job.n_gpus for job in jobs if job.placement is None)
        if wanted > self.free.sum():
            raise InputError(f"the jobs that are not placed need {wanted} GPUs, and {self.free.sum()} are free")
        self.at_first = self.free.copy()

    def reset(self) -> None:
        """Give back what was taken since the beginning."""
        self.free[:] = self.at_first

    def take_near(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` in the smallest group that has room: a host, a rack, a pod; of these the one with the least room.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            Decides between equals; by default the first.
        """
        before = self.free.copy()
        self._near(np.flatnonzero(self.free > 0), 0, n, rng)
        return self.in_order(np.repeat(np.arange(len(before)), before - self.free))

    def take_far(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` one by one from each rack in turn, and in a rack from each host in turn, most room first."""
        nodes, copy = self._all()
        if rng is not None:
            mixed = rng.permutation(len(nodes))
            nodes, copy = nodes[mixed], copy[mixed]
        rack = self.path[nodes, max(0, self.path.shape[1] - 3)]
        room = np.bincount(rack, minlength=int(rack.max(initial=0)) + 1)
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
        before = self.free.copy()
        with_room = np.flatnonzero(self.free > 0)
        rack = self.path[with_room, max(0, self.path.shape[1] - 3)]
        room = np.bincount(rack, weights=self.free[with_room]).astype(np.int64)
        for k in range(1, int((room > 0).sum()) + 1):
            parts = np.full(k, n // k) + (np.arange(k) < n % k)
            # the racks with the least room that is enough, as everywhere: large rooms stay for large jobs
            fitting = np.flatnonzero(room >= parts[0])
            if len(fitting) >= k and n >= k:
                if rng is not None:
                    fitting = rng.permutation(fitting)
                for one, part in zip(fitting[np.argsort(room[fitting], kind="stable")][:k], parts, strict=True):
                    self._near(with_room[rack == one], 0, int(part), rng)
                return self.in_order(np.repeat(np.arange(len(before)), before - self.free))
        return self.take_far(n, rng)

    def take_leftovers(self, n: int, rng: np.random.Generator | None = None) -> Taken:
        """Take `n` from the hosts with the fewest free GPUs, wherever they are."""
        nodes, _ = self._all()
        tie = nodes if rng is None else rng.permutation(len(self.free))[nodes]
        return self._take(nodes[np.lexsort((tie, self.free[nodes]))[:n]])

    def take_beside(self, n: int, nodes: Sequence[str]) -> Taken:
        """Take the `n` that are nearest to one of some nodes, given by name."""
        each, _ = self._all()
        shared = [self._shared(each, name) for name in dict.fromkeys(nodes)]
        return self._take(each[np.argsort(-np.max(shared, axis=0), kind="stable")[:n]])

    def _shared(self, nodes: Taken, name: str) -> Taken:
        """How many groups of each level nodes share with the one of a name."""
        shared: Taken = (self.path[nodes] == self.path[self.network.nodes.index(name)]).sum(axis=1)
        return shared

    def take_any(self, n: int, rng: np.random.Generator) -> Taken:
        """Take `n` at random."""
        return self._take(rng.choice(self._all()[0], n, replace=False))

    def level(self, taken: Taken) -> int:
        """How many levels of groups hold all of them: the more, the closer together they are."""
        return int((self.path[taken] == self.path[taken[0]]).all(axis=0).sum())

    def names(self, taken: Taken, after: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the names of nodes, those near the last of the ranks before them first."""
        if after:
            taken = taken[np.argsort(-self._shared(taken, after[-1]), kind="stable")]
        return tuple(self.network.nodes[i] for i in taken)

    def _all(self) -> tuple[Taken, Taken]:
        """Return each free GPU's node, and how many of that node come before it."""
        nodes = np.repeat(np.arange(len(self.free)), self.free)
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
        if column == self.path.shape[1]:
            self.free[nodes] -= n
            return
        groups, inverse = np.unique(self.path[nodes, column], return_inverse=True)
        if rng is not None and len(groups) > 1:
            inverse = rng.permutation(len(groups))[inverse]
        room = np.bincount(inverse, weights=self.free[nodes]).astype(np.int64)
        while n:
            fitting = np.flatnonzero(room >= n)
            chosen = int(fitting[room[fitting].argmin()]) if fitting.size else int(room.argmax())
            part = min(n, int(room[chosen]))
            self._near(nodes[inverse == chosen], column + 1, part, rng)
            room[chosen], n = 0, n - part
