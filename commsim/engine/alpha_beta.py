"""The alpha-beta engine: closed forms, and the critical path of any schedule under LogGP, without contention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import LogGP, Wire
from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.core.registry import Entry
from commsim.core.result import Result
from commsim.core.schedule import REDUCE

from .flow import job_results, not_negative, payload
from .flow_plan import FlowPlan
from .flow_times import FlowTimes

TRANSFER_ROW = np.dtype(
    [
        ("wire", np.int32),
        ("op", np.int32),
        ("bytes", np.float64),
        ("start", np.float64),
        ("sent", np.float64),
        ("done", np.float64),
    ],
    align=True,
)


def simulate_alpha_beta(
    plan: FlowPlan, sizes: ArrayLike, *, starts: ArrayLike = 0.0, wire: Wire | None = None, trace: bool = False
) -> tuple[Result, ...]:
    """Find the critical path: every message takes what it would take alone, and only ports are shared.

    The result's counter ``link_bound_s`` says how long the busiest link of the network would need for the same
    bytes; where it is larger than the time, contention decides, and this engine does not see it.

    Parameters
    ----------
    plan, sizes, starts, wire, trace
        As in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    tuple of Result
        One per job.

    References
    ----------
    Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", SPAA 1995. Without overheads it is Hockney's model.
    """
    from commsim.core.jit import announce

    from .alpha_beta_kernel import critical_path

    announce(critical_path)
    transfer = np.zeros(len(plan.wire_of), TRANSFER_ROW)
    transfer["wire"], transfer["op"] = plan.wire_of, plan.op
    transfer["bytes"] = (wire or Wire()).on_wire(payload(plan, sizes))
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    wires = plan.wire.copy()
    wires["ready"] = starts[plan.ends].max(axis=1, initial=0.0)
    ports = _ports(plan)
    n_ports = int(ports.max(initial=0)) + 1
    waiting = plan.waiting.copy()
    critical_path(transfer, waiting, wires, plan.queue, plan.successors, ports, wire_costs(plan), n_ports)
    times = FlowTimes(
        transfer["bytes"], transfer["start"], transfer["sent"], transfer["done"], wires["ready"], len(transfer)
    )
    results = job_results(plan, times, sizes, starts, trace, engine="alpha-beta")
    bound = sum(r.link_bytes for r in results) / plan.network.bandwidth
    return tuple(_with_counter(r, "link_bound_s", float(bound.max(initial=0.0))) for r in results)


def _ports(plan: FlowPlan) -> NDArray[np.int32]:
    """Ports that send, receive and reduce on each wire: one per participant, but on a switch one per link.

    Returns
    -------
    int32[n_wires, 3]
    """
    ports = np.concatenate((plan.ends, plan.ends[:, 1:]), axis=1)
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    crosses = np.diff(plan.routes.first) > 0
    for end, nearest in ((0, plan.routes.first[:-1]), (1, plan.routes.first[1:] - 1)):
        many = crosses & (plan.network.kind[nodes[:, end]] == SWITCH)
        ports[many, end] = plan.n_participants + plan.routes.link[nearest[many]]
    return ports


def wire_costs(plan: FlowPlan) -> NDArray[np.float64]:
    """Cost of a message on each wire when it is alone.

    Returns
    -------
    float64[n_wires, 5]
        Overhead (s), seconds per byte, latency (s), receive overhead (s), gamma (s/byte).
    """
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    crosses = np.diff(plan.routes.first) > 0
    beta = np.zeros(len(plan.wire))
    of_wire = np.repeat(np.arange(len(plan.wire)), np.diff(plan.routes.first))
    np.maximum.at(beta, of_wire, plan.routes.share / plan.network.bandwidth[plan.routes.link])
    cap = np.array([job.rate_cap for job in plan.jobs])[plan.job_of_wire]
    beta = np.where(crosses, np.maximum(beta, 1 / cap), 0.0)
    network = plan.network
    columns = (
        np.where(crosses, network.overhead[nodes[:, 0]], 0.0),
        beta,
        plan.routes.latency,
        np.where(crosses, network.recv_overhead[nodes[:, 1]], 0.0),
        network.gamma[nodes[:, 1]],
    )
    return np.stack(columns, axis=1)


def slowest_link(plan: FlowPlan) -> LogGP:
    """Return the worst of each of L, o, B and gamma over the plan's wires: what a closed form is evaluated with.

    Gamma is that of wires that reduce: a switch may add at the rate of its links where a rank, which only takes copies,
    would not.
    """
    if not len(plan.wire):
        return LogGP()
    costs = wire_costs(plan)
    costs[:, 4] *= np.bincount(plan.wire_of, weights=plan.op == REDUCE, minlength=len(costs)) > 0
    overhead, beta, latency, receive, gamma = costs.max(axis=0)
    return LogGP(L=latency, o=overhead + receive, B=1 / beta if beta else float("inf"), gamma=gamma)


def closed_form(entry: Entry[Any], plan: FlowPlan, size: float, parameters: dict[str, Any]) -> Result:
    """Evaluate a collective's closed form with the slowest path that its schedule uses.

    It is exact where all paths are alike and no link is shared: on a star.

    Raises
    ------
    InputError
        If the collective states none.
    """
    cost = entry.facts["cost"]
    if cost is None:
        raise InputError(f"{entry.name} has no closed form; use --engine flow or alpha-beta")
    n_ranks = plan.jobs[0].schedule.n_ranks
    time = float(cost(n_ranks, size, slowest_link(plan), **parameters))
    return Result(entry.name, entry.facts["operation"], "closed-form", n_ranks, size, time, time)


def _with_counter(result: Result, name: str, value: float) -> Result:
    import dataclasses

    return dataclasses.replace(result, counters={**result.counters, name: value})
