"""From a plan of flows to the tables of the packet kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import Records
from commsim.core.placement import joined
from commsim.core.schedule import REDUCE
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.aggregated import traffic_state as m
from commsim.packets.event_rows import LONGEST, PS, zeros_on_lines
from commsim.routing.pinned import find_connection_routes, turned_round
from commsim.routing.routing import Routes

Floats = NDArray[np.float64]

PIECE = 1 << 18  # messages that are cut into packets at once
MAX_RATIO = 1024  # of weights: every packet waits for as many of the heaviest flow


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
    return find_connection_routes(
        plan.network, back, plan.ends[:, ::-1], plan.channel, routing=plan.routing, seed=plan.seed,
        hashed_channel=plan.hashed_channel,
    )  # fmt: skip


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


def message_table(plan: FlowPlan, n_bytes: Floats, payload: NDArray[np.int64], header: NDArray[np.int64]) -> Records:
    """Lay out the messages of a plan, of so many bytes each, cut into packets with each flow's payload and header.

    Returns
    -------
    MESSAGE_ROW[n_transfers]

    Raises
    ------
    InputError
        If a flow has too many packets.
    """
    message: Records = zeros_on_lines(len(n_bytes), m.MESSAGE_ROW)
    message["flow"], message["waiting"] = plan.connection_of, plan.waiting
    n_packets = np.empty(len(n_bytes), np.int64)
    for at in range(0, len(n_bytes), PIECE):
        piece = slice(at, at + PIECE)
        of, whole = plan.connection_of[piece], np.ceil(n_bytes[piece] * (1 - 1e-12)).astype(np.int64)
        n_packets[piece] = np.maximum(1, -(-whole // payload[of]))
        message["last_size"][piece] = whole - (n_packets[piece] - 1) * payload[of] + header[of]
    end = np.cumsum(n_packets[plan.queue])
    count = np.bincount(plan.connection_of, minlength=len(plan.ends))
    before = np.concatenate((np.zeros(1, np.int64), end))[np.cumsum(count) - count]
    end -= np.repeat(before, count)
    if end.max(initial=0) > np.iinfo(np.int32).max:
        raise InputError(f"a flow of {end.max()} packets has more than 2^31 - 1; simulate a smaller size")
    message["end"][plan.queue] = end
    return message
