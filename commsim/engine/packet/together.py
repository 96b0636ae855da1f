"""Aggregation jobs and ordinary messages packet by packet on one network: they meet in the same queues.

The kernels know both kinds of traffic; here their tables are laid out one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.engine.flow import payload
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.results import not_negative

from . import aggregation, messages
from .message_plan import message_rows
from .packet_job import AggregationJob, priority_ranks
from .packet_plan import aggregation_rows
from .packet_run import PacketRun, Tables, lay_out, record, run_to_end
from .run_kernel import start_flows, start_workers
from .transport import ROCE, Fabric, Transport, Window

__all__ = ["run_together"]


def run_together(
    plan: FlowPlan,
    sizes: ArrayLike,
    jobs: Sequence[AggregationJob],
    *,
    transport: Transport | None = None,
    fabric: Fabric | None = None,
    seed: int = 0,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    values: bool = True,
    sample_every: float = 0.0,
) -> PacketRun:
    """Simulate the jobs of a plan, as messages, beside jobs whose tensors switches add up.

    Parameters
    ----------
    plan : FlowPlan
        Ordinary collectives and messages.
    sizes : float64[n_jobs] or float, bytes
        Sizes of the plan's jobs.
    jobs : sequence of AggregationJob
        Jobs, at least one. They send as their system says, and know when they begin.
    transport, fabric, seed, starts, framing
        Same as in :func:`commsim.engine.packet.messages.run_messages`, for the messages; the fabric is everybody's.
    values : bool
        Whether real tensors are summed, and `exact` is known.
    sample_every : float, s
        Interval of the series of queues; 0 for none.

    Returns
    -------
    PacketRun
        Results of the plan's jobs, then of the others. `link_bytes` of the latter has the traffic of all.

    Raises
    ------
    InputError
        If something does not fit, or a transport that never repeats a packet has lost some.
    """
    transport, framing, network = transport or Window(), framing or ROCE, plan.network
    fabric = fabric or transport.fabric(float(network.bandwidth.max(initial=1.0)))
    entered = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    if network.loss.any() and any(job.system.lossless for job in jobs):
        raise InputError(f"{network.name} loses packets, and a system here needs links without loss")
    ranks = priority_ranks([*(job.priority for job in plan.jobs), *(job.priority for job in jobs)], fabric)
    ordinary = message_rows(plan, payload(plan, sizes), entered, framing, transport, fabric, ranks)
    tables = lay_out(seed=seed, **_joined(aggregation_rows(network, jobs, fabric, ranks[len(plan.jobs) :]), ordinary))
    record(tables, (), sample_every)
    begins = np.concatenate([job.starts_ps() for job in jobs])

    def begin(t: Tables) -> None:
        start_workers(t.links, t.jobs, begins)
        start_flows(t.links, t.flows)

    margin = messages.packets_at_once(tables) + aggregation.packets_at_once(tables.jobs, jobs)
    tables, finished, cpu = run_to_end(tables, margin, begin)
    messages.require_finished(tables, finished, network)
    of_plan, _ = messages.message_results(plan, tables, sizes, entered, False)
    ran = aggregation.Ran(tables.links.state, tables.jobs, tables.links.link)
    of_jobs = aggregation.aggregation_results(network, ran, jobs, cpu, seed=seed if values else None)
    return PacketRun(of_plan + of_jobs, tables, cpu)


def _joined(first: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Put the tables of messages behind those of aggregation jobs; their links are the network's, with units behind."""
    n_streams, n_hops = len(first["stream"]), len(first["hops"])
    stream, flow, receiver = then["stream"].copy(), then["flow"].copy(), then["receiver"].copy()
    for name in ("begin", "end"):
        stream[name] += n_hops
    flow["stream"] += n_streams
    receiver["back"] += n_streams
    together = {
        "n_timers": first["n_timers"] + then["n_timers"],
        "n_unfinished": first["n_unfinished"] + then["n_unfinished"],
        "hops": np.concatenate((first["hops"], then["hops"])),
        "stream": np.concatenate((first["stream"], stream)),
        "flow": flow,
        "receiver": receiver,
        "link": first["link"],
        "buffer": first["buffer"],
    }
    return then | first | together
