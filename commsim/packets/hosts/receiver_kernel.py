"""A receiver: what it does with data, whole or trimmed, in whatever order it comes, and what it answers.

It acknowledges every so many bytes, and at once what is marked (but where notifications tell of marks) or asks for it,
with the first packet that it lacks and a bitmap of 64 others (selective acknowledgement). A trimmed packet is answered
with a NACK.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import ACK, ACK_NOW, CNP, MARKED, NACK, RCCC, RECEIVED, TRIMMED
from commsim.packets.event_rows import Row
from commsim.packets.links.port_kernel import answer
from commsim.packets.links.posting_kernel import take_packet
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports.credit_kernel import ask, pull
from commsim.packets.transports.hpcc_kernel import copy_notes

IN_BITMAP = 64


@njit_norefcount
def on_arrival(fabric: RunState, p: int, now: int) -> None:
    """Take a data packet, whole or trimmed, or a request for credit; answer it if an answer is due."""
    packet, state = fabric.packet[p], fabric.state
    f = packet["flow"]
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    credit = rules["transport"] == RCCC
    trimmed = packet["kind"] == TRIMMED
    host = fabric.host[flow["dst"]]
    place = flow["ring"] + (packet["number"] & flow["ring_mask"])
    old = packet["number"] < flow["expected"] or fabric.mark[place] & RECEIVED
    if not trimmed:
        host["n_got"] += credit
        host["n_marked"] += credit and packet["flags"] & MARKED != 0
        if rules["notifies"] and packet["flags"] & MARKED:
            _notify(fabric, p, now)
    if credit:
        ask(fabric, f, packet["amount"], now)
        if trimmed:
            pull(fabric, f, now)
    if trimmed and not old:
        _answer(fabric, p, NACK)
    elif old:
        state["duplicates"] += 0 if trimmed else 1
        _answer(fabric, p, ACK)
    else:
        _accept(fabric, p, now)


@njit_norefcount
def on_request(fabric: RunState, p: int, now: int) -> None:
    """Take a request: for credit, or to acknowledge at once what came, and each packet sent before it that still comes.

    Credit is asked for where the transport has it.
    """
    packet = fabric.packet[p]
    f = packet["flow"]
    if rules_for(fabric, f)["transport"] == RCCC:
        ask(fabric, f, packet["amount"], now)
        pull(fabric, f, now)
    else:
        fabric.flow[f]["answer_to"] = packet["number"]
        _answer(fabric, p, ACK)


@njit_norefcount
def _accept(fabric: RunState, p: int, now: int) -> None:
    """Take a packet that is new."""
    packet = fabric.packet[p]
    flow, rules = fabric.flow[packet["flow"]], rules_for(fabric, packet["flow"])
    number, size = packet["number"], packet["size"]
    if rules["goes_back"]:
        if number != flow["expected"]:  # thrown away; the first one of a gap is answered, as by a NAK
            fabric.state["out_of_order"] += 1
            flow["n_early"] += 1
            if flow["n_early"] == 1:
                _answer(fabric, p, ACK)
            return
        flow["n_early"] = 0
    counts = rules["counts_packets"]
    due = packet["flags"] & ACK_NOW != 0
    if not rules["notifies"]:  # a NIC of RoCE tells of marks by notifications alone
        due |= (flow["received"] == 0 and not counts) or packet["flags"] & MARKED != 0
    due |= number < flow["answer_to"]
    flow["owes"] |= packet["flags"] & ACK_NOW != 0
    flow["received"] += size
    flow["unanswered"] += rules["mtu"] if counts else size
    flow["latest"] = max(flow["latest"], number)
    fabric.mark[flow["ring"] + (number & flow["ring_mask"])] |= np.uint8(RECEIVED)
    if number == flow["expected"]:
        flow["expected"] += 1
        while (
            flow["expected"] <= flow["latest"]
            and fabric.mark[flow["ring"] + (flow["expected"] & flow["ring_mask"])] & RECEIVED
        ):
            flow["expected"] += 1
            flow["n_early"] -= 1
        if flow["n_early"] == 0 and flow["owes"]:
            due = True
            flow["owes"] = False
    else:
        flow["n_early"] += 1
        fabric.state["out_of_order"] += 1
        due |= rules["on_path"] and rules["notifies"]  # a gap in order is a loss: RoCE's NAK
    if flow["expected"] == flow["n_packets"]:
        flow["received_at"] = now
    if due or flow["unanswered"] >= rules["ack_every"]:
        _answer(fabric, p, ACK)


@njit_norefcount
def _notify(fabric: RunState, p: int, now: int) -> None:
    """Notify a sender of a mark: at once, or when the time since the last notification is over.

    What must wait goes at once and says how long; its sender lets it count no sooner.
    """
    packet = fabric.packet[p]
    flow, rules = fabric.flow[packet["flow"]], rules_for(fabric, packet["flow"])
    if flow["notified_at"] > now:
        return
    wait = 0
    if flow["notified_at"] >= 0:
        wait = max(0, flow["notified_at"] + rules["notify_every"] - now)
    flow["notified_at"] = now + wait
    q = take_packet(fabric)
    notice = fabric.packet[q]
    notice["kind"], notice["flow"], notice["number"], notice["flags"] = CNP, packet["flow"], packet["number"], 0
    notice["size"], notice["sent"], notice["amount"] = rules["answer"], now, wait
    fabric.state["n_notified"] += 1
    answer(fabric, q, packet["entropy"])


@njit_norefcount
def _answer(fabric: RunState, p: int, kind: int) -> None:
    """Queue an answer to a packet at the receiver's own link."""
    packet, state = fabric.packet, fabric.state
    flow = fabric.flow[packet[p]["flow"]]
    q = take_packet(fabric)
    packet[q]["kind"] = kind
    packet[q]["flags"] = packet[p]["flags"]
    packet[q]["flow"], packet[q]["number"] = packet[p]["flow"], packet[p]["number"]
    packet[q]["sent"] = packet[p]["sent"]
    packet[q]["size"] = rules_for(fabric, packet[p]["flow"])["answer"]
    packet[q]["amount"] = flow["received"]
    if kind == ACK:
        packet[q]["expected"] = flow["expected"]
        base = base_of(packet[q])
        bitmap = np.uint64(0)
        for i in range(max(0, flow["expected"] - base), min(IN_BITMAP, flow["latest"] - base + 1)):
            if fabric.mark[flow["ring"] + ((base + i) & flow["ring_mask"])] & RECEIVED:
                bitmap |= np.uint64(1) << np.uint64(i)
        packet[q]["bitmap"] = bitmap
        copy_notes(fabric, p, q)
        flow["unanswered"] = 0
        state["n_acks"] += 1
    else:
        state["n_nacks"] += 1
    answer(fabric, q, packet[p]["entropy"])


@njit_norefcount
def base_of(packet: Row) -> int:
    """Return the number of the first packet that an acknowledgement's bitmap tells of."""
    if packet["flags"] & (MARKED | ACK_NOW):
        return int(packet["number"])
    return int(max(packet["number"] - IN_BITMAP + 1, packet["expected"] + 1))
