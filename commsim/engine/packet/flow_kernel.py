"""Flows of messages: what a sender may send now, what its receiver has in order, and which message follows which."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .congestion_kernel import (
    adjust_window,
    collapse,
    cut_rate,
    least_timeout,
    measure_round_trip,
    note_losses,
    pace,
    raise_rate,
)
from .message_kernel import begin, deliver, free_successor, message_of, note_sent
from .packet_state import ACK, DATA, ECN_MARKED, FIRST, GAP, LAST, NEVER, RESENT, Links, Row
from .posting_kernel import free_packet, send, take_packet
from .traffic_state import ADDED, GO, RISE, TIMEOUT, Flows
from .transport import DCQCN, DCTCP
from .wheel_kernel import schedule

MAX_BACKOFF = 6


@njit_norefcount
def arm(links: Links, flows: Flows, f: int, kind: int, when: int) -> None:
    """Set a timer of a flow, unless it is set.

    Parameters
    ----------
    links, flows : Links, Flows
        All tables; changed in place.
    f : int
        Number of the flow.
    kind : int
        GO, TIMEOUT, RISE or ADDED.
    when : int, ps
        Time at which it fires.
    """
    flow = flows.flow[f]
    if not flow["pending"] & (1 << kind):
        flow["pending"] |= 1 << kind
        schedule(links.events, links.state["first_flow_timer"] + kind * len(flows.flow) + f, when)


@njit_norefcount
def go_on(links: Links, flows: Flows, f: int) -> None:
    """Send what its window, its rate and its turns allow: packets in the one queue at the host's link, its share."""
    flow, transport = flows.flow[f], flows.transport
    while flow["queued"] < flow["turns"]:
        seq = flow["resend"]
        if seq < 0:
            seq = flow["next"]
            outstanding = seq - flow["una"]
            if seq >= flow["limit"] or outstanding >= transport["max_window"]:
                return
            if outstanding - (flow["dup"] if flow["recovering"] else 0) >= flow["window"]:
                return
        if flow["free_at"] > links.state["now"]:
            arm(links, flows, f, GO, flow["free_at"])
            return
        _transmit(links, flows, f, seq)


@njit_norefcount
def on_left(links: Links, flows: Flows, p: int) -> int:
    """Note that a packet has left its host; return the flow, whose turn it may be again."""
    packet = links.packet[p]
    f = packet["worker"]
    flow = flows.flow[f]
    flow["queued"] -= 1
    if packet["number"] + 1 == flow["limit"] and not packet["flags"] & RESENT:
        _release(links, flows, note_sent(flows, f, links.state["now"]), 0)
        begin(flows, f, links.state["now"])
    return int(f)


@njit_norefcount
def _release(links: Links, flows: Flows, number: int, completed: int) -> None:
    """Tell the messages that waited for this one to be sent (0), or to be complete (1)."""
    for i in range(flows.first_successor[number], flows.first_successor[number + 1]):
        f = free_successor(flows, i, completed, links.state["now"])
        if f >= 0:
            arm(links, flows, f, GO, links.state["now"])


@njit_norefcount
def _deliver(links: Links, flows: Flows, f: int, receiver: Row) -> None:
    """Take a message whose data have all come."""
    number, now = flows.queue[receiver["message"]], links.state["now"]
    then = deliver(flows, receiver, number, now)
    if then == now:
        _complete(links, flows, receiver, number)
    elif then != NEVER:
        arm(links, flows, f, ADDED, then)


@njit_norefcount
def on_added(links: Links, flows: Flows, f: int) -> None:
    """Complete the message of a flow that has been added, and wait for the next one."""
    flow, receiver = flows.flow[f], flows.receiver[f]
    flow["pending"] &= ~np.uint8(1 << ADDED)
    links.state["events"] += 1
    _complete(links, flows, receiver, flows.queue[receiver["complete"]])
    if receiver["complete"] < receiver["message"]:
        arm(links, flows, f, ADDED, flows.message[flows.queue[receiver["complete"]]]["done"])


@njit_norefcount
def _complete(links: Links, flows: Flows, receiver: Row, number: int) -> None:
    links.state["n_unfinished"] -= 1
    receiver["complete"] += 1
    _release(links, flows, number, 1)


@njit_norefcount
def on_ack(links: Links, flows: Flows, p: int) -> int:
    """Take an acknowledgement; return the flow."""
    packet = links.packet[p]
    f = packet["worker"]
    flow, transport = flows.flow[f], flows.transport
    now, number, flags = links.state["now"], packet["number"], packet["flags"]
    took = now - packet["tag"]
    free_packet(links, p)
    newly = number - flow["una"]
    if newly > 0:
        flow["una"] = number
        flow["next"] = max(flow["next"], number)
        if flow["resend"] < number:
            flow["resend"] = -1
    if transport["rto"] > 0:
        measure_round_trip(flow, took)
        if newly > 0:
            flow["backoff"] = 0
            flow["deadline"] = now + least_timeout(flow, transport)
    if transport["kind"] == DCTCP:
        note_losses(flow, newly)
        adjust_window(flow, transport, newly, flags & ECN_MARKED != 0)
    elif transport["kind"] == DCQCN:
        if flags & GAP:
            flow["next"] = flow["una"]
        if flags & ECN_MARKED:
            cut_rate(flow, transport, now)
            arm(links, flows, f, RISE, flow["rise_at"])
    return int(f)


@njit_norefcount
def on_flow_timer(links: Links, flows: Flows, timer: int) -> int:
    """Let a timer fire; return the flow, or -1 when nothing may follow from it.

    Parameters
    ----------
    links, flows : Links, Flows
        All tables; changed in place.
    timer : int
        Number of the timer: flow + kind * n_flows.
    """
    n_flows = len(flows.flow)
    f, kind = timer % n_flows, timer // n_flows
    flow, transport = flows.flow[f], flows.transport
    flow["pending"] &= ~np.uint8(1 << kind)
    if kind == GO:
        begin(flows, f, links.state["now"])
        if flow["local"]:
            _finish_local(links, flows, f)
            return -1
        links.state["events"] += flow["queued"] == 0
        return int(f)
    if kind == TIMEOUT:
        return int(f) if _on_timeout(links, flows, f, flow, transport) else -1
    if flow["rate"] < flow["line"]:
        if links.state["now"] >= flow["rise_at"]:
            links.state["events"] += 1
            flow["by_time"] += 1
            raise_rate(flow, transport)
            flow["rise_at"] = links.state["now"] + transport["rise_time"]
        arm(links, flows, f, RISE, flow["rise_at"])
    return -1


@njit_norefcount
def _finish_local(links: Links, flows: Flows, f: int) -> None:
    """Deliver the messages that can begin, when both ends are one node."""
    flow = flows.flow[f]
    while flow["message"] < flow["end"]:
        if flows.message[flows.queue[flow["message"]]]["start"] < 0:
            break
        _release(links, flows, note_sent(flows, f, links.state["now"]), 0)
        _deliver(links, flows, f, flows.receiver[f])
        begin(flows, f, links.state["now"])


@njit_norefcount
def _transmit(links: Links, flows: Flows, f: int, seq: int) -> None:
    flow, transport = flows.flow[f], flows.transport
    p = take_packet(links)
    packet = links.packet[p]
    flags, size = transport["flags"], transport["packet_size"]
    if seq < flow["fresh"]:
        flags |= RESENT
        message = flows.message[message_of(flows, flow, seq)]
        last = seq + 1 == message["end"]
        size = message["last_size"] if last else transport["packet_size"]
        links.state["retransmissions"] += 1
    else:
        flow["fresh"] = seq + 1
        if seq == flow["first"]:
            flags |= FIRST
        last = seq + 1 == flow["limit"]
        if last:
            size = flow["last_size"]
    if last:
        flags |= LAST
    if flow["resend"] >= 0:
        flow["resend"] = -1
    else:
        flow["next"] = seq + 1
    packet["kind"], packet["flags"], packet["size"] = DATA, flags, size
    packet["number"], packet["tag"] = seq, links.state["now"]
    packet["slot"], packet["position"], packet["worker"] = -1, 0, f
    flow["queued"] += 1
    if transport["kind"] == DCQCN or flow["cap"] < flow["line"]:
        pace(flow, transport, links.state["now"], size)
    if transport["rto"] > 0:
        if flow["una"] == seq:
            flow["deadline"] = links.state["now"] + (least_timeout(flow, transport) << flow["backoff"])
        arm(links, flows, f, TIMEOUT, flow["deadline"])
    send(links, p, flow["stream"])


@njit_norefcount
def _on_timeout(links: Links, flows: Flows, f: int, flow: Row, transport: Row) -> bool:
    """Go back to what is not acknowledged; a timer that was put off in the meantime only sets itself again."""
    if flow["una"] == flow["fresh"]:
        return False
    if links.state["now"] < flow["deadline"]:
        arm(links, flows, f, TIMEOUT, flow["deadline"])
        return False
    links.state["events"] += 1
    links.state["timeouts"] += 1
    flow["next"] = flow["una"]
    flow["resend"] = -1
    flow["backoff"] = min(flow["backoff"] + 1, MAX_BACKOFF)
    if transport["kind"] == DCTCP:
        collapse(flow)
    flow["deadline"] = links.state["now"] + (least_timeout(flow, transport) << flow["backoff"])
    arm(links, flows, f, TIMEOUT, flow["deadline"])
    return True


@njit_norefcount
def on_data(links: Links, flows: Flows, p: int) -> None:
    """Take a data packet, and make it the acknowledgement that goes back when one is due."""
    packet = links.packet[p]
    receiver, transport = flows.receiver[packet["worker"]], flows.transport
    seq = packet["number"]
    flags = packet["flags"] & ECN_MARKED
    due, gap = True, False
    if seq == receiver["expected"]:
        due = _take(links, flows, packet["worker"], receiver, transport)
    elif seq > receiver["expected"]:
        links.state["out_of_order"] += 1
        if transport["keeps_early"]:
            _keep_early(links, flows, receiver, transport, seq)
        else:
            due = gap = not receiver["nacked"]
            receiver["nacked"] = True
    else:
        links.state["duplicates"] += 1
    if transport["kind"] == DCQCN:
        if flags and links.state["now"] >= receiver["quiet_until"]:
            receiver["quiet_until"] = links.state["now"] + transport["cnp_interval"]
            due = True
        else:
            flags = 0
        if gap:
            flags |= GAP
    if not due:
        free_packet(links, p)
        return
    receiver["since_ack"] = 0
    packet["kind"], packet["flags"], packet["size"] = ACK, flags, transport["ack_size"]
    packet["number"] = receiver["expected"]
    send(links, p, receiver["back"])


@njit_norefcount
def _take(links: Links, flows: Flows, f: int, receiver: Row, transport: Row) -> bool:
    """Take the packet that was expected, and those after it that came early; return whether to acknowledge now."""
    receiver["expected"] += 1
    receiver["nacked"] = False
    receiver["since_ack"] += 1
    while receiver["n_early"] > 0:
        seq = receiver["expected"]
        word, bit = _place(receiver, transport, seq)
        if flows.early[word] & bit == 0:
            break
        flows.early[word] ^= bit
        receiver["n_early"] -= 1
        receiver["expected"] += 1
    due = receiver["since_ack"] >= transport["ack_every"]
    while receiver["expected"] >= receiver["boundary"]:
        _deliver(links, flows, f, receiver)
        receiver["boundary"] = np.int64(1) << 62
        if receiver["message"] < receiver["end"]:
            receiver["boundary"] = flows.message[flows.queue[receiver["message"]]]["end"]
        due = True
    return bool(due)


@njit_norefcount
def _keep_early(links: Links, flows: Flows, receiver: Row, transport: Row, seq: int) -> None:
    word, bit = _place(receiver, transport, seq)
    if flows.early[word] & bit:
        links.state["duplicates"] += 1
    else:
        flows.early[word] |= bit
        receiver["n_early"] += 1


@njit_norefcount
def _place(receiver: Row, transport: Row, seq: int) -> tuple[int, np.uint64]:
    return receiver["early"] + (seq >> 6) % transport["n_words"], np.uint64(1) << np.uint64(seq & 63)
