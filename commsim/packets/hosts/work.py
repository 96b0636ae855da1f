"""What a packet run sends: flows from host to host, and the messages of each in their order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import FORWARDING, Network
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.aggregated.traffic_state import MESSAGE_ROW, RECEIVER_ROW
from commsim.packets.event_rows import LONGEST, PS, Rows, zeros_on_lines
from commsim.packets.hosts.message_plan import adding_times, message_table, path_packets, routes_back, turns_of
from commsim.packets.links.equal_cost_links import EqualCostWays, ways_of, ways_of_paths
from commsim.packets.links.ports import Legs, find_ports, rows_of_paths
from commsim.packets.packet_rows import FLOW_ROW
from commsim.packets.transports.spraying import Spraying, over_path
from commsim.routing.routing import Routes

Ints = NDArray[np.int32]
Rule = NDArray[np.uint8]
Places = Callable[[NDArray[np.int64], NDArray[np.int32]], Ints]
Successors = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class FlowWork:
    """Flows and their messages.

    Parameters
    ----------
    flow, receiver : FLOW_ROW[n_flows], RECEIVER_ROW[n_flows]
        Both ends of each flow, as far as they do not depend on the rules of transports.
    message : MESSAGE_ROW[n_messages]
        Messages, cut into packets.
    queue : int32[n_messages]
        Messages by flow in their order.
    successors : int64[n_messages + 1], int32[n]
        Messages that wait for each one: twice the number, plus 1 if until it is complete.
    adding : int64[n_messages], ps
        Time that each message takes to be added; empty where none does.
    n_nodes, n_jobs : int
        Number of nodes that add messages, and of jobs.
    routes : tuple of Routes
        Links of packets and of their answers, for the first of the flows, where some keep to a path; else empty.
    """

    flow: Rows
    receiver: Rows
    message: Rows
    queue: Ints
    successors: Successors
    adding: NDArray[np.int64]
    n_nodes: int
    n_jobs: int
    routes: tuple[Routes, ...] = ()


class PacketLayout(NamedTuple):
    """What a run sends, over which links, and how.

    Parameters
    ----------
    network : Network
        Network of the run; where packets are sprayed, its ports have the latency and rate of what lies behind them.
    plan : FlowPlan, optional
        What runs where; none for jobs that switches aggregate alone.
    work : FlowWork
        Flows and their messages.
    ways : EqualCostWays
        Numbers of links, and the equal-cost sets.
    hows : tuple of Spraying
        How messages are sent; a flow's `rule` is a place here.
    legs : (int64[n], intp[n]), optional
        Links inside machines, and the flow that takes each, of messages that are sprayed.
    """

    network: Network
    plan: FlowPlan | None
    work: FlowWork
    ways: EqualCostWays
    hows: tuple[Spraying, ...]
    legs: Legs | None = None

    def rows(self, count: NDArray[np.integer], link: NDArray[np.integer]) -> Ints:
        """Return the rows of the links of paths, as :func:`commsim.packets.links.ports.rows_of_paths` does."""
        network = self.network if self.plan is None else self.plan.network
        return rows_of_paths(network, self.network, self.ways, count, link)


def nothing_sent(network: Network, how: Spraying) -> PacketLayout:
    """Return the layout of a run that has only jobs that switches aggregate."""
    none = np.zeros(0, np.int32)
    work = FlowWork(
        np.zeros(0, FLOW_ROW), np.zeros(0, RECEIVER_ROW), np.zeros(0, MESSAGE_ROW), none,
        (np.zeros(1, np.int64), none), np.zeros(0, np.int64), network.n_nodes, 0,
    )  # fmt: skip
    return PacketLayout(network, None, work, ways_of_paths(network) if how.on_path else ways_of(network), (how,))


def lay_out(
    plan: FlowPlan,
    n_bytes: NDArray[np.float64],
    starts: NDArray[np.float64],
    hows: Sequence[Spraying],
    rule: Rule,
    ranks: NDArray[np.int64],
    *,
    beside: bool = False,
) -> PacketLayout:
    """Lay out the transfers of a plan: each waits for those before it on its connection, and for its data.

    Sprayed messages go from port to port: a host with one link has one.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    n_bytes : float64[n_transfers], bytes
        Payload of each transfer; rounded up to whole bytes.
    starts : float64[n_participants], s
        Time at which each participant enters.
    hows : sequence of Spraying
        How messages are sent.
    rule : uint8[n_flows]
        Which of `hows` each flow is sent by.
    ranks : int64[n]
        Ranks of the priorities of all jobs of the run, the plan's first; all 0 where there is one priority.
    beside : bool
        Whether switches aggregate other jobs.

    Raises
    ------
    InputError
        If a participant is no host, the schedule pins routes or weighs channels, or a number is out of its range.
    """
    if starts.max(initial=0.0) > LONGEST:
        raise InputError(f"a start must be below {LONGEST:g} s, got {starts.max()} s")
    sprays, nodes = _sprays(hows, rule), np.concatenate([job.placement.nodes for job in plan.jobs])
    network, legs, (src, dst) = plan.network, None, np.full((2, len(rule)), -1, np.int32)
    if not sprays.all() and (plan.routes.share != 1).any():
        raise InputError(
            f"transport window sends each flow over one path, and {plan.routing} uses several; a preset such as uec, "
            "or a balancing, sprays packets"
        )
    if sprays.any():
        _check_ends(plan, nodes)
        plan, network, ways, src, dst, legs = find_ports(plan, sprays, beside=beside)
        hows, rule = _with_path_inside(hows, rule, sprays & (src < 0))
        sprays = _sprays(hows, rule)
        _check_sprayed(plan, sprays)
    routes = () if sprays.all() else (plan.routes, routes_back(plan))
    if legs is None:
        ways = ways_of_paths(network, *routes, ends=nodes)
    flow = zeros_on_lines(len(rule), FLOW_ROW)
    flow["src"], flow["dst"], flow["rule"], flow["turns"] = src, dst, rule, 1
    flow["local"], flow["job"] = src == dst, plan.job_of_connection
    flow["ready"] = np.round(starts[plan.ends].max(axis=1, initial=0.0) * PS)
    flow["rank"] = ranks[plan.job_of_connection]
    if routes:
        _keep_to_paths(flow, ~sprays, plan, routes, functools.partial(rows_of_paths, plan.network, network, ways), hows)
    if ranks.any():  # what goes first has its next packet waiting when one leaves, or others get every second turn
        flow["turns"] *= np.where(sprays, 1, 2).astype(np.int16)
    payload, header = (np.array([getattr(how, name) for how in hows])[rule] for name in ("payload", "header"))
    message = message_table(plan, n_bytes, payload, header)
    flow["end"] = np.cumsum(np.bincount(plan.connection_of, minlength=len(flow)))
    flow["message"][1:] = flow["end"][:-1]
    node = nodes[plan.ends[:, 1]]
    work = FlowWork(
        flow, receivers(flow, message, plan.queue, node), message, plan.queue, plan.successors,
        adding_times(plan, node, n_bytes), plan.network.n_nodes, len(plan.jobs), routes,
    )  # fmt: skip
    return PacketLayout(network, plan, work, ways, tuple(hows), legs)


def receivers(flow: Rows, message: Rows, queue: Ints, node: NDArray[np.integer]) -> Rows:
    """Lay out the flows' other ends, on these nodes."""
    receiver = np.zeros(len(flow), RECEIVER_ROW)
    receiver["message"] = receiver["complete"] = flow["message"]
    receiver["end"], receiver["node"] = flow["end"], node
    receiver["boundary"] = message["end"][queue[flow["message"]]]
    return receiver


def _sprays(hows: Sequence[Spraying], rule: Rule) -> NDArray[np.bool_]:
    """Tell which flows do not keep to a path."""
    return np.array([not how.on_path for how in hows])[rule]


def _keep_to_paths(
    flow: Rows,
    keeps: NDArray[np.bool_],
    plan: FlowPlan,
    routes: Sequence[Routes],
    rows: Places,
    hows: Sequence[Spraying],
) -> None:
    """Give flows that keep to paths their first links, turns and rates, and windows of twice what fits onto the path.

    Raises
    ------
    InputError
        If weights are out of range.
    """
    for end, way in zip(("src", "dst"), routes, strict=True):
        crosses = np.diff(way.first) > 0
        link = np.zeros(len(flow), np.int32)
        link[crosses] = rows(np.diff(way.first), way.link)[way.first[:-1][crosses]]
        flow[end] = np.where(flow[end] < 0, link, flow[end])
    turns = turns_of(plan, next((how.transport for how in hows if how.on_path and how.transport != "window"), "window"))
    cap = np.array([job.rate_cap for job in plan.jobs])[plan.job_of_connection]
    for number, how in enumerate(hows):
        if how.on_path:
            mtu, answer = how.payload + how.header, how.header if how.ack_bytes is None else how.ack_bytes
            fits = np.maximum(np.ceil(2 * path_packets(plan, routes[1], mtu, answer)), how.ack_every or 1)
            window = np.ceil(fits * turns / turns.min(initial=1)) * mtu
            flow["window"] = np.where(flow["rule"] == number, window, flow["window"])
    flow["local"][keeps], flow["turns"][keeps] = np.diff(plan.routes.first)[keeps] == 0, turns[keeps]
    flow["cap"][keeps] = np.where(np.isfinite(cap), cap, 0.0)[keeps] / PS


def _with_path_inside(hows: Sequence[Spraying], rule: Rule, inside: NDArray[np.bool_]) -> tuple[list[Spraying], Rule]:
    """Let sprayed messages inside machines keep to their paths, with a window.

    Parameters
    ----------
    hows : sequence of Spraying
        How messages are sent.
    rule : uint8[n_flows]
        Which of `hows` each flow is sent by.
    inside : bool[n_flows]
        Which sprayed flows stay in a machine.

    Returns
    -------
    list of Spraying, uint8[n_flows]
        How messages are sent, and which of these each flow is sent by.
    """
    found, numbers = list(hows), rule.copy()
    for number in np.unique(rule[inside]):
        how = hows[number]
        one = replace(over_path("window", framing=Framing(how.payload, how.header)), loss=how.loss, rto=how.rto)
        found += [] if one in found else [one]
        numbers[inside & (rule == number)] = found.index(one)
    return found, numbers


def _check_ends(plan: FlowPlan, nodes: NDArray[np.integer]) -> None:
    """Refuse ends of messages that are no hosts.

    Raises
    ------
    InputError
        If a flow's end is a switch.
    """
    ends = nodes[plan.ends]
    if (wrong := np.isin(plan.network.kind[ends], FORWARDING)).any():
        node = plan.network.nodes[int(ends[wrong][0])]
        raise InputError(
            f"sprayed transports carry messages between hosts, and {node} takes part: an aggregating switch needs all "
            "packets of its tree; use the transport `window`, `dctcp` or `dcqcn` without --balancing"
        )


def _check_sprayed(plan: FlowPlan, sprays: NDArray[np.bool_]) -> None:
    """Refuse what only messages over one path have.

    Raises
    ------
    InputError
        If routes are pinned, channels have weights, or a job has a cap.
    """
    jobs = [plan.jobs[j] for j in np.unique(plan.job_of_connection[sprays])]
    if any(job.placement.routes is not None for job in jobs):
        raise InputError("the placement pins routes, and sprayed transports choose a path for each packet")
    weight = plan.flow["weight"][: len(plan.ends)]
    if (weight != weight[:1]).any():
        raise InputError("the schedule's channels have weights, and sprayed transports give all messages the same")
    if any(np.isfinite(job.rate_cap) for job in jobs):
        raise InputError("a job has a rate_cap, and sprayed transports know none; use engine flow")
