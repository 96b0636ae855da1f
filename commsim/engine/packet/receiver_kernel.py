"""Receivers of messages: what came in order, what came early, and what the sender is told."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .link_kernel import free_packet, send
from .packet_state import ACK, ECN_MARKED, GAP, Links, Row
from .sender_kernel import release
from .traffic_state import Flows
from .transport import DCQCN


@njit_norefcount
def on_data(links: Links, flows: Flows, p: int) -> None:
    """Take a data packet, and make it the acknowledgement that goes back when one is due."""
    packet = links.packet[p]
    receiver, transport = flows.receiver[packet["worker"]], flows.transport
    seq = packet["number"]
    flags = packet["flags"] & ECN_MARKED
    due, gap = True, False
    if seq == receiver["expected"]:
        due = _take(links, flows, receiver, transport)
    elif seq > receiver["expected"]:
        links.state["out_of_order"] += 1
        if transport["keeps"]:
            _keep(links, flows, receiver, transport, seq)
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
def _take(links: Links, flows: Flows, receiver: Row, transport: Row) -> bool:
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
        _complete(links, flows, receiver)
        due = True
    return bool(due)


@njit_norefcount
def _complete(links: Links, flows: Flows, receiver: Row) -> None:
    number = flows.queue[receiver["message"]]
    flows.message[number]["done"] = links.state["now"]
    links.state["n_unfinished"] -= 1
    receiver["message"] += 1
    receiver["boundary"] = np.int64(1) << 62
    if receiver["message"] < receiver["end"]:
        receiver["boundary"] = flows.message[flows.queue[receiver["message"]]]["end"]
    release(links, flows, number, 1)


@njit_norefcount
def _keep(links: Links, flows: Flows, receiver: Row, transport: Row, seq: int) -> None:
    word, bit = _place(receiver, transport, seq)
    if flows.early[word] & bit:
        links.state["duplicates"] += 1
    else:
        flows.early[word] |= bit
        receiver["n_early"] += 1


@njit_norefcount
def _place(receiver: Row, transport: Row, seq: int) -> tuple[int, np.uint64]:
    return receiver["early"] + (seq >> 6) % transport["n_words"], np.uint64(1) << np.uint64(seq & 63)
