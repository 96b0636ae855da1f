"""Senders of messages: what may go now, what acknowledgements and timers do, and which message follows which."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .link_kernel import free_packet, send, take_packet
from .message_state import DCQCN, DCTCP, GO, RISE, TIMEOUT
from .packet_state import (
    DATA,
    ECN_MARKED,
    FIRST,
    GAP,
    N_EVENTS,
    N_LINKS,
    N_TIMEOUTS,
    N_UNFINISHED,
    NOW,
    RESENT,
    RETRANSMITTED,
)
from .rate_kernel import cut_rate, pace, raise_rate
from .wheel_kernel import schedule
from .window_kernel import adjust_window, collapse, note_losses

MAX_BACKOFF = 6


@njit_norefcount
def arm(t: Any, f: int, kind: int, when: int) -> None:
    """Set a timer of a flow, unless it is set."""
    flow = t.flow[f]
    if not flow["pending"] & (1 << kind):
        flow["pending"] |= 1 << kind
        schedule(t, 3 * t.clock[N_LINKS] + len(t.worker) + kind * len(t.flow) + f, when)


@njit_norefcount
def go_on(t: Any, f: int) -> None:
    """Send the next packet of a flow if its window, its rate and its turn at the host's link allow it."""
    flow = t.flow[f]
    if flow["queued"]:
        return
    way = t.transport[0]
    seq = flow["resend"]
    if seq < 0:
        seq = flow["next"]
        outstanding = seq - flow["una"]
        if seq >= flow["limit"] or outstanding >= way["max_window"]:
            return
        if outstanding - (flow["dup"] if flow["recovering"] else 0) >= flow["window"]:
            return
    if flow["free_at"] > t.clock[NOW]:
        arm(t, f, GO, flow["free_at"])
        return
    _transmit(t, f, seq)


@njit_norefcount
def on_left(t: Any, p: int) -> int:
    """Note that a packet has left its host; return the flow, whose turn it may be again."""
    packet = t.packet[p]
    f = packet["worker"]
    flow = t.flow[f]
    flow["queued"] = False
    if packet["number"] + 1 == flow["limit"] and not packet["flags"] & RESENT:
        number = t.queue[flow["message"]]
        t.message[number]["sent"] = t.clock[NOW]
        flow["message"] += 1
        release(t, number, 0)
        _begin(t, f)
    return int(f)


@njit_norefcount
def on_ack(t: Any, p: int) -> int:
    """Take an acknowledgement; return the flow."""
    packet = t.packet[p]
    f = packet["worker"]
    flow, way = t.flow[f], t.transport[0]
    now, number, flags = t.clock[NOW], packet["number"], packet["flags"]
    took = now - np.int64(packet["bits"])
    free_packet(t, p)
    newly = number - flow["una"]
    if newly > 0:
        flow["una"] = number
        flow["next"] = max(flow["next"], number)
        if flow["resend"] < number:
            flow["resend"] = -1
    if way["rto"] > 0:
        _measure(flow, took)
        if newly > 0:
            flow["backoff"] = 0
            flow["deadline"] = now + _patience(flow, way)
    if way["kind"] == DCTCP:
        note_losses(flow, newly)
        adjust_window(flow, way, newly, flags & ECN_MARKED != 0)
    elif way["kind"] == DCQCN:
        if flags & GAP:
            flow["next"] = flow["una"]
        if flags & ECN_MARKED:
            cut_rate(flow, way, now)
            arm(t, f, RISE, flow["rise_at"])
    return int(f)


@njit_norefcount
def on_flow_timer(t: Any, timer: int) -> int:
    """Let a timer fire; return the flow, or -1 when nothing may follow from it."""
    n_flows = len(t.flow)
    f, kind = timer % n_flows, timer // n_flows
    flow, way = t.flow[f], t.transport[0]
    flow["pending"] &= ~np.uint8(1 << kind)
    if kind == GO:
        _begin(t, f)
        if flow["local"]:
            _finish_local(t, f)
            return -1
        t.clock[N_EVENTS] += not flow["queued"]
        return int(f)
    if kind == TIMEOUT:
        return int(f) if _on_timeout(t, f, flow, way) else -1
    if flow["rate"] < flow["line"]:
        if t.clock[NOW] >= flow["rise_at"]:
            t.clock[N_EVENTS] += 1
            flow["by_time"] += 1
            raise_rate(flow, way)
            flow["rise_at"] = t.clock[NOW] + way["rise_time"]
        arm(t, f, RISE, flow["rise_at"])
    return -1


@njit_norefcount
def release(t: Any, number: int, completed: int) -> None:
    """Tell the messages that waited for this one to be sent, or to be complete."""
    for i in range(t.first[number], t.first[number + 1]):
        code = t.successor[i]
        if code & 1 == completed:
            message = t.message[code >> 1]
            message["waiting"] -= 1
            if message["waiting"] == 0 and _begin(t, message["flow"]):
                arm(t, message["flow"], GO, t.clock[NOW])


@njit_norefcount
def _begin(t: Any, f: int) -> bool:
    """Let the next message of a flow start, when nothing it waits for is left; return whether it did."""
    flow = t.flow[f]
    if flow["message"] == flow["end"] or t.clock[NOW] < flow["ready"]:
        return False
    message = t.message[t.queue[flow["message"]]]
    if message["start"] >= 0 or message["waiting"] > 0:
        return False
    message["start"] = t.clock[NOW]
    flow["first"], flow["limit"] = message["first"], message["end"]
    flow["last_size"] = message["last_size"]
    return True


@njit_norefcount
def _finish_local(t: Any, f: int) -> None:
    """Deliver the messages that can begin, when both ends are one node."""
    flow = t.flow[f]
    while flow["message"] < flow["end"]:
        number = t.queue[flow["message"]]
        message = t.message[number]
        if message["start"] < 0:
            break
        message["sent"] = message["done"] = t.clock[NOW]
        t.clock[N_UNFINISHED] -= 1
        flow["message"] += 1
        for completed in range(2):
            release(t, number, completed)
        _begin(t, f)


@njit_norefcount
def _transmit(t: Any, f: int, seq: int) -> None:
    flow, way = t.flow[f], t.transport[0]
    p = take_packet(t)
    packet = t.packet[p]
    flags, size = way["flags"], way["packet_size"]
    if seq < flow["fresh"]:
        flags |= RESENT
        size = _size(t, flow, way, seq)
        t.clock[RETRANSMITTED] += 1
    else:
        flow["fresh"] = seq + 1
        if seq == flow["first"]:
            flags |= FIRST
        if seq + 1 == flow["limit"]:
            size = flow["last_size"]
    if flow["resend"] >= 0:
        flow["resend"] = -1
    else:
        flow["next"] = seq + 1
    packet["kind"], packet["flags"], packet["size"] = DATA, flags, size
    packet["number"], packet["bits"] = seq, np.uint64(t.clock[NOW])
    packet["slot"], packet["position"], packet["worker"] = -1, 0, f
    flow["queued"] = True
    if way["kind"] == DCQCN:
        pace(flow, way, t.clock[NOW], size)
    if way["rto"] > 0:
        if flow["una"] == seq:
            flow["deadline"] = t.clock[NOW] + (_patience(flow, way) << flow["backoff"])
        arm(t, f, TIMEOUT, flow["deadline"])
    send(t, p, flow["stream"])


@njit_norefcount
def _size(t: Any, flow: Any, way: Any, seq: int) -> int:
    """Size on the wire of a packet of the message that has begun, or of one before it."""
    place = min(flow["message"], flow["end"] - 1)
    while seq < t.message[t.queue[place]]["first"]:
        place -= 1
    message = t.message[t.queue[place]]
    return int(message["last_size"] if seq + 1 == message["end"] else way["packet_size"])


@njit_norefcount
def _on_timeout(t: Any, f: int, flow: Any, way: Any) -> bool:
    """Go back to what is not acknowledged; a timer that was put off in the meantime only sets itself again."""
    if flow["una"] == flow["fresh"]:
        return False
    if t.clock[NOW] < flow["deadline"]:
        arm(t, f, TIMEOUT, flow["deadline"])
        return False
    t.clock[N_EVENTS] += 1
    t.clock[N_TIMEOUTS] += 1
    flow["next"] = flow["una"]
    flow["resend"] = -1
    flow["backoff"] = min(flow["backoff"] + 1, MAX_BACKOFF)
    if way["kind"] == DCTCP:
        collapse(flow)
    flow["deadline"] = t.clock[NOW] + (_patience(flow, way) << flow["backoff"])
    arm(t, f, TIMEOUT, flow["deadline"])
    return True


@njit_norefcount
def _measure(flow: Any, took: int) -> None:
    """Follow the round trip and its deviation (RFC 6298)."""
    if flow["round_trip"] == 0:
        flow["round_trip"], flow["deviation"] = took, took // 2
    else:
        flow["deviation"] += (abs(flow["round_trip"] - took) - flow["deviation"]) // 4
        flow["round_trip"] += (took - flow["round_trip"]) // 8


@njit_norefcount
def _patience(flow: Any, way: Any) -> int:
    return int(max(way["rto"], flow["round_trip"] + 4 * flow["deviation"]))
