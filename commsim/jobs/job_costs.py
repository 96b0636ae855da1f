"""A plan as one of several jobs in a simulation: its own costs of messages, its headers, and what no message shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_job import FlowJob, chunk_bytes
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import Run

__all__ = ["framed", "has_own_costs", "shared_job", "shared_network", "with_rest"]

COSTS = ("bandwidth", "latency", "overhead", "recv_overhead")


def has_own_costs(run: Run | Plan, network: Network) -> bool:
    """Whether messages of a run see other costs than those of the network that it shares."""
    seen = run.paths.network
    same = all(np.array_equal(getattr(seen, name), getattr(network, name)) for name in COSTS)
    return not same or seen.protocol != network.protocol


def shared_job(run: Run | Plan, network: Network, framing: Framing | None, **sharing: Any) -> FlowJob:
    """Return a run as a job of the flow engine beside others.

    Parameters
    ----------
    run : Run or Plan
        Collective of one size.
    network : Network
        Network that the jobs share.
    framing : Framing or None
        Headers of its messages.
    **sharing
        Weight, priority and rate_cap of the job.
    """
    seen = run.paths.network if has_own_costs(run, network) else None
    return framed(dataclasses.replace(run.paths.job, network=seen, **sharing), framing)


def with_rest(run: Run, result: Result, carried: NDArray[np.float64]) -> Result:
    """Return a result of the flow engine with the time of its software that no message shows, and with its launch.

    Parameters
    ----------
    run : Run or Plan
        Collective of one size.
    result : Result
        Result of its messages.
    carried : float64[n_links], bytes
        Bytes of all jobs that shared the links.
    """
    if isinstance(run.paths, ClosedFormPaths):
        result = run.paths.with_rest(result, run.size, carried)
    return run.finished(result)


def framed(job: FlowJob, framing: Framing | None) -> FlowJob:
    """Return the job with headers in its payloads, since jobs of one plan have headers of their own."""
    if framing is None:
        return job
    count = job.schedule.expand()["count"]

    def messages(size: float) -> NDArray[np.float64]:
        payload = count * chunk_bytes(job, size) if job.messages is None else job.messages(size)
        return np.asarray(framing.on_wire(payload), np.float64)

    return dataclasses.replace(job, messages=messages)


def shared_network(network: Network, plans: Sequence[Plan]) -> Network:
    """Return the network of several plans, where every switch can aggregate that one of them put helpers on.

    Raises
    ------
    InputError
        If the software makes hosts add more slowly in some of the plans only.
    """
    gamma = plans[0].network.gamma
    if not all(np.array_equal(plan.network.gamma, gamma) for plan in plans):
        raise InputError(f"software {network.software}: its adding is not modelled beside collectives of others")
    aggregates = np.logical_or.reduce([plan.network.aggregates for plan in plans])
    return dataclasses.replace(network, aggregates=aggregates, gamma=gamma)
