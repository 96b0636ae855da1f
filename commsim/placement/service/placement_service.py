"""Placement service, apart from HTTP: one thread keeps the state and rates hosts, another one searches placements."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from commsim.core.errors import InputError, printable, shorten
from commsim.placement.cluster import Cluster
from commsim.placement.schedulers.kube_nodes import RESOURCE
from commsim.placement.starts.link_scores import score_link
from commsim.training.sharing.periodic import JobPhase, PeriodicJob

from .beside.ranking_beside import warm_up_ranking
from .binder import Binder
from .extender import failed_result, filter_result, host_priorities, lacking
from .guard import Refusal
from .job_store import JobStore
from .kube_api import KubeApi
from .limits import MAX_KNOWN_JOBS
from .models import BindingArgs, ExtenderArgs, MoveSearch, Search
from .moves_beside import read_moves
from .placing_search import read_search, reserved_jobs
from .pod_jobs import gpus_of_pod, job_of_pod
from .posted_cluster import read_posted_cluster
from .rating import Rater, Rating
from .search_queue import SearchQueue
from .state import ClusterState, JobRecord, read_known_jobs
from .versions import require_match

T = TypeVar("T")
_REMEMBERED = 200_000  # ratings of hosts, of all jobs together: about 50 MB
_TIMES = 5  # that a search is done anew because the jobs changed


@dataclass(frozen=True, slots=True)
class Preferences:
    """Preferences of the operator.

    Parameters
    ----------
    gpu_resource : str
        The name of the resource that pods ask for.
    min_score : float, optional
        Smallest score of a node that is not filtered out.
    api : KubeApi, optional
        API server of Kubernetes, for a scheduler that has pods bound by the service.
    hashes : int, optional
        Number of hashes of routes with which placements are looked at. Default: 8.
    """

    gpu_resource: str = RESOURCE
    min_score: float | None = None
    api: KubeApi | None = None
    hashes: int | None = None


class PlacementService:
    """Answers requests that were read.

    Parameters
    ----------
    cluster : Cluster, optional
        Cluster that the jobs run on; by default that of the store, or none until a request brings one.
    preferences : Preferences
        What to count and to refuse.
    store : JobStore, optional
        Store that keeps the jobs; those in it are known from the beginning.

    Raises
    ------
    InputError
        If a job of the store cannot be in this cluster.
    """

    def __init__(self, cluster: Cluster | None, preferences: Preferences, store: JobStore | None = None) -> None:
        self._state: ClusterState | None = None
        self._store = store
        self._preferences = preferences
        self._ratings: dict[object, dict[str, Rating]] = {}
        self._keeper, self._searches = ThreadPoolExecutor(1, "state"), SearchQueue()
        self._binder = Binder(preferences.api, preferences.gpu_resource) if preferences.api is not None else None
        self.ignored: Counter[str] = Counter()  # pods that any node will do for, by the reason
        self.tell: Callable[[str], None] | None = None
        if cluster is None and store is not None and (tables := store.cluster()):
            cluster = read_posted_cluster(tables)
        if cluster is not None:
            self._use(ClusterState(cluster, preferences.hashes))
        if store is not None and (rows := store.jobs()):
            self._put(rows, "the store of jobs")
        if store is not None and self.has_cluster:
            self.state.version = store.version()

    @property
    def state(self) -> ClusterState:
        """Cluster and its jobs.

        Raises
        ------
        Refusal
            While there is no cluster.
        """
        if self._state is None:
            raise Refusal(409, "there is no cluster yet: POST /cluster, or start with --cluster FILE")
        return self._state

    @property
    def has_cluster(self) -> bool:
        """Whether there is a cluster."""
        return self._state is not None

    @property
    def known(self) -> Mapping[str, JobRecord]:
        """Jobs by name; none without a cluster."""
        return {} if self._state is None else self._state.jobs

    @property
    def n_free(self) -> int:
        """GPUs without a job."""
        return 0 if self._state is None else sum(map(len, self._state.free("").values()))

    def _use(self, state: ClusterState) -> None:
        self._state, self._rater = state, Rater(state)
        self._ratings.clear()

    def close(self) -> None:
        """End the threads; what waits for them is forgotten."""
        self._keeper.shutdown(wait=False, cancel_futures=True)
        self._searches.close()
        if self._store is not None:
            self._store.close()

    def load(self, rows: object, path: str) -> None:
        """Load jobs of a file, before requests are served; they replace those of their names.

        Raises
        ------
        InputError
            If one is wrong, or cannot be where it is placed.
        """
        known = self._put(rows, path)
        if self._store is not None:
            self._store.put([self.state.jobs[one.job.name].row() for one in known], self.state.version)

    def _put(self, rows: object, path: str) -> list[JobRecord]:
        try:
            self.state.put(known := read_known_jobs(rows, path, most=MAX_KNOWN_JOBS))
            return known
        except Refusal as error:
            raise InputError(f"{path}: {error}") from None

    def warm_up(self) -> None:
        """Compile what scores links and ranks placements, so that the first request need not wait for it."""
        phases = (JobPhase(0.0, 0.05, 1.0),)
        jobs = [PeriodicJob(name, 1, 0.1, phases) for name in ("a", "b", "c", "d")]
        for n in (2, 4):
            score_link(jobs[:n], 1.0)
        warm_up_ranking()

    async def filter(self, args: ExtenderArgs) -> dict[str, Any]:
        """Answer a filter request."""
        try:
            job, ratings, pod_gpus = await self._rated(args)
        except (InputError, Refusal) as error:
            return failed_result(f"commsim: {error}")
        return filter_result(args, ratings, pod_gpus, self._preferences.min_score, lacking(job, ratings))

    async def prioritize(self, args: ExtenderArgs) -> list[dict[str, Any]]:
        """Answer a prioritize request."""
        job, ratings, _ = await self._rated(args)
        return host_priorities(args, None if lacking(job, ratings) else ratings)

    async def _rated(self, args: ExtenderArgs) -> tuple[JobRecord | None, Mapping[str, Rating] | None, int]:
        if self._binder is not None:
            self._binder.remember(args.Pod)
        job = job_of_pod(args.Pod, self.state)
        pod_gpus = gpus_of_pod(args.Pod, self._preferences.gpu_resource) if job is not None else 0
        if job is None or pod_gpus == 0:  # a launcher, or a pod that is no business of ours
            self._ignore(args, "no known job" if job is None else f"no request for {self._preferences.gpu_resource}")
            return None, None, 0
        job = self.state.located(job)
        if pod_gpus > (left := job.n_left):
            raise InputError(f"the pod asks for {pod_gpus} GPUs, but {left} of job {job.job.name} are left to place")
        known = self._ratings.get((self.state.version, job, pod_gpus))
        if known is None:
            known = await self._kept(lambda: self._rate(job, pod_gpus))
        return job, known, pod_gpus

    async def bind(self, args: BindingArgs) -> dict[str, Any]:
        """Bind a pod, and know where it is."""
        if self._binder is None:
            return {"Error": "commsim: bindVerb needs place serve --kube-api URL"}
        try:
            await self._binder.bind(
                args, lambda: self.state, lambda jobs: self._changed(None, lambda: self._add(jobs()))
            )
        except (InputError, Refusal) as error:
            return {"Error": f"commsim: {error}"}
        return {"Error": ""}

    def _ignore(self, args: ExtenderArgs, why: str) -> None:
        """Count a pod that may go anywhere, and say why where requests are logged."""
        self.ignored[why] += 1
        if self.tell is not None:
            name = args.Pod.metadata.name or "without a name"
            self.tell(f"pod {shorten(printable(name))!r}: ignored, it has {why}")

    def _rate(self, value: Any, pod_gpus: int) -> dict[str, Rating]:
        key = (self.state.version, value, pod_gpus)
        self.state.check(value)
        ratings = self._rater.rate(value, pod_gpus)
        while self._ratings and (len(self._ratings) + 1) * len(ratings) > _REMEMBERED:
            del self._ratings[next(iter(self._ratings))]  # the oldest
        self._ratings[key] = ratings
        return ratings

    async def put_jobs(self, rows: list[dict[str, Any]], if_match: str | None = None) -> dict[str, Any]:
        """Add jobs or replace them; all of them, or none if one is wrong."""
        known = read_known_jobs(rows, "request", ("jobs",))
        await self._changed(if_match, lambda: self._add(known))
        return self.jobs()

    def _add(self, known: Sequence[JobRecord]) -> None:
        self.state.put(known)
        if self._store is not None:  # with the GPUs and starts that they got
            self._store.put([self.state.jobs[one.job.name].row() for one in known], self.state.version)

    async def remove_job(self, name: str, if_match: str | None = None) -> dict[str, Any]:
        """Forget a job."""

        def remove() -> None:
            self.state.remove(name)
            if self._store is not None:
                self._store.remove(name, self.state.version)

        await self._changed(if_match, remove)
        return self.jobs()

    async def _changed(self, if_match: str | None, change: Callable[[], None]) -> None:
        """Change the state; where that fails, or the store does not take it, it is as before."""

        def work() -> None:
            require_match(if_match, self.version)
            before = self.state.saved()
            try:
                change()
            except Exception:
                self.state.restore(before)
                raise

        await self._kept(work)

    @property
    def version(self) -> int:
        """Version of the jobs and of the cluster; 0 without one."""
        return 0 if self._state is None else self._state.version

    def jobs(self) -> dict[str, Any]:
        """Return what is known of jobs."""
        return {"version": self.version, "jobs": [known.row() for known in self.known.values()]}

    async def put_cluster(self, tables: dict[str, Any], if_match: str | None = None) -> dict[str, Any]:
        """Take another cluster, if all jobs that are known can be there as they are placed."""

        def put() -> None:
            require_match(if_match, self.version)
            state = ClusterState(read_posted_cluster(tables), self._preferences.hashes)
            state.put([*self.known.values()])
            state.version = self.version + 1
            if self._store is not None:
                self._store.put_cluster(tables, state.version)
            self._use(state)

        await self._kept(put)
        return self.cluster()

    def cluster(self) -> dict[str, Any]:
        """Return what is known of the cluster."""
        cluster = self.state.cluster
        n_gpus, n_free = int(cluster.gpus.sum()), self.n_free
        of_jobs = sum(len(known.placed) for known in self.known.values())
        counts = {"hosts": len(self.state.gpus), "gpus": n_gpus, "busy": n_gpus - n_free}
        counts |= {"of_jobs": of_jobs, "free": n_free}
        return {"version": self.state.version, "network": cluster.network.name, **counts}

    async def place(self, asked: Search, if_match: str | None = None) -> dict[str, Any]:
        """Search placements for the jobs of a request beside those that are known, and reserve the first if asked."""
        for _ in range(_TIMES):
            state, version = self.state, self.version
            require_match(if_match, version)
            found = await self._searches.run(read_search(asked, state))
            if not asked.reserve:
                return found.tree
            if not found.tree["candidates"]:
                raise Refusal(409, "there is no candidate to reserve")
            known = reserved_jobs(found)
            try:
                await self._changed(f'"{version}"', lambda known=known: self._add(known))  # type: ignore[misc]
            except Refusal as error:
                if (error.status == 412 and self.state is not state) or self.version != version:
                    continue  # others changed the jobs meanwhile
                raise
            return found.tree | {"reserved": {"version": version + 1, "jobs": [one.job.name for one in known]}}
        raise Refusal(409, f"the jobs changed during each of {_TIMES} searches; nothing is reserved", retry_after=1)

    async def moves(self, asked: MoveSearch) -> dict[str, Any]:
        """Search moves of running jobs; nothing is changed."""
        return await self._searches.run(read_moves(asked, self.state))

    async def _kept(self, work: Callable[[], T]) -> T:
        """Do something with the state, after whatever is being done with it."""
        return await asyncio.get_running_loop().run_in_executor(self._keeper, work)
