"""From a plan of flows to the tables of the packet kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.placement import joined
from commsim.core.schedule import REDUCE
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.message_costs import refuse_curves
from commsim.routing.pinned import find_connection_routes, turned_round
from commsim.routing.routing import Routes

from . import packet_state as s
from . import traffic_state as m
from .packet_run import check_room, link_tables
from .packet_state import ENDLESS, LONGEST, PS, zeros_on_lines
from .transport import N_TIMERS, Fabric, Transport, Window

Floats = NDArray[np.float64]

MAX_RATIO = 1024  # of weights: every packet waits for as many of the heaviest flow


def message_rows(
    plan: FlowPlan,
    n_bytes: Floats,
    starts: Floats,
    framing: Framing,
    transport: Transport,
    fabric: Fabric,
    ranks: NDArray[np.int64],
) -> dict[str, Any]:
    """Lay out what :func:`commsim.engine.packet.packet_run.lay_out` takes, but for the seed.

    Parameters
    ----------
    plan : FlowPlan
        What runs where; over one path per wire.
    n_bytes : float64[n_transfers], bytes
        Payload of each transfer; rounded up to whole bytes.
    starts : float64[n_participants], s
        Time at which each participant enters.
    framing : Framing
        Packets: whole numbers of bytes.
    transport, fabric : Transport, Fabric
        How packets are sent, and what they meet.
    ranks : int64[n]
        Ranks of the priorities of all jobs of the run, the plan's first; all 0 where there is one priority.

    Raises
    ------
    InputError
        If the plan needs what this engine does not have, or packets do not fit.
    """
    payload, header = _packet(framing)
    link, buffer = link_tables(plan.network, fabric)
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    _check(plan, transport, fabric, link, payload + header)
    back = routes_back(plan)
    transport_row = transport.row()
    transport_row["packet_size"] = payload + header
    bdp = path_packets(plan, back, payload + header, int(transport_row["ack_size"][0]))
    window, transport_row["max_window"] = transport.windows(bdp, payload)
    turns = turns_of(plan, "window" if isinstance(transport, Window) else "")
    window = np.ceil(window * turns / turns.min(initial=1))
    transport_row["n_words"] = int(transport_row["max_window"][0]) // 64 + 2 if transport_row["keeps_early"][0] else 0
    message = message_table(plan, n_bytes, payload, header)
    flow, receiver = _flows(plan, message, starts, window, transport_row)
    # a flow that goes first has its next packet waiting when one leaves, or another would get every second turn
    flow["turns"] = 2 * turns if ranks.any() else turns
    adding = adding_times(plan, nodes[:, 1], n_bytes)
    receiver["node"] = nodes[:, 1]
    flow["cap"] = np.array([job.rate_cap for job in plan.jobs])[plan.job_of_connection] / PS
    n_flows = len(flow)
    return {
        "n_timers": n_flows * (m.ADDED + 1 if adding.size else int(N_TIMERS[transport_row["kind"][0]])),
        "n_unfinished": len(message),
        "hops": np.concatenate((plan.routes.link, back.link)),
        "link": link,
        "buffer": buffer,
        "stream": _streams(plan, back, ranks),
        "transport": transport_row,
        "flow": flow,
        "receiver": receiver,
        "message": message,
        "class_weight": fabric.class_weights,
        "queue": plan.queue,
        "first_successor": plan.successors[0],
        "successor": plan.successors[1],
        "adding": adding,
        "adder_free": np.zeros(plan.network.n_nodes if adding.size else 0, np.int64),
        "early": np.zeros(max(1, n_flows * int(transport_row["n_words"][0])), np.uint64),
    }


def _packet(framing: Framing) -> tuple[int, int]:
    if not (
        1 <= framing.payload <= 2**20 and framing.header <= 2**20 and framing.payload % 1 == framing.header % 1 == 0
    ):
        raise InputError(
            "the packet engine needs packets of whole bytes, at most 1 MiB of payload and of header, "
            f"got {framing.payload} and {framing.header}"
        )
    return int(framing.payload), int(framing.header)


def _check(plan: FlowPlan, transport: Transport, fabric: Fabric, link: NDArray[np.void], size: int) -> None:
    network = plan.network
    refuse_curves(network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    if (plan.routes.share != 1).any():
        raise InputError(
            f"transport window sends each flow over one path, and {plan.routing} uses several; a preset such as uec, "
            "or a balancing, sprays packets"
        )
    check_room(network, fabric, link, size)
    if isinstance(transport, Window):
        if (link["loss"] > 0).any() or (link["to_bad"] > 0).any():
            raise InputError("the transport `window` never repeats a packet and needs links without loss; try dctcp")
        finite = (link["buffer"] < ENDLESS).any() or np.isfinite(fabric.shared_buffer)
        if finite and not fabric.pause_at:
            raise InputError("the transport `window` needs infinite buffers, or pauses (PFC) so that none overflows")


def adding_times(plan: FlowPlan, node: NDArray[np.int32], n_bytes: Floats) -> NDArray[np.int64]:
    """Time that each message takes to be added where it arrives, ps; empty where none takes any."""
    gamma = plan.network.gamma[node]
    if not gamma.any():
        return np.empty(0, np.int64)
    took = np.where(plan.op == REDUCE, gamma[plan.connection_of] * n_bytes, 0.0)
    if took.max(initial=0.0) > LONGEST:
        raise InputError(f"a message must be added in less than {LONGEST:g} s, got {took.max():g} s")
    return np.rint(took * PS).astype(np.int64)


def routes_back(plan: FlowPlan) -> Routes:
    """Find the paths of acknowledgements."""
    back = turned_round(plan.network, joined([job.placement for job in plan.jobs]))
    hashed = plan.hashed_channel
    return find_connection_routes(
        plan.network,
        back,
        plan.ends[:, ::-1],
        plan.channel,
        routing=plan.routing,
        seed=plan.seed,
        hashed_channel=hashed,
    )


def turns_of(plan: FlowPlan, transport: str) -> NDArray[np.int64]:
    """Packets that each wire may have in its host's queue, in the ratio of the weights.

    A queue in order of arrival is shared in the ratio of what each flow has there: at the host its turns, in switches
    its window. Ratios that are no whole numbers are met as closely as up to 16 turns of the lightest flow allow.
    """
    weight = plan.flow["weight"][: len(plan.ends)]
    if (weight == weight[:1]).all():
        return np.ones(len(weight), np.int64)
    if transport != "window":
        raise InputError(
            "this transport gives messages what it finds, and the schedule's channels have weights; "
            "use the transport `window`, or the flow engine"
        )
    ratio = weight / weight.min()
    if ratio.max() > MAX_RATIO:
        raise InputError(f"the packet engine takes weights in a ratio of at most {MAX_RATIO}, got {ratio.max():g}")
    error = [np.abs(np.rint(ratio * n) / (ratio * n) - 1).max() for n in range(1, 17)]
    return np.asarray(np.rint(ratio * (1 + int(np.argmin(error)))), np.int64)


def path_packets(plan: FlowPlan, back: Routes, size: int, ack_size: int) -> Floats:
    """Bandwidth-delay product of each wire's own empty path, in packets, stored and forwarded at every hop."""
    n = len(plan.ends)
    of_wire = np.repeat(np.arange(n), np.diff(plan.routes.first))
    of_back = np.repeat(np.arange(n), np.diff(back.first))
    bandwidth = plan.network.bandwidth
    slowest = np.full(n, np.inf)
    np.minimum.at(slowest, of_wire, bandwidth[plan.routes.link])
    took = plan.routes.latency + back.latency
    took = took + np.bincount(of_wire, size / bandwidth[plan.routes.link], minlength=n)
    took = took + np.bincount(of_back, ack_size / bandwidth[back.link], minlength=n)
    return took * np.where(np.isfinite(slowest), slowest, 0.0) / size


def message_table(plan: FlowPlan, n_bytes: Floats, payload: int, header: int) -> NDArray[np.void]:
    """Lay out the messages of a plan, of so many bytes each, cut into packets.

    Returns
    -------
    MESSAGE_ROW[n_transfers]

    Raises
    ------
    InputError
        If a flow has too many packets.
    """
    whole = np.ceil(n_bytes * (1 - 1e-12)).astype(np.int64)
    n_packets = np.maximum(1, -(-whole // payload))
    message: NDArray[np.void] = zeros_on_lines(len(whole), m.MESSAGE_ROW)
    message["start"] = message["sent"] = message["done"] = -1
    message["flow"], message["waiting"] = plan.connection_of, plan.waiting
    message["last_size"] = whole - (n_packets - 1) * payload + header
    end = np.cumsum(n_packets[plan.queue])
    count = np.bincount(plan.connection_of, minlength=len(plan.ends))
    before = np.concatenate((np.zeros(1, np.int64), end))[np.cumsum(count) - count]
    end -= np.repeat(before, count)
    if end.max(initial=0) > np.iinfo(np.int32).max:
        raise InputError(f"a flow of {end.max()} packets has more than 2^31 - 1; simulate a smaller size")
    message["end"][plan.queue] = end
    message["first"] = message["end"] - n_packets
    return message


def _flows(
    plan: FlowPlan, message: NDArray[np.void], starts: Floats, window: Floats, transport_row: NDArray[np.void]
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    n = len(plan.ends)
    if (starts > LONGEST).any():
        raise InputError(f"a start must be below {LONGEST:g} s, got {starts.max()} s")
    flow, receiver = np.zeros(n, m.FLOW_ROW), np.zeros(n, m.RECEIVER_ROW)
    count = np.bincount(plan.connection_of, minlength=n)
    end = np.cumsum(count)
    begin = end - count
    for table in (flow, receiver):
        table["message"], table["end"] = begin, end
    receiver["complete"] = begin
    flow["resend"], flow["stream"], flow["window"] = -1, np.arange(n), window
    flow["ready"] = np.rint(starts * PS)[plan.ends].max(axis=1, initial=0)
    flow["local"] = np.diff(plan.routes.first) == 0
    flow["threshold"], flow["alpha"], flow["alpha_at"] = np.inf, 1.0, -1
    crosses = ~flow["local"]
    flow["line"][crosses] = plan.network.bandwidth[plan.routes.link[plan.routes.first[:-1][crosses]]] / PS
    flow["rate"] = flow["target"] = flow["line"]
    receiver["boundary"] = message["end"][plan.queue[begin]]
    receiver["back"], receiver["early"] = n + np.arange(n), np.arange(n) * transport_row["n_words"][0]
    return flow, receiver


def _streams(plan: FlowPlan, back: Routes, ranks: NDArray[np.int64]) -> NDArray[np.void]:
    there = plan.routes
    n = len(there.first) - 1
    stream = np.zeros(2 * n, s.STREAM_ROW)
    first = np.concatenate((there.first[:-1], there.first[-1] + back.first))
    stream["begin"], stream["end"] = first[:-1], first[1:]
    stream["target"] = np.repeat([s.TO_RECEIVER, s.TO_SENDER], n)
    stream["owner"] = np.tile(np.arange(n), 2)
    stream["priority"] = np.tile(ranks[plan.job_of_connection], 2)
    return stream
