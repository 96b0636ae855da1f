"""Receivers of messages: what came in order, what came early, and what the sender is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .link_kernel import free_packet, send
from .message_state import DCQCN
from .packet_state import ACK, DUPLICATES, ECN_MARKED, GAP, N_UNFINISHED, NOW, OUT_OF_ORDER
from .sender_kernel import release


@njit_norefcount
def on_data(t: Any, p: int) -> None:
    """Take a data packet, and make it the acknowledgement that goes back when one is due."""
    packet = t.packet[p]
    receiver, way = t.receiver[packet["worker"]], t.transport[0]
    seq = packet["number"]
    flags = packet["flags"] & ECN_MARKED
    due, gap = True, False
    if seq == receiver["expected"]:
        due = _take(t, receiver, way)
    elif seq > receiver["expected"]:
        t.clock[OUT_OF_ORDER] += 1
        if way["keeps"]:
            _keep(t, receiver, way, seq)
        else:
            due = gap = not receiver["nacked"]
            receiver["nacked"] = True
    else:
        t.clock[DUPLICATES] += 1
    if way["kind"] == DCQCN:
        if flags and t.clock[NOW] >= receiver["quiet_until"]:
            receiver["quiet_until"] = t.clock[NOW] + way["cnp_interval"]
            due = True
        else:
            flags = 0
        if gap:
            flags |= GAP
    if not due:
        free_packet(t, p)
        return
    receiver["since_ack"] = 0
    packet["kind"], packet["flags"], packet["size"] = ACK, flags, way["ack_size"]
    packet["number"] = receiver["expected"]
    send(t, p, receiver["back"])


@njit_norefcount
def _take(t: Any, receiver: Any, way: Any) -> bool:
    """Take the packet that was expected, and those after it that came early; return whether to acknowledge now."""
    receiver["expected"] += 1
    receiver["nacked"] = False
    receiver["since_ack"] += 1
    while receiver["n_early"] > 0:
        seq = receiver["expected"]
        word, bit = _place(receiver, way, seq)
        if t.early[word] & bit == 0:
            break
        t.early[word] ^= bit
        receiver["n_early"] -= 1
        receiver["expected"] += 1
    due = receiver["since_ack"] >= way["ack_every"]
    while receiver["expected"] >= receiver["boundary"]:
        _complete(t, receiver)
        due = True
    return bool(due)


@njit_norefcount
def _complete(t: Any, receiver: Any) -> None:
    number = t.queue[receiver["message"]]
    t.message[number]["done"] = t.clock[NOW]
    t.clock[N_UNFINISHED] -= 1
    receiver["message"] += 1
    receiver["boundary"] = np.int64(1) << 62
    if receiver["message"] < receiver["end"]:
        receiver["boundary"] = t.message[t.queue[receiver["message"]]]["end"]
    release(t, number, 1)


@njit_norefcount
def _keep(t: Any, receiver: Any, way: Any, seq: int) -> None:
    word, bit = _place(receiver, way, seq)
    if t.early[word] & bit:
        t.clock[DUPLICATES] += 1
    else:
        t.early[word] |= bit
        receiver["n_early"] += 1


@njit_norefcount
def _place(receiver: Any, way: Any, seq: int) -> Any:
    return receiver["early"] + (seq >> 6) % way["n_words"], np.uint64(1) << np.uint64(seq & 63)
