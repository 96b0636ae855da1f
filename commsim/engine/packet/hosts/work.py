"""What a packet run sends: flows from host to host, and the messages of each in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.packet.aggregated.traffic_state import MESSAGE_ROW
from commsim.engine.packet.hosts.message_plan import adding_times, message_table, path_packets, routes_back, turns_of
from commsim.engine.packet.links.ports import Ported, find_ports
from commsim.engine.packet.links.ways import Ways
from commsim.engine.packet.packet_state import LONGEST, Rows
from commsim.engine.packet.transports.spraying import Spraying, over_path
from commsim.routing.routing import Routes

Ints = NDArray[np.int32]
Rule = NDArray[np.uint8] | int
Successors = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """What flows have that keep to a path.

    Parameters
    ----------
    there, back : Routes
        Links of each flow's packets, and of their answers.
    window : float64[n_flows], packets
        Twice what fits onto each path.
    turns : int64[n_flows]
        Packets that each may have in its host's queue, in the ratio of the weights.
    cap : float64[n_flows], bytes/s
        The most that each may send.
    """

    there: Routes
    back: Routes
    window: NDArray[np.float64]
    turns: NDArray[np.int64]
    cap: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Flows and their messages.

    Parameters
    ----------
    src, dst : int32[n_flows]
        Numbers of hosts, from 0.
    ready : float64[n_flows], s
        Time from which each flow may begin.
    job : int32[n_flows]
        Job of each flow.
    n_jobs : int
        Number of jobs.
    rank : uint8[n_flows]
        Class of the packets of each flow; the least goes first.
    message : MESSAGE_ROW[n_messages]
        Messages, cut into packets.
    queue, of_flow : int32[n_messages], int64[n_flows + 1]
        Messages by flow in their order, and the first one of each flow.
    successors : int64[n_messages + 1], int32[n]
        Messages that wait for each one: twice the number, plus 1 if until it is complete.
    adding : int64[n_messages], ps
        Time that each message takes to be added; empty where none does.
    node : int32[n_flows]
        Node that adds the messages of each flow.
    n_nodes : int
        Number of nodes.
    paths : Paths, optional
        Of flows that keep to a path; others have some here, too.
    rule : uint8[n_flows] or int
        Rules of each flow: those of the run, or of its job.
    """

    src: Ints
    dst: Ints
    ready: NDArray[np.float64]
    job: Ints
    n_jobs: int
    rank: NDArray[np.uint8]
    message: Rows
    queue: Ints
    of_flow: NDArray[np.int64]
    successors: Successors
    adding: NDArray[np.int64]
    node: Ints
    n_nodes: int
    paths: Paths | None = None
    rule: Rule = 0


def no_work(network: Network) -> Work:
    """Return what is sent where nothing is, beside jobs that switches aggregate."""
    none = np.zeros(0, np.int32)
    return Work(
        none, none, np.zeros(0), none, 0, np.zeros(0, np.uint8), np.zeros(0, MESSAGE_ROW), none, np.zeros(1, np.int64),
        (np.zeros(1, np.int64), none), np.zeros(0, np.int64), none, network.n_nodes,
    )  # fmt: skip


def work_of_plan(
    plan: FlowPlan,
    n_bytes: NDArray[np.float64],
    starts: NDArray[np.float64],
    ways: Ways,
    hows: Sequence[Spraying],
    ranks: NDArray[np.int64],
    paths: Paths | None = None,
    rule: Rule = 0,
    ports: tuple[Ints, Ints] | None = None,
) -> Work:
    """Lay out the transfers of a plan: each waits for those before it on its connection, and for its data.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    n_bytes : float64[n_transfers], bytes
        Payload of each transfer; rounded up to whole bytes.
    starts : float64[n_participants], s
        Time at which each participant enters.
    ways : Ways
        Hosts of the network.
    hows : sequence of Spraying
        How messages are sent.
    ranks : int64[n]
        Ranks of the priorities of all jobs of the run, the plan's first; all 0 where there is one priority.
    paths : Paths, optional
        Where messages keep to a path.
    rule : uint8[n_flows] or int
        Which of `hows` each flow is sent by.
    ports : (int32[n_flows], int32[n_flows]), optional
        Ports that each flow goes from and to, where hosts have several; -1 of those that keep to paths.

    Raises
    ------
    InputError
        If a participant is no host, the schedule pins routes or weighs channels, or a number is out of its range.
    """
    if starts.max(initial=0.0) > LONGEST:
        raise InputError(f"a start must be below {LONGEST:g} s, got {starts.max()} s")
    n = len(plan.ends)
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    rule = np.broadcast_to(np.array(rule, np.uint8), n)
    payload, header = (np.array([getattr(how, name) for how in hows])[rule] for name in ("payload", "header"))
    message = message_table(plan, n_bytes, payload[plan.connection_of], header[plan.connection_of])
    of_flow = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(plan.connection_of, minlength=n))))
    sprays = np.array([not how.on_path for how in hows])[rule]
    if ports is not None:
        _check_sprayed(plan, sprays)
        first = ports if paths is None else _first_links(ways, paths)
        src, dst = (np.where(port < 0, on, port).astype(np.int32) for port, on in zip(ports, first, strict=True))
    elif paths is None or sprays.any():
        src, dst = _hosts(plan, ways, nodes, sprays)
    else:
        src, dst = _first_links(ways, paths)
    return Work(
        src, dst, starts[plan.ends].max(axis=1, initial=0.0), plan.job_of_connection.astype(np.int32), len(plan.jobs),
        ranks[plan.job_of_connection].astype(np.uint8), message, plan.queue, of_flow, plan.successors,
        adding_times(plan, nodes[:, 1], n_bytes), nodes[:, 1].astype(np.int32), plan.network.n_nodes, paths, rule,
    )  # fmt: skip


def paths_of(plan: FlowPlan, hows: Sequence[Spraying], rule: Rule, ranks: NDArray[np.int64]) -> Paths:
    """Find the paths of a plan's flows and of their answers.

    Parameters
    ----------
    plan, hows, rule, ranks
        Same as in :func:`work_of_plan`.

    Raises
    ------
    InputError
        If flows use several paths, or weights are out of range.
    """
    if (plan.routes.share != 1).any():
        raise InputError(
            f"transport window sends each flow over one path, and {plan.routing} uses several; a preset such as uec, "
            "or a balancing, sprays packets"
        )
    back = routes_back(plan)
    turns = turns_of(plan, next((how.transport for how in hows if how.on_path and how.transport != "window"), "window"))
    window = np.zeros(len(turns))
    for number, how in enumerate(hows):
        answer = how.header if how.ack_bytes is None else how.ack_bytes
        fits = np.ceil(2 * path_packets(plan, back, how.payload + how.header, answer))
        its = np.ceil(np.maximum(fits, how.ack_every or 1) * turns / turns.min(initial=1))
        window = np.where(np.equal(rule, number), its, window)
    # a flow that goes first has its next packet waiting when one leaves, or another would get every second turn
    turns = 2 * turns if ranks.any() else turns
    cap = np.array([job.rate_cap for job in plan.jobs])[plan.job_of_connection]
    return Paths(plan.routes, back, window, turns, cap)


def from_ports(
    plan: FlowPlan, hows: Sequence[Spraying], rule: NDArray[np.uint8]
) -> tuple[Ported, list[Spraying], NDArray[np.uint8]]:
    """Find the ports of a plan's sprayed messages; those inside machines keep to their paths, with a window.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    hows : sequence of Spraying
        How messages are sent.
    rule : uint8[n_flows]
        Which of `hows` each flow is sent by.

    Returns
    -------
    Ported, list of Spraying, uint8[n_flows]
        The plan from port to port, and how its messages are sent.
    """
    ported, found, numbers = find_ports(plan), list(hows), rule.copy()
    inside = ported.src < 0
    for number in np.unique(rule[inside]):
        how = hows[number]
        one = replace(over_path("window", framing=Framing(how.payload, how.header)), loss=how.loss, rto=how.rto)
        found += [] if one in found else [one]
        numbers[inside & (rule == number)] = found.index(one)
    return ported, found, numbers


def _first_links(ways: Ways, paths: Paths) -> tuple[Ints, Ints]:
    """Return the first link of each path and of the way back, in the kernels' order; 0 where a path has none."""
    place = np.empty(len(ways.links), np.int32)
    place[ways.links] = np.arange(len(ways.links))
    found = []
    for way in (paths.there, paths.back):
        first = np.zeros(len(way.first) - 1, np.int32)
        crosses = np.diff(way.first) > 0
        first[crosses] = place[way.link[way.first[:-1][crosses]]]
        found.append(first)
    return found[0], found[1]


def _hosts(plan: FlowPlan, ways: Ways, nodes: NDArray[np.integer], sprays: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the numbers of the hosts that a plan's flows go from and to.

    Raises
    ------
    InputError
        If the plan has what only messages over one path have.
    """
    number = np.full(plan.network.n_nodes, -1, np.int32)
    number[ways.hosts] = np.arange(len(ways.hosts))
    if (number[nodes] < 0).any():
        node = plan.network.nodes[int(nodes[number[nodes] < 0][0])]
        raise InputError(
            f"sprayed transports carry messages between hosts, and {node} takes part: an aggregating switch needs all "
            "packets of its tree; use the transport `window`, `dctcp` or `dcqcn` without --balancing"
        )
    _check_sprayed(plan, sprays)
    return number[nodes[:, 0]], number[nodes[:, 1]]


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
