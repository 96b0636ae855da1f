"""Placement strategies: how the unplaced jobs of a cluster take free GPUs, in the manner of several schedulers.

To add one, write ``commsim/placement/strategies/NAME.py`` with a function decorated by :func:`placement_strategy`, and
its test; or a file of your own, ``--generator FILE.py`` and ``--placement FILE.py``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, shorten
from commsim.core.network import Network
from commsim.core.placement import RANK_ORDERS, STRATEGIES
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import numbers_of
from commsim.training.sharing.periodic import PeriodicJob

from .free_gpus import FreeGpus, NoRoomInFabricError, Plan
from .group_order import order_by_groups
from .host_gpus import HostGpus, with_whole_hosts

Strategy = Callable[[FreeGpus, Sequence[PeriodicJob], "np.random.Generator | None"], Plan]
# Draws of a strategy for each candidate that is asked for.
TRIES = 20
# Some minutes of scoring on a small cluster: more are asked for by mistake.
MAX_CANDIDATES = 10_000


def placement_strategy(build: Strategy) -> Strategy:
    """Register a strategy under its function's name.

    Parameters
    ----------
    build : callable
        Given the free GPUs, the jobs and a random generator, it takes GPUs for each job whose placement is None, and
        returns their nodes, by name or number, by the job's index. Without a random generator it returns its first
        choice.

    Notes
    -----
    The ranks of ``commsim run`` are one job on an idle network, where every endpoint is one GPU.
    """
    ranks = RANK_ORDERS.get(build.__name__) or functools.partial(_place_ranks, build)
    STRATEGIES.add(build, ranks=ranks)
    return build


def _place_ranks(build: Strategy, network: Network, n: int, seed: int) -> NDArray[np.intp]:
    gpus = np.isin(np.arange(network.n_nodes), network.endpoints).astype(np.int64)
    free = FreeGpus(Cluster(network, gpus), ())
    jobs = [PeriodicJob("ranks", n, 1.0, ())]
    return _checked(free, jobs, build(free, jobs, np.random.default_rng(seed) if seed else None))[0]


class Drawing:
    """Different placements of the jobs that have none, by one strategy or several; the others stay where they are.

    Ranks are ordered so that the ring leaves each host, rack and pod once, and groups of ranks that exchange bytes stay
    inside of a host where they can. Those that are placed stay, and
    in the first placement of each strategy the others of their job are as near to them as there is room.

    Parameters
    ----------
    cluster : Cluster
        Cluster with the free GPUs, each for one job.
    jobs : sequence of PeriodicJob
        Jobs to be placed together. One with a number of GPUs on each host gets what its hosts lack there.

    Raises
    ------
    InputError
        If the cluster has no room.
    """

    def __init__(self, cluster: Cluster, jobs: Sequence[PeriodicJob]) -> None:
        jobs = with_whole_hosts(cluster, jobs)
        jobs = [dataclasses.replace(job, placement=job.placed) if len(_had(job)) == job.n_gpus else job for job in jobs]
        self._jobs, with_some = jobs, [job for job in jobs if _had(job)]
        self._rest = [dataclasses.replace(job, n_gpus=job.n_gpus - len(_had(job)), placed=()) for job in jobs]
        had = [dataclasses.replace(j, n_gpus=len(_had(j)), placement=_had(j), placed=()) for j in with_some]
        self._hosts = HostGpus(cluster.network)
        self._free = FreeGpus(cluster, [*self._rest, *had], {job.name: _had(job) for job in with_some})

    def each(self, strategy: str, n: int, seed: int, patience: int | None = None) -> Iterator[tuple[PeriodicJob, ...]]:
        """Return different placements, the same jobs in the same order; each is made when it is asked for.

        Parameters
        ----------
        strategy : str
            A name in ``STRATEGIES``.
        n : int
            Largest number of placements, at most ``MAX_CANDIDATES``; fewer where no others are found.
        seed : int
            Seed of what is drawn; the first of each is the same for every seed, but for ``random``.
        patience : int, optional
            Draws in a row that give nothing new, after which no more are made. Default: up to ``TRIES`` for each one.

        Raises
        ------
        InputError
            If the strategy is unknown, or `n` is out of its range.
        """
        build = STRATEGIES[strategy].build
        if not 1 <= n <= MAX_CANDIDATES:
            raise InputError(f"the number of candidates is 1 to {MAX_CANDIDATES}, got {n}")
        return self._different(strategy, build, n, seed, patience)

    def _different(
        self, strategy: str, build: Strategy, n: int, seed: int, patience: int | None
    ) -> Iterator[tuple[PeriodicJob, ...]]:
        free, known, latest = self._free, set[tuple[tuple[str, ...], ...]](), 0
        lacks: NoRoomInFabricError | None = None
        for i in range(n * TRIES):
            if patience is not None and i - latest > patience:
                break
            free.reset()
            rng = np.random.default_rng((seed, i)) if i or strategy == "random" else None
            try:
                beside = _beside(free, self._jobs, self._rest) if i == 0 else {}
                waiting = [
                    dataclasses.replace(job, placement=free.names(beside[k])) if k in beside else job
                    for k, job in enumerate(self._rest)
                ]
                plan = beside | _checked(free, waiting, build(free, waiting, rng), strategy)
            except NoRoomInFabricError as error:
                lacks = lacks or error
                continue  # another order, other fabrics or hosts may have room for all
            placed = tuple(self._with(plan, k, job) for k, job in enumerate(self._jobs))
            where = tuple(placed[k].placement or () for k in sorted(plan))  # the others stay
            if where not in known:
                latest = i
                known.add(where)
                yield placed
            if len(known) == n or not plan:
                return
        if lacks is not None and not known:
            raise lacks

    def _with(self, plan: Plan, k: int, job: PeriodicJob) -> PeriodicJob:
        """Return a job where a plan places it."""
        if k not in plan:
            return job
        nodes = plan[k] if _had(job) else order_by_groups(job, np.asarray(plan[k], np.int64), self._hosts)
        return dataclasses.replace(job, placement=_filled(job, self._free.names(nodes, after=_had(job))))


def _had(job: PeriodicJob) -> tuple[str, ...]:
    """Return the places that a job keeps while the others are looked for."""
    return tuple(filter(None, job.placed)) if job.placement is None else ()


def _filled(job: PeriodicJob, others: Sequence[str]) -> tuple[str, ...]:
    """Return the places of all ranks: those that the job keeps, and others for ranks in between and after them."""
    left = iter(others)
    return (*(name or next(left) for name in job.placed), *left)


def _beside(free: FreeGpus, jobs: Sequence[PeriodicJob], rest: Sequence[PeriodicJob]) -> Plan:
    """Take what jobs with some places lack, as near to these as there is room."""
    return {i: free.take_beside(rest[i], _had(job)) for i, job in enumerate(jobs) if _had(job)}


def _nodes(found: object, network: Network) -> NDArray[np.int64] | None:
    """Return numbers of nodes that are given by number or by name; None for anything else."""
    n_nodes = network.n_nodes
    try:
        nodes = np.asarray(found)
    except ValueError:  # rows of unlike length
        return None
    if nodes.ndim == 1 and nodes.dtype.kind in "UT":
        number = numbers_of(network)
        nodes = np.array([number.get(str(name), -1) for name in nodes])
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu" or (nodes < 0).any() or (nodes >= n_nodes).any():
        return None if nodes.size else np.zeros(0, np.int64)
    return nodes.astype(np.int64)


def _checked(free: FreeGpus, jobs: Sequence[PeriodicJob], plan: Plan, strategy: str = "the strategy") -> Plan:
    """Refuse a plan that leaves a job out, or takes GPUs that are not free."""
    if not isinstance(plan, Mapping):
        raise InputError(f"{strategy}: must return a dict of nodes by job, got {shorten(repr(plan))}")
    left, by_number = free.at_first.copy(), dict(plan)
    for i, job in enumerate(jobs):
        if job.placement is None:
            if (nodes := _nodes(plan.get(i, ()), free.network)) is None or len(nodes) != job.n_gpus:
                got = f"{job.n_gpus} nodes of {free.network.name} by name or number, got {shorten(repr(plan.get(i)))}"
                raise InputError(f"{strategy}: job {job.name} must get {got}")
            by_number[i] = nodes
            np.subtract.at(left, nodes, 1)
            if (k := job.gpus_per_host) and not free.has_on_each(nodes, k):
                how = f"{k} GPUs on each host, as FreeGpus.take_near(job) and the like take them for a job"
                raise InputError(f"{strategy}: job {job.name} must get {how}")
    if (left < 0).any():
        node = free.network.nodes[int(left.argmin())]
        raise InputError(f"{strategy}: takes more GPUs of {node} than the {free.at_first[left.argmin()]} that are free")
    return by_number
