"""Demand of a job: from exchanges that were recorded on one placement to bytes, and to phases on another one."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.placement.cluster import Cluster
from commsim.placement.starts.job_uses import Exchange, leaves_machine, own_paths, use_of_groups
from commsim.training.sharing.periodic import ALL_TO_ALL, RING, SEND, UNBOUNDED, JobPhase, PeriodicJob, before_end
from commsim.training.timeline import length_of_spans

from .achieved_phases import achieved

# Seconds of an iteration that has no computation.
_NO_TIME = 1e-9
_PATTERNS = {"send": SEND, "send_recv": SEND, "message": SEND, "all_to_all": ALL_TO_ALL}


def delivered(
    cluster: Cluster, jobs: Sequence[PeriodicJob], use: NDArray[np.float64], seed: int = 0
) -> tuple[PeriodicJob, ...]:
    """Return placed jobs of demand with the phases that their paths deliver; the others as they are.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    seed : int
        Seed of the routes' hash.
    """
    parts = (use / cluster.network.bandwidth).max(axis=1, initial=0.0).tolist()
    own = own_paths(cluster, jobs, seed)
    return tuple(
        achieved(job, own.get(j, part)) if job.is_demand else job
        for j, (job, part) in enumerate(zip(jobs, parts, strict=True))
    )


def pattern_of(operation: str) -> str:
    """Return the pattern of an operation's messages in a phase of demand: that of a ring, unless it says otherwise."""
    return _PATTERNS.get(operation, RING)


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """What groups of ranks exchanged at one time.

    Parameters
    ----------
    start, end : float, s
        From the start of the iteration.
    kind : Exchange
        Pattern, and the ranks of each group.
    n_bytes : float
        What a rank sends on, by the operation's least.
    hidden : float, s
        Computation beside it from its start, which it does not hold up.
    link_bytes : mapping of int to float
        Bytes of all groups on each link of the network, where these are known: schedules may send more, or less.
    seeds : tuple of int
        Seed of the routes' hash with which each group was recorded. Default: 0 for all.
    """

    start: float
    end: float
    kind: Exchange
    n_bytes: float
    hidden: float = 0.0
    link_bytes: Mapping[int, float] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()


class _Amount(NamedTuple):
    """Bytes, and the seconds that they take over the fullest link of the paths on which they were recorded."""

    n_bytes: float = 0.0
    time: float = 0.0

    def plus(self, more: _Amount) -> _Amount:
        return _Amount(self.n_bytes + more.n_bytes, self.time + more.time)


@dataclass(slots=True)
class _Burst:
    """Exchanges that touch: amounts by kind, and the spans of computation that hides some of their time."""

    start: float
    end: float
    amounts: dict[Exchange, _Amount]
    hidden: list[tuple[float, float]]


def demand_of(
    network: Network, nodes: Sequence[int], exchanges: Sequence[RecordedExchange], period: float, gap: float = 0.0
) -> tuple[tuple[JobPhase, ...], float]:
    """Return recorded exchanges as phases of bytes, and the iteration time without the time that these need.

    What an exchange took beyond its bytes over the fullest link (latencies, overheads) stays in the iteration, so that
    the job takes on the same placement what was recorded. Exchanges that touch are one phase for each kind of group,
    one after the other. What stays inside of machines is a phase before the next that leaves one.

    Parameters
    ----------
    network : Network
        With the rates of its cables: what software is slower than these stays in the iteration, too.
    nodes : sequence of int
        Node of each rank.
    exchanges : sequence of RecordedExchange
        Those of one rank and its groups.
    period : float, s
        Iteration time there.
    gap : float, s
        Exchanges at most this far apart are one phase. What touches always is.
    """
    path = _RecordedPath(network, nodes)
    exchanges = sorted((one for one in exchanges if one.n_bytes > 0 or one.link_bytes), key=lambda one: one.start)
    leaving = [one for one in exchanges if path.leaves(one)]
    bursts = _bursts(leaving, path, gap, period)
    inside = [one for one in exchanges if not path.leaves(one)]
    phases, earlier, free = list[JobPhase](), 0.0, 0.0

    def add(kind: Exchange, amount: _Amount, hidden: float, at: float) -> None:
        nonlocal earlier, free
        offset, duration = max(free, at - earlier), amount.n_bytes / UNBOUNDED
        pattern, groups = kind
        everyone = len(groups) == 1 and groups[0] == tuple(range(len(nodes)))
        phases.append(JobPhase(offset, duration, UNBOUNDED, hidden, () if everyone else groups, pattern))
        earlier += max(amount.time - hidden, 0.0)
        free = offset + max(hidden, duration)

    for i, burst in enumerate([*bursts, _Burst(period, period, {}, [])]):
        before = [one for one in inside if one.start < burst.start or i == len(bursts)]
        inside = inside[len(before) :]
        for kind in dict.fromkeys(one.kind for one in before):
            own = [one for one in before if one.kind == kind]
            amount, hidden = functools.reduce(_Amount.plus, map(path.amount, own)), sum(one.hidden for one in own)
            add(kind, amount, hidden, burst.start - max(amount.time - hidden, 0.0) - hidden)
        hidden, at = length_of_spans(burst.hidden), burst.start
        all_of = sum(amount.time for amount in burst.amounts.values())
        for kind, amount in burst.amounts.items():
            share = amount.time / all_of
            add(kind, amount, hidden * share, at)
            at += (burst.end - burst.start) * share
    left = max(period - earlier, free, _NO_TIME)
    return before_end(phases, left), left


class _RecordedPath:
    """Links that kinds of exchanges use where they were recorded."""

    def __init__(self, network: Network, nodes: Sequence[int]) -> None:
        self._cluster = Cluster(network, _seats(network))
        self._names = tuple(network.nodes[node] for node in nodes)
        self._outer = leaves_machine(network)
        self._uses: dict[tuple[Exchange, tuple[int, ...]], NDArray[np.float64]] = {}

    def _use(self, one: RecordedExchange) -> NDArray[np.float64]:
        """How many times the bytes of a phase each link carries, with the hash of each group."""
        (pattern, groups), seeds = one.kind, one.seeds or (0,) * len(one.kind[1])
        key = one.kind, seeds
        if key not in self._uses:
            self._uses[key] = np.zeros(self._cluster.network.n_links)
            for seed in dict.fromkeys(seeds):
                own = tuple(group for group, its in zip(groups, seeds, strict=True) if its == seed)
                self._uses[key] += use_of_groups(self._cluster.network, self._names, (pattern, own), seed)
        return self._uses[key]

    def leaves(self, one: RecordedExchange) -> bool:
        """Whether something leaves a machine."""
        return bool(self._use(one)[self._outer].any())

    def amount(self, one: RecordedExchange) -> _Amount:
        """Return the bytes of a phase that puts on the busiest link out of a machine what was recorded there."""
        use, bandwidth = self._use(one), self._cluster.network.bandwidth
        links = [k for k in one.link_bytes if self._outer[k] and use[k] > 0]
        n_bytes = one.n_bytes
        if links:
            link = max(links, key=lambda k: one.link_bytes[k] / bandwidth[k])
            n_bytes = one.link_bytes[link] / float(use[link])
        return _Amount(n_bytes, n_bytes * float((use / bandwidth).max(initial=0.0)))


def _bursts(exchanges: Sequence[RecordedExchange], path: _RecordedPath, gap: float, period: float) -> list[_Burst]:
    found: list[_Burst] = []
    for one in exchanges:
        if not found or one.start > found[-1].end + gap:
            found.append(_Burst(one.start, one.end, {}, []))
        burst = found[-1]
        burst.end = max(burst.end, one.end)
        burst.amounts[one.kind] = burst.amounts.get(one.kind, _Amount()).plus(path.amount(one))
        burst.hidden.append((one.start, one.start + one.hidden))
    for burst, then in zip(found, [*(one.start for one in found[1:]), period], strict=False):
        burst.hidden = [(start, min(end, then)) for start, end in burst.hidden]
    return found


def _seats(network: Network) -> NDArray[np.int64]:
    return np.isin(np.arange(network.n_nodes), network.endpoints).astype(np.int64)
