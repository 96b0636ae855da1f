"""Contention on links: how much the traffic of running jobs slows each of them.

Jobs are compared at :data:`INSTANTS` instants drawn once over a long time, so that pairs of iterations whose times have
no common multiple are seen in every relative position, and equal ones in the position that their shifts give them:
a sample of CASSINI's unified circle. Where the demand on a link exceeds its capacity, the excess is served
later (:func:`.contention_kernel.stretch`), and a job waits for its most overloaded link.

This is an estimate, chosen for its speed: iterations are taken to start on time, however slow the last one was, and
every link is looked at by itself. The fluid simulation of the same jobs
(:func:`commsim.training.sharing.shared_links.simulate_jobs`) takes some hundred times as
long; the tests hold the two together. The sample itself adds about 0.01 to a share of time, such as that in which two
jobs overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.cluster import Cluster
from commsim.placement.link_use import KeptPaths, link_uses
from commsim.placement.starts.circles import rates_at
from commsim.training.sharing.periodic import PeriodicJob

INSTANTS = 2048
# Seconds over which the instants are spread.
HORIZON = 1e6


class Sharer:
    """One job on the links.

    Parameters
    ----------
    links : intp[n]
        Links that it uses.
    use : float64[n]
        How many times its rate each carries.
    rates : float64[n_instants], bytes/s
        What each of its hosts sends.
    slack : float
        Part of its period by which its phases may be late and delay nothing.
    """

    __slots__ = (
        "alone", "best_at", "excess", "excess_at", "extra_at", "links", "rates", "slack", "stretch", "use", "use_of",
    )  # fmt: skip

    def __init__(
        self, links: NDArray[np.intp], use: NDArray[np.float64], rates: NDArray[np.float64], slack: float
    ) -> None:
        self.links, self.use, self.rates, self.slack = links, use, rates, slack
        self.use_of: dict[int, float] = dict(zip(links.tolist(), use.tolist(), strict=True))
        self.stretch = self.alone = 1.0
        self.extra_at: dict[int, int] = {}  # by overloaded link, the row of its extra
        self.best_at = -1  # the latest change on its links with which no other shift was better
        # Excess demand on each link with each shift, and the change on the link after which it was found.
        self.excess: NDArray[np.float64] | None = None
        self.excess_at = np.full(len(links), -1)

    @property
    def slowdown(self) -> float:
        """How many times longer its iterations take than on these links without other jobs."""
        return max(self.stretch / self.alone, 1.0)


class _Extra:
    """Rows of what the jobs of overloaded links need beyond their time; links with the same jobs share them."""

    __slots__ = ("n_links", "row")

    def __init__(self, row: NDArray[np.intp]) -> None:
        self.row, self.n_links = row, 0


class ClusterTraffic:
    """What runs over each link now, and what that does to each job.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose links are shared.
    seed : int
        Seed of the routes' hashes.
    contended : float
        Share of an overloaded link's rate that several jobs reach together.
    """

    def __init__(self, cluster: Cluster, seed: int = 0, contended: float = 1.0) -> None:
        self._cluster, self._seed, self._contended = cluster, seed, contended
        self.capacity = cluster.network.bandwidth
        self.instants = np.random.default_rng(20240416).uniform(0.0, HORIZON, INSTANTS)
        self.demand = np.zeros((cluster.network.n_links, INSTANTS))
        self._on_link: list[list[Sharer]] = [[] for _ in range(cluster.network.n_links)]
        self._n_jobs = np.zeros(cluster.network.n_links, np.int64)  # on each link
        self._extra: dict[int, _Extra] = {}
        self._rows, self._free_rows = np.zeros((0, INSTANTS)), list[int]()
        # Of each link: highest demand, mean demand beyond the capacity, mean demand; `_stale` ones are to be summed.
        self._loads = np.zeros((3, cluster.network.n_links))
        self._stale: set[int] = set()
        self._dirty: set[int] = set()
        self._n_changes, self._changed_at = 0, np.zeros(cluster.network.n_links, np.int64)
        self._uses: dict[tuple[str, ...], tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        self._paths = KeptPaths()

    def uses(self, routes: Sequence[tuple[str, ...]]) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Links, and how many times the rate each carries, of rings over hosts; remembered."""
        new = [route for route in dict.fromkeys(routes) if route not in self._uses]
        if new:
            if len(self._uses) > 20_000:
                self._uses = {route: self._uses[route] for route in routes if route in self._uses}
            for route, use in zip(new, link_uses(self._cluster, new, self._seed, self._paths), strict=True):
                links = np.flatnonzero(use)
                self._uses[route] = links, use[links]
        return [self._uses[route] for route in routes]

    def rates(self, job: PeriodicJob, shift: float) -> NDArray[np.float64]:
        """Rate of a job at every instant when its iterations start `shift` late."""
        return rates_at(job, self.instants - shift)

    def shared_by_others(self, links: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Find the links that carry a job already."""
        carries: NDArray[np.bool_] = self._n_jobs[links] > 0
        return carries

    def add(self, job: PeriodicJob, route: tuple[str, ...], shift: float) -> Sharer:
        """Let a job send along a ring over `route`, shifted."""
        links, use = self.uses([route])[0]
        sharer = Sharer(links, use, self.rates(job, shift), job.slack / job.period)
        self._see_alone(sharer)
        for link, times in zip(links, use, strict=True):
            self._on_link[link].append(sharer)
            self.demand[link] += times * sharer.rates
        self._n_jobs[links] += 1
        self._changes(sharer)
        return sharer

    def remove(self, sharer: Sharer) -> None:
        """Take a job off its links."""
        for link in sharer.links:
            self._on_link[link].remove(sharer)
            self._sum(int(link))
        self._n_jobs[sharer.links] -= 1
        self._changes(sharer)

    def shift(self, sharer: Sharer, job: PeriodicJob, shift: float) -> None:
        """Let the iterations of a job that sends start `shift` late."""
        sharer.rates = self.rates(job, shift)
        self._see_alone(sharer)
        for link in sharer.links:
            self._sum(int(link))
        self._changes(sharer)

    def changed(self) -> set[Sharer]:
        """Jobs that share a link with others, on links whose jobs have changed since all was last settled."""
        return {job for link in self._dirty if len(self._on_link[link]) > 1 for job in self._on_link[link]}

    def with_others(self, sharer: Sharer) -> NDArray[np.bool_]:
        """Find the links of a job that carry others, too."""
        carries: NDArray[np.bool_] = self._n_jobs[sharer.links] > 1
        return carries

    def score(self, links: NDArray[np.intp]) -> float:
        """Mean over links of one minus the mean excess demand over the capacity, as all jobs send now."""
        self._load()
        return 1.0 - float(np.add.reduce(self._loads[1, links] / self.capacity[links])) / len(links)

    def latest(self, sharer: Sharer) -> int:
        """Return the number of the latest change on the links of a job."""
        return int(self._changed_at[sharer.links].max(initial=0))

    def changed_at(self, links: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the number of the latest change on each of some links."""
        changed_at: NDArray[np.int64] = self._changed_at[links]
        return changed_at

    def highest(self, links: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the highest demand on links, float64[n], bytes/s."""
        self._load()
        highest: NDArray[np.float64] = self._loads[0, links]
        return highest

    def _changes(self, sharer: Sharer) -> None:
        """Note that the demand on all links of a job has changed."""
        self._n_changes += 1
        self._changed_at[sharer.links] = self._n_changes
        self._dirty.update(sharer.use_of)
        self._stale.update(sharer.use_of)

    def _load(self) -> None:
        """Sum up the demand on links on which it has changed."""
        from .contention_kernel import link_loads

        if self._stale:
            links = np.fromiter(self._stale, np.intp, len(self._stale))
            link_loads(self.demand, links, self.capacity, self._loads)
            self._stale.clear()

    def settle(self) -> list[Sharer]:
        """Compute the stretch of every job on a link that has changed and is full or was; return these jobs."""
        from .contention_kernel import largest_of

        self._load()
        affected: dict[int, Sharer] = {}
        known: dict[tuple[object, ...], _Extra] = {}  # both ways of a cable are alike
        for link in sorted(self._dirty):
            jobs, was_full = self._on_link[link], self._forget(link)
            if jobs and self._loads[0, link] > float(self.capacity[link]) * (1 + 1e-9):
                self._extra[link] = extra = self._extra_on(link, known)
                extra.n_links += 1
                for job, row in zip(jobs, extra.row.tolist(), strict=True):
                    job.extra_at[link] = row
            elif was_full:
                for job in jobs:
                    job.extra_at.pop(link, None)
            else:
                continue
            affected |= {id(job): job for job in jobs}
        self._dirty.clear()
        worst = np.empty(INSTANTS)
        for sharer in affected.values():
            rows = set(sharer.extra_at.values())
            late = 0.0
            if rows:
                largest_of(self._rows, np.fromiter(rows, np.intp, len(rows)), worst)
                late = float(np.add.reduce(worst)) / INSTANTS
            sharer.stretch = 1.0 + max(late - sharer.slack, 0.0)
        return list(affected.values())

    def _forget(self, link: int) -> bool:
        """Give up the extra of a link that has changed; say whether it had one."""
        extra = self._extra.pop(link, None)
        if extra is None:
            return False
        extra.n_links -= 1
        if not extra.n_links:
            self._free_rows.extend(extra.row.tolist())
        return True

    def _extra_on(self, link: int, known: dict[tuple[object, ...], _Extra]) -> _Extra:
        """Compute the extra of the jobs of an overloaded link, or find it among those that are known."""
        from .contention_kernel import stretch

        jobs, capacity = self._on_link[link], float(self.capacity[link])
        uses = tuple([job.use_of[link] for job in jobs])
        key = (capacity, uses, *map(id, jobs))
        if key not in known:
            while len(self._free_rows) < len(jobs):
                n = len(self._rows)
                self._rows = np.concatenate((self._rows, np.empty((max(n, 64), INSTANTS))))
                self._free_rows.extend(range(n, len(self._rows)))
            row = np.array([self._free_rows.pop() for _ in jobs], np.intp)
            reached = capacity * (self._contended if len(jobs) > 1 else 1.0)
            stretch(np.array([job.rates for job in jobs]), np.array(uses), reached, self._rows, row)
            known[key] = _Extra(row)
        return known[key]

    def _see_alone(self, sharer: Sharer) -> None:
        """Compute how many times longer its iterations take by its own links, at the same instants as with others."""
        most = float((sharer.use / self.capacity[sharer.links]).max(initial=0.0))
        extra = float(np.maximum(sharer.rates * most - 1.0, 0.0).mean())
        sharer.alone = 1.0 + max(extra - sharer.slack, 0.0)

    def excess(self) -> tuple[float, float]:
        """Bytes per second that links were asked to carry beyond their capacity, and at all, when last settled."""
        _, over, asked = self._loads.sum(axis=1).tolist()
        return over, asked

    def _sum(self, link: int) -> None:
        """Add the demand up anew, so that no rounding is left of jobs that have gone."""
        self.demand[link] = 0.0
        for job in self._on_link[link]:
            self.demand[link] += job.use_of[link] * job.rates
