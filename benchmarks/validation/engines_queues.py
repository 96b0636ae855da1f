"""Simulations that serve in order of arrival, against the recurrences that say the same."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from commsim.placement.cluster import Cluster
from commsim.placement.clusters.machines import machines_of
from commsim.placement.clusters.models import Assumptions, TrainedModel
from commsim.placement.clusters.simulate import simulate_cluster
from commsim.placement.clusters.trace_job import TraceJob
from commsim.training.staleness import draw_compute, run_workers
from topologies.star import star

from .row import Row

Queue = functools.partial(Row, kind="engines", against="recurrence", operation="training", unit="s")


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has fewer GPUs."""
    yield from first_in_first_out((1, 4) if quick else (1, 2, 4, 8))
    yield from lock_step()


def first_in_first_out(servers: tuple[int, ...]) -> Iterator[Row]:
    """Jobs of one GPU, first in first out, are a queue of c servers."""
    for c in servers:
        draw = np.random.default_rng([23, c])
        submit, service = np.cumsum(draw.exponential(1.0, 300)), draw.exponential(0.9 * c, 300)
        submit -= submit[0]
        network = star(2, 12.5e9, 0.0)
        seats = np.zeros(network.n_nodes, np.int64)
        seats[network.hosts[0]] = c
        assumed = Assumptions(models={"quiet": TrainedModel("quiet", 0.0, 0.1)}, restart=0.0)
        jobs = [TraceJob(f"j{i:03}", float(submit[i]), 1, float(service[i]), model="quiet") for i in range(300)]
        outcome = simulate_cluster(machines_of(Cluster(network, seats), assumed), jobs, "fifo", assumed=assumed)
        yield Queue(id=f"engines/queue/{c}", model=f"queue of {c} GPUs", ranks=c, network="star",
                    engine="cluster simulation", reference=_waiting(submit, service, c),
                    ours=float(np.mean([job.queued_s for job in outcome.jobs])),
                    source="Kiefer and Wolfowitz (1955): 300 drawn jobs, mean seconds in the queue")  # fmt: skip


def lock_step() -> Iterator[Row]:
    """Bulk synchronous workers take the slowest of each iteration, a pull and a push."""
    compute = draw_compute(8, 50, 1.0, 0.4, seed=3)
    run = run_workers(compute, pull=0.1, push=0.2, bound=0)
    yield Queue(id="engines/queue/bsp", model="bulk synchronous workers", engine="event by event",
                ranks=8, reference=float(compute.max(axis=0).sum() + 50 * 0.3), ours=run.time,
                source="sum of the slowest worker's times, pulls and pushes")  # fmt: skip


def _waiting(submit: NDArray[np.float64], service: NDArray[np.float64], c: int) -> float:
    """Return the mean wait: each job goes to the server that is free first."""
    free, waited = np.zeros(c), 0.0
    for at, needs in zip(submit, service, strict=True):
        first = int(free.argmin())
        start = max(float(at), float(free[first]))
        waited, free[first] = waited + start - float(at), start + float(needs)
    return waited / len(submit)
