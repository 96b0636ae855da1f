"""Free GPUs, and ways to take some: close together, far apart, smallest leftovers, as many on each host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from commsim.core.errors import InputError, NoRoomError
from commsim.core.units import count_text
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import numbers_of
from commsim.training.sharing.periodic import PeriodicJob

from .fabric_groups import fabrics
from .gpu_groups import GpuGroups, Taken
from .host_gpus import HostGpus, require_gpus

# What each job takes, by its number.
Plan = dict[int, Taken]
# A job, whose number of GPUs on each host is kept, or a number of GPUs.
Wanted = PeriodicJob | int

_MAX_NAMED = 4  # jobs that wait


def unplaced(jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> list[int]:
    """Return the indices of the jobs to be placed: the largest first, or in a drawn order.

    Those with a number of GPUs on each host come first, of them those with the most: few hosts may have room for them.
    """
    waiting = [i for i, job in enumerate(jobs) if job.placement is None]
    if rng is not None:
        waiting = [waiting[k] for k in rng.permutation(len(waiting))]
        return sorted(waiting, key=lambda i: -(jobs[i].gpus_per_host or 0))
    return sorted(waiting, key=lambda i: (-(jobs[i].gpus_per_host or 0), -jobs[i].n_gpus))


def _number(wanted: Wanted) -> int:
    return wanted.n_gpus if isinstance(wanted, PeriodicJob) else wanted


def _taken(cluster: Cluster, node: str, at: int, job: PeriodicJob, before: Sequence[PeriodicJob]) -> InputError:
    """Return the refusal of a job that is placed on more GPUs of a node than it has free, with who has them."""
    n = (job.placement or ()).count(node)
    with_some = [other.name for other in before if node in (other.placement or ())]
    n_taken = sum((other.placement or ()).count(node) for other in before)
    names = ", ".join(with_some[:_MAX_NAMED]) + (", ..." if len(with_some) > _MAX_NAMED else "")
    has = f"which has {cluster.gpus[at]}, {cluster.free[at] - n_taken} of them free"
    have = f" beside {'job' if len(with_some) == 1 else 'jobs'} {names}" if with_some else ""
    kind = NoRoomError if n <= cluster.gpus[at] else InputError
    return kind(f"job {job.name} asks {count_text(n, 'GPU')} of {node}, {has}{have}")


class NoRoomInFabricError(NoRoomError):
    """No fabric has room for a job, though all together have; or too few hosts have, though there are enough GPUs."""


class FreeGpus(GpuGroups):
    """GPUs that no job has taken yet.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose free GPUs there are at first.
    jobs : sequence of PeriodicJob
        Those with a placement take theirs.
    had : mapping of str to sequence of str
        By job to be placed, nodes that its other ranks have: with a number of GPUs on each host it gets no more there.

    Raises
    ------
    InputError
        If they do not have room together, or one is placed where no GPU is free: NoRoomError if they had without what
        is taken.
    """

    def __init__(
        self, cluster: Cluster, jobs: Sequence[PeriodicJob], had: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(cluster.network, cluster.free.copy())
        index = numbers_of(cluster.network)
        for k, job in enumerate(jobs):
            for name in job.placement or ():
                require_gpus(cluster, job, name, index)
                self.free[index[name]] -= 1
                if self.free[index[name]] < 0:
                    raise _taken(cluster, name, index[name], job, jobs[:k])
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
        self._hosts, self._kept_hosts = HostGpus(cluster.network), had or {}
        for job in jobs:
            if job.gpus_per_host and job.placement is not None:
                self._hosts.require(job, job.placement)
        for job in waiting:
            if job.gpus_per_host and self._n_hosts(job) < job.n_gpus // job.gpus_per_host:
                could = self._hosts.with_room(cluster.gpus, job.gpus_per_host)
                kind = NoRoomError if len(could) >= job.n_gpus // job.gpus_per_host else InputError
                raise kind(self._too_few(job, self._n_hosts(job)))

    def _n_hosts(self, job: PeriodicJob) -> int:
        return len(self._hosts.with_room(self.free, job.gpus_per_host or 1, self._kept_hosts.get(job.name, ())))

    def _too_few(self, job: PeriodicJob, n: int) -> str:
        k = job.gpus_per_host or 1
        hosts = count_text(job.n_gpus // k, "host")
        has = f"{count_text(n, 'host')} {'has' if n == 1 else 'have'}" if n else "no host has"
        return f"job {job.name} needs {count_text(k, 'GPU')} on each of {hosts}, and {has} as many free"

    def has_on_each(self, gpus: Taken, k: int) -> bool:
        """Whether there are `k` of them on each of their hosts."""
        return bool((np.unique(self._hosts.host[gpus], return_counts=True)[1] == k).all())

    def reset(self) -> None:
        """Give back what was taken since the beginning."""
        self.free[:] = self.at_first

    def take_near(self, wanted: Wanted, rng: np.random.Generator | None = None) -> Taken:
        """Take from the smallest group that has room: a host, a rack, a pod; of these where it has fewest parts.

        Of equals the one with the least room is taken.
        Where none has, whole groups, those with less bandwidth to others than most last, and what is left as near.

        Parameters
        ----------
        wanted : PeriodicJob or int
            Job, whose number of GPUs on each host is kept; or a number of GPUs.
        rng : numpy.random.Generator, optional
            Decides between equals; by default the first.
        """
        if (hosts := self._on_hosts(wanted, lambda n: self.take_near(n, rng))) is not None:
            return hosts
        with self._one_fabric(n := _number(wanted), rng):
            before = self.free.copy()
            self._near(np.flatnonzero(self.free > 0), 0, n, rng)
            return self.in_order(np.repeat(np.arange(len(before)), before - self.free))

    def take_far(self, wanted: Wanted, rng: np.random.Generator | None = None) -> Taken:
        """Take one by one from each rack in turn, and in a rack from each host in turn, most room first."""
        if (hosts := self._on_hosts(wanted, lambda n: self.take_far(n, rng))) is not None:
            return hosts
        with self._one_fabric(n := _number(wanted), rng):
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

    def take_even(self, wanted: Wanted, rng: np.random.Generator | None = None) -> Taken:
        """Take equal parts from as few racks as have room for them, as 8 and 8 in place of 15 and 1.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            Decides between equals; by default the first.
        """
        if (hosts := self._on_hosts(wanted, lambda n: self.take_even(n, rng))) is not None:
            return hosts
        with self._one_fabric(n := _number(wanted), rng):
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

    def take_leftovers(self, wanted: Wanted, rng: np.random.Generator | None = None) -> Taken:
        """Take from the hosts with the fewest free GPUs, wherever they are."""
        if (hosts := self._on_hosts(wanted, lambda n: self.take_leftovers(n, rng))) is not None:
            return hosts
        with self._one_fabric(n := _number(wanted), rng):
            nodes = np.flatnonzero(self.free > 0)
            tie = nodes if rng is None else rng.permutation(len(self.free))[nodes]
            return self._take(self._first(nodes[np.lexsort((tie, self.free[nodes]))], n))

    def take_beside(self, wanted: Wanted, nodes: Sequence[str]) -> Taken:
        """Take those that are nearest to one of some nodes, given by name."""
        if (hosts := self._on_hosts(wanted, lambda n: self.take_beside(n, nodes))) is not None:
            return hosts
        with self._fabric_of(n := _number(wanted), nodes):
            return self._beside(n, nodes)

    def _beside(self, n: int, nodes: Sequence[str]) -> Taken:
        each = np.flatnonzero(self.free > 0)
        shared = [self._shared(each, name) for name in dict.fromkeys(nodes)]
        return self._take(self._first(each[np.argsort(-np.max(shared, axis=0), kind="stable")], n))

    def take_any(self, wanted: Wanted, rng: np.random.Generator) -> Taken:
        """Take at random."""
        if (hosts := self._on_hosts(wanted, lambda n: self.take_any(n, rng))) is not None:
            return hosts
        with self._one_fabric(n := _number(wanted), rng):
            drawn = rng.choice(int(self.free.sum()), n, replace=False)
            return self._take(np.searchsorted(np.cumsum(self.free), drawn, "right"))

    def _on_hosts(self, wanted: Wanted, take: Callable[[int], Taken]) -> Taken | None:
        """Take as many GPUs on each host as a job wants: hosts are taken as if each with room had one GPU.

        Returns
        -------
        int64[n_gpus] or None
            None for a job that may have any number on each host.

        Raises
        ------
        NoRoomInFabricError
            If too few hosts have room.
        """
        if not isinstance(wanted, PeriodicJob) or (k := wanted.gpus_per_host) is None:
            return None
        free, n = self.free.copy(), wanted.n_gpus // k
        first = self._hosts.with_room(free, k, self._kept_hosts.get(wanted.name, ()))
        self.free[:] = 0
        self.free[first] = 1
        try:
            if len(first) < n:
                raise NoRoomInFabricError
            hosts = take(n)
        except NoRoomInFabricError:
            raise NoRoomInFabricError(self._too_few(wanted, len(first))) from None
        finally:
            self.free[:] = free
        return self._take(np.concatenate([self._hosts.first_free(free, node, k) for node in hosts.tolist()]))

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
