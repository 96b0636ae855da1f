"""Iterations of data-parallel workers under one policy, with stragglers and jitter."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.result import OverHashes
from commsim.core.value import Value, freeze

from .cost_by_simulation import NetworkCosts
from .data_parallel_setting import COMPUTE, TrainingSetting
from .hash_ends import spread_of
from .policies import load_policy
from .staleness import draw_compute
from .task_graph import Task, TaskGraph, simulate_graph
from .timeline import TaskTimeline, sent_by_each

MAX_DRAWS = 10_000_000
EXCHANGE = ("task", "operation", "size_B", "start_s", "end_s")


@dataclass(frozen=True, slots=True, eq=False)
class Training(Value):
    """What a policy makes of an iteration.

    Parameters
    ----------
    policy : str
        Name of the policy as given.
    timeline : TaskTimeline
        Timeline of the first iteration of the slowest worker: the others wait for it.
    times : float64[n_iterations], s
        Time of each iteration.
    exposed : float64[n_iterations], s
        Time of each iteration in which the slowest worker computes nothing.
    alone : float, s
        What the computation of an iteration takes on a worker that is like the trace.
    hashes : OverHashes, optional
        Mean time of an iteration with each exchange at the fastest and the slowest hash of its routes.
    """

    policy: str
    timeline: TaskTimeline
    times: NDArray[np.float64]
    exposed: NDArray[np.float64]
    alone: float
    hashes: OverHashes | None = None

    def __post_init__(self) -> None:
        for name in ("times", "exposed"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, name=name))

    @property
    def iteration_time(self) -> float:
        """Mean seconds of an iteration."""
        return float(self.times.mean())

    @property
    def exposed_communication(self) -> float:
        """Mean seconds of an iteration in which the slowest worker computes nothing."""
        return float(self.exposed.mean())

    @property
    def scaling(self) -> float:
        """Throughput over that of as many workers that need not communicate and are all like the trace."""
        return self.alone / self.iteration_time if self.iteration_time else 1.0

    def row(self, setting: TrainingSetting) -> dict[str, Any]:
        """Return the JSON row, with the exchanges of the first iteration."""
        rows = (row for row in self.timeline.rows() if "operation" in row)
        return {
            "policy": self.policy,
            "workers": setting.n_workers,
            "iteration_s": self.iteration_time,
            **({} if self.hashes is None else self.hashes.row()),
            "exposed_comm_s": self.exposed_communication,
            "scaling": self.scaling,
            "compute_s": self.alone,
            "optimizer_s": self.timeline.optimizer_time,
            "batches": round(self.alone / setting.trace.compute_time) if self.alone else 1,
            "sent_per_worker_B": sent_bytes(self.timeline.graph, time_of=setting.time_of),
            "iteration_times_s": self.times.tolist(),
            "exchanges": [{key: row[key] for key in EXCHANGE} for row in rows],
        }


def train(
    policy: str | Callable[[TrainingSetting], TaskGraph],
    setting: TrainingSetting,
    *,
    slowdowns: Sequence[float] = (),
    jitter: float = 0.0,
    iterations: int = 1,
    seed: int = 0,
) -> Training:
    """Run iterations under a policy.

    All workers exchange together, so that in every iteration all wait for the slowest.

    Parameters
    ----------
    policy : str or callable
        ``name:key=value,...``, or a function from a setting to a graph.
    setting : TrainingSetting
        Gradients, workers and costs.
    slowdowns : sequence of float
        How many times as long the first workers take as the trace says; all others are like the trace.
    jitter : float
        Standard deviation of the logarithm of what each worker's computation in each iteration takes; the mean stays.
    iterations : int
        Number of iterations; each draws anew.
    seed : int
        Seed of the jitter.

    Raises
    ------
    InputError
        If the policy is unknown, a slow-down is not positive, or there are more of them than workers.
    """
    if len(slowdowns) > setting.n_workers or not all(0 < factor < math.inf for factor in slowdowns):
        raise InputError(f"slow-downs are positive and of at most {setting.n_workers} workers, got {list(slowdowns)}")
    if iterations * setting.n_workers > MAX_DRAWS:
        raise InputError(f"{iterations} iterations of {setting.n_workers} workers are more than {MAX_DRAWS} draws")
    build = load_policy(policy) if isinstance(policy, str) else policy
    mean = np.ones(setting.n_workers)
    mean[: len(slowdowns)] = slowdowns
    slowest = draw_compute(setting.n_workers, iterations, mean, jitter, seed).max(axis=0)

    def timelines(time_of: Callable[[Task], float]) -> list[TaskTimeline]:
        found: dict[float, TaskTimeline] = {}
        for factor in slowest.tolist():
            if factor not in found:
                slowed = dataclasses.replace(setting, trace=setting.trace.slowed(factor))
                found[factor] = simulate_graph(build(slowed), time_of)
        return [found[factor] for factor in slowest.tolist()]

    def mean_time(time_of: Callable[[Task], float]) -> float:
        return float(np.mean([run.iteration_time for run in timelines(time_of)]))

    runs = timelines(setting.time_of)
    times = np.array([run.iteration_time for run in runs])
    hashes = spread_of(setting.time_of, mean_time, float(times.mean()))
    exposed = times - [run.busy(COMPUTE) for run in runs]
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", "policy")
    alone = runs[0].busy(COMPUTE) / float(slowest[0])
    return Training(name, runs[0], times, np.maximum(exposed, 0.0), alone, hashes)


def sent_bytes(graph: TaskGraph, rank: int = 0, time_of: Callable[[Task], float] | None = None) -> float:
    """Bytes that a worker sends in an iteration: by the schedules of algorithms that were named, else by rings.

    Parameters
    ----------
    time_of : callable, optional
        What the communications cost, which may know what they send.
    """
    sent = time_of.sent_by_each if isinstance(time_of, NetworkCosts) else sent_by_each
    members = (t for t in graph.tasks if rank in t.group and not (t.operation == "send" and t.group[0] != rank))
    return float(sum(map(sent, members)))
