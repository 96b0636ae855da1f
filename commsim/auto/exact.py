"""Where a cheaper engine gives the flow engine's answer exactly, whatever the size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collectives import BLOCKING, COLLECTIVES
from commsim.core.network import SWITCH, Network
from commsim.core.schedule import REDUCE
from commsim.engine.alpha_beta import connection_costs

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan


def closed_form_differs(prepared: Plan) -> str:
    """Describe why the closed form may differ from the flow engine; nothing where it is exact.

    A closed form is that of a star: every message costs the same, and messages compete for the port of their sender and
    that of their receiver only. It holds on any network on which the schedule's wires see just this: all cost the
    same, all that leave a rank leave by one link and all that come to it come by one, and every other link is used by
    wires of one sender or of one receiver only and is no slower than their port. Max-min shares are then those of the
    star, resource by resource. That the flow engine meets every closed form on stars is tested for all collectives.
    """
    if prepared.network.curves is not None:
        return "messages cost what was measured, and no line"
    name = prepared.schedule.name
    if name not in COLLECTIVES or COLLECTIVES[name].metadata["cost"] is None:
        return f"{name} has none"
    if prepared.parameters.get(BLOCKING):
        return "each step waits for the one before"
    if prepared.data is not None:
        return "the data is sparse"
    nodes = _participants(prepared)
    if len(np.unique(nodes)) < len(nodes):
        return "participants share a node"
    if (prepared.network.kind[nodes] == SWITCH).sum() > 1:
        return "several switches add up"
    return _unequal(prepared) or _beyond_ports(prepared.network, _wires(prepared))


def alpha_beta_differs(prepared: Plan) -> str:
    """Describe why alpha-beta may differ from the flow engine; nothing where it is exact.

    Alpha-beta knows no sharing: a rank sends to one other at a time, and receives from one. Where every rank only ever
    sends to one and receives from one, every link belongs to one pair, and no messages meet at a switch that adds them,
    nothing is ever shared, and both engines do the same sums.
    """
    name = prepared.schedule.name
    if name in COLLECTIVES and "nccl" in COLLECTIVES[name].metadata["needs"]:
        return "slices of NCCL overlap"
    if prepared.data is not None:
        return "the data is sparse"
    if prepared.network.curves is not None:
        return "measured reductions keep ports, which one engine gives to one message after the other"
    nodes, wires = _participants(prepared), _wires(prepared)
    if len(np.unique(nodes)) < len(nodes):
        return "participants share a node"
    links, users = np.unique(wires.link, return_counts=True)
    if (users > 1).any():
        return f"{users.max()} pairs of participants use {prepared.network.link_name(int(links[users.argmax()]))}"
    for ends, way in ((wires.begin, "sends to"), (wires.end, "receives from")):
        others = np.bincount(ends[prepared.network.kind[ends] != SWITCH], minlength=1)
        if others.max() > 1:
            return f"{prepared.network.nodes[int(others.argmax())]} {way} {others.max()} others"
    n_links = np.diff(prepared.plan.routes.first)
    reduces = np.bincount(prepared.plan.connection_of, weights=prepared.plan.op == REDUCE, minlength=len(n_links)) > 0
    costly = reduces[n_links > 0] | (prepared.network.recv_overhead[wires.end] > 0)
    met = np.bincount(wires.end[costly], minlength=1)
    if met.max() > 1:
        return f"several messages meet at {prepared.network.nodes[int(met.argmax())]}, which adds them in turn"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Wires:
    """Wires that cross a link: the nodes at their ends, and one row per wire and link.

    Parameters
    ----------
    begin, end : int32[n]
        Nodes at the ends of each wire.
    of : intp[m]
        Wire of each row, ascending; a wire's rows are its route, nearest to the sender first.
    link : int32[m]
        Directed link of each row.
    sprayed : bool
        Whether some wire uses several paths.
    """

    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    of: NDArray[np.intp]
    link: NDArray[np.int32]
    sprayed: bool


def _wires(prepared: Plan) -> _Wires:
    routes = prepared.plan.routes
    n_links = np.diff(routes.first)
    ends = prepared.placement.nodes[prepared.plan.ends[n_links > 0]]
    of = np.repeat(np.arange(len(ends)), n_links[n_links > 0])
    return _Wires(ends[:, 0], ends[:, 1], of, routes.link, bool((routes.share < 1).any()))


def _participants(prepared: Plan) -> NDArray[np.int32]:
    return prepared.placement.nodes[: prepared.schedule.n_participants]


def _unequal(prepared: Plan) -> str:
    """Describe which cost differs between messages; gamma counts on wires that reduce only."""
    plan = prepared.plan
    crosses = np.diff(plan.routes.first) > 0
    costs = connection_costs(plan)
    reduces = np.bincount(plan.connection_of, weights=plan.op == REDUCE, minlength=len(costs)) > 0
    columns = ("overhead", "bandwidth", "latency", "overhead to receive")
    for name, column in zip(columns, costs[crosses].T, strict=False):
        if column.size and column.min() != column.max():
            return f"pairs of participants differ in {name}"
    gamma = costs[crosses & reduces, 4]
    return "receivers differ in how fast they reduce" if gamma.size and gamma.min() != gamma.max() else ""


def _beyond_ports(network: Network, wires: _Wires) -> str:
    """Describe where messages compete for something else than one port of their sender and one of their receiver."""
    if wires.sprayed:
        return "messages are sprayed over several paths"
    firsts = np.flatnonzero(np.diff(wires.of, prepend=-1))
    lasts = np.flatnonzero(np.diff(wires.of, append=-1))
    rate = network.bandwidth[wires.link]
    slowest = np.minimum.reduceat(rate, firsts) if firsts.size else rate
    for rows, nodes, way in ((firsts, wires.begin, "leave"), (lasts, wires.end, "reach")):
        if (rate[rows] != slowest).any():
            return "ports are not the slowest links"
        seated = network.kind[nodes] != SWITCH
        pairs = np.unique(np.stack((nodes, wires.link[rows]))[:, seated], axis=1)
        if len(np.unique(pairs[0])) < pairs.shape[1]:
            return f"messages {way} a rank by several links"
    for link in np.unique(wires.link).tolist():
        users = wires.of[wires.link == link]
        if len(np.unique(wires.begin[users])) > 1 and len(np.unique(wires.end[users])) > 1:
            return f"{len(users)} pairs of participants share {network.link_name(link)}"
    return ""
