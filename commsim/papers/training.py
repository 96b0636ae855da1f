"""Measures of training iterations, of jobs that share a link, and of their congestion marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .measures import GBPS, LATENCY, measure, simulated

if TYPE_CHECKING:
    from commsim.training.data_parallel_setting import TrainingSetting
    from commsim.training.sharing.periodic import PeriodicJob

Times = NDArray[np.float64]
FASTER = 10  # times that iterations are shortened: a phase still lasts some hundred of DCQCN's 55 us
ITERATIONS = 3


@measure
def bubble(order: str, stages: int, batches: int, backward: float = 1.0) -> float:
    """Share of time in which the stages of a pipeline wait."""
    from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
    from commsim.training.parallel.pipeline import bubble as bubble_of
    from commsim.training.parallel.pipeline_orders import ORDERS, gems
    from commsim.training.task_graph import simulate_graph

    schedule = gems(stages, batches) if order == "gems" else ORDERS[order](stages, batches)
    return bubble_of(simulate_graph(pipeline_graph(schedule, StageCosts(1.0, backward)), lambda _: 0.0), stages)


@measure
def embedding(copies: int, fused: bool) -> float:
    """Embeddings that each end of a pipeline sends."""
    from commsim.papers.systems.volumes import embedding_volume

    return float(embedding_volume(copies, fused=fused))


@measure
def sent_parameters(policy: str, workers: int) -> float:
    """Parameters that a worker sends in an iteration, per parameter of the model."""
    from commsim.training.data_parallel import sent_bytes, train

    return sent_bytes(train(policy, _even(1e9, 10, 5.5, 1e9, workers)).timeline.graph) / 1e9


@measure
def wasted_minutes(checkpoint: float) -> float:
    """Minutes that a failure wastes, with checkpoints as often as they can be written and read as slowly."""
    from commsim.papers.systems.gemini import wasted_time

    return wasted_time(checkpoint, checkpoint, checkpoint)


@measure
def busy(first: str) -> float:
    """Share of GPUs busy in Crux's first example, in percent, by which job has the link first."""
    from commsim.placement.crux import CruxJob, utilisation

    jobs = {"J1": CruxJob("J1", 10, 10.0, 2.0, 2.0), "J2": CruxJob("J2", 10, 5.0, 1.0, 1.0)}
    return 100 * utilisation([jobs.pop(first), *jobs.values()], 12.0)


@measure
def correction_factor() -> float:
    """Crux's k of the second job in its first example."""
    from commsim.placement.crux import CruxJob, correction

    return float(correction(CruxJob("J2", 10, 5.0, 1.0, 1.0), CruxJob("J1", 10, 10.0, 2.0, 2.0), 12.0))


@simulated
def slowed_all_to_all(ranks: int = 4, size: float = 5e8) -> float:
    """How many times longer an all-to-all takes beside an all-reduce that does not end before it."""
    from collectives import COLLECTIVES
    from commsim.core.placement import Placement
    from commsim.engine.flow import simulate_flows
    from commsim.engine.flow_job import FlowJob
    from commsim.engine.flow_plan import plan_flows
    from commsim.prediction.inputs import load_network

    network = load_network(f"star:n_hosts={ranks},bandwidth=100Gbps,latency=1us")
    names = ("pairwise_all_to_all", "ring_all_reduce")
    jobs = [FlowJob(COLLECTIVES[name].build(ranks), Placement(range(ranks))) for name in names]
    alone = simulate_flows(plan_flows(network, jobs[:1]), size)[0].time
    return simulate_flows(plan_flows(network, jobs), [size, 100 * size])[0].time / alone


@simulated
def delay(bound: int, jitter: float, workers: int = 16) -> float:
    """Time of an iteration over what of it is computed, where workers may be so many iterations apart."""
    from commsim.training.staleness import draw_compute, run_workers

    return workers / run_workers(draw_compute(workers, 150, 1.0, jitter, seed=1), bound=bound).throughput


@simulated
def scaling(
    size: float, tensors: int, backward: float, batch: float, workers: int, gbps: float, policy: str = "horovod"
) -> float:
    """Throughput in percent of linear: gradients of one size each, evenly through the backward pass, in rings.

    Parameters
    ----------
    size : float, bytes
        Size of all gradients.
    tensors : int
        How many there are.
    backward, batch : float, s
        Time of the backward pass, and of all computation.
    """
    from commsim.training.data_parallel import train

    return 100 * train(policy, _even(size, tensors, backward, gbps * GBPS, workers, batch)).scaling


def _even(
    size: float, tensors: int, backward: float, bandwidth: float, workers: int, batch: float | None = None
) -> TrainingSetting:
    """Workers on links of one rate, with equal tensors that are ready in equal steps."""
    from commsim.training.backward_trace import BackwardTrace
    from commsim.training.cost_by_formula import closed_form_costs
    from commsim.training.data_parallel_setting import TrainingSetting

    forward = np.full(tensors, (0.0 if batch is None else batch - backward) / tensors)
    ready = np.arange(1, tensors + 1) * backward / tensors
    trace = BackwardTrace(np.full(tensors, size / tensors), ready, forward)
    return TrainingSetting(trace, workers, closed_form_costs(0.0, bandwidth))


@simulated
def shared_link(
    jobs: list[list[float]], job: int, shifts: list[float], gbps: float = 50.0, starts: list[float] | None = None
) -> float:
    """How many times shorter a job's communication is with shifts than when all jobs start together.

    Parameters
    ----------
    jobs : list of [period, start, length, rate]
        Period, start, length and rate of each job, milliseconds and Gb/s.
    job : int
        Number of the job in question.
    shifts : list of float
        Shifts in milliseconds.
    starts : list of float, optional
        Starts without shifts, in milliseconds; by default all jobs start together.
    """
    together, apart = (_times(jobs, at, gbps)[1][job] for at in (starts or [0.0] * len(jobs), shifts))
    return float(together[100:].mean() / apart[100:].mean())


@simulated
def shared_rate(jobs: list[list[float]], gbps: float = 50.0) -> float:
    """Gb/s that the first job gets of a link when all jobs start together."""
    period, _, length, rate = jobs[0]
    del period
    return float(rate * length * 1e-3 / _times(jobs, [0.0] * len(jobs), gbps)[1][0].mean())


@simulated
def shared_tail(jobs: list[list[float]], shifts: list[float], gbps: float = 50.0) -> float:
    """How many times shorter the first job's 90th percentile of iteration times is with shifts."""
    together, apart = (_times(jobs, at, gbps)[0][0] for at in ([0.0] * len(jobs), shifts))
    return float(np.percentile(together, 90) / np.percentile(apart, 90))


def _times(jobs: list[list[float]], shifts: list[float], gbps: float) -> tuple[Times, Times]:
    """Return iteration and communication times of jobs that all send over one link."""
    from commsim.core.network import HOST, Network
    from commsim.training.sharing.shared_links import simulate_jobs

    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], gbps * GBPS, 0.0)
    ways = [np.ones(1)] * len(jobs)
    run = simulate_jobs(link, _periodic(jobs), ways, shifts=np.array(shifts) / 1e3, iterations=200)
    return run.iteration_times, run.communication_times


def _periodic(jobs: list[list[float]]) -> list[PeriodicJob]:
    from commsim.training.sharing.periodic import JobPhase, PeriodicJob

    return [
        PeriodicJob(f"j{i}", 2, period / 1e3, (JobPhase(at / 1e3, length / 1e3, rate * GBPS),))
        for i, (period, at, length, rate) in enumerate(jobs)
    ]


@measure
def score(jobs: list[list[float]], gbps: float = 50.0) -> float:
    """Best score of jobs on a link."""
    from commsim.placement.starts.link_scores import score_link

    return float(score_link(tuple(_periodic(jobs)), gbps * GBPS, step=1e-3).score)


@measure
def rotation(jobs: list[list[float]], gbps: float = 50.0) -> float:
    """Degrees by which the second job is turned."""
    from commsim.placement.starts.link_scores import score_link

    found = score_link(tuple(_periodic(jobs)), gbps * GBPS)
    return float(360 * found.shifts[1] / found.circle.perimeter)


@measure
def group_milliseconds(parts: list[float]) -> float:
    """Milliseconds of an iteration of one job, from those of its stages by resource."""
    from commsim.placement.strategies.muri import group_time

    return float(group_time([tuple(parts)]))


@simulated
def marks_avoided(jobs: list[list[float]], shifts: list[float], rate: float, gbps: float = 50.0) -> float:
    """Percent of ECN marks that jobs no longer get with shifts, against starting together.

    Parameters
    ----------
    jobs : list of [period, start, length]
        Period, start and length of each job, milliseconds; a job sends from a host of its own to another one.
    shifts : list of float
        Shifts in milliseconds.
    rate : float
        Rate of each host, in Gb/s.
    gbps : float
        Rate of the link that all jobs share.
    """
    together, apart = (marks(jobs, at, rate, gbps) for at in ([0.0] * len(jobs), shifts))
    return 100 * (1 - apart / together)


def marks(jobs: list[list[float]], shifts: list[float], rate: float, gbps: float) -> int:
    """Packets marked in a few iterations of jobs; parameters as :func:`marks_avoided`."""
    from commsim.core.network import HOST, SWITCH, Network
    from commsim.packets.transports.spraying import Spraying
    from commsim.traffic.host_messages import run_messages
    from commsim.traffic.patterns import HostMessages

    n = len(jobs)
    hosts, near, far = np.arange(2 * n), 2 * n, 2 * n + 1
    switch = np.where(hosts < n, near, far)  # senders on one side of the link, receivers on the other
    here, there = np.append(hosts, near), np.append(switch, far)
    bandwidth = np.append(np.full(2 * n, rate), gbps) * GBPS
    network = Network(
        "one link", tuple(f"n{i}" for i in range(2 * n + 2)), [HOST] * (2 * n) + [SWITCH] * 2,
        np.append(here, there), np.append(there, here), np.tile(bandwidth, 2), LATENCY,
    )  # fmt: skip
    period, start, length = (np.array([job[i] for job in jobs]) * 1e-3 / FASTER for i in range(3))
    times = start + np.array(shifts) * 1e-3 / FASTER + np.arange(ITERATIONS)[:, None] * period
    size = np.tile((length * rate * GBPS).astype(np.int64), ITERATIONS)
    src, dst = (np.tile(side, ITERATIONS).astype(np.int32) for side in (hosts[:n], hosts[n:]))
    run = run_messages(network, HostMessages(src, dst, size, times.ravel()), Spraying("dcqcn", balancing="ecmp"))
    return run.counters["n_marked"]
