"""A sender: when it may send, what it sends next, and what it learns from answers and from their absence."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets import codes
from commsim.packets.event_rows import NEVER
from commsim.packets.hosts.packet_sizes_kernel import ends_message, size_of
from commsim.packets.hosts.receiver_kernel import base_of
from commsim.packets.hosts.resend_kernel import (
    CLOCK,
    NS,
    find_lost,
    forget_resend,
    give_back,
    go_back,
    on_round_trip,
    on_timeout,
    patience,
    resend,
)
from commsim.packets.links.class_kernel import queue_in_order
from commsim.packets.links.port_kernel import follow, go_out
from commsim.packets.links.posting_kernel import take_packet
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports.control_kernel import on_news, on_notified, pace
from commsim.packets.transports.credit_kernel import wanted_credit
from commsim.packets.transports.entropy_kernel import FOR_LOSS, FOR_MARK, FOR_TRIM, learn, next_entropy
from commsim.packets.transports.nscc_kernel import measure

UNSENT = -1  # of a request, whose answer tells nothing of how long data take


@njit_norefcount
def may_send(fabric: RunState, f: int) -> bool:
    """Tell whether a message has something to send, and the window or the credit to send it."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    number = flow["first_resend"]
    if flow["n_resend"] == 0:
        number = flow["highest"]
        # the receiver's memory of what came early is as long as the ring
        if number >= flow["limit"] or number > flow["acknowledged"] + flow["ring_mask"]:
            return False
    if rules["transport"] == codes.RCCC:
        return bool(flow["credit"] > 0)
    if rules["counts_packets"]:
        return bool((number - flow["acknowledged"]) * rules["mtu"] < flow["window"])
    # a window below one packet is a matter of the rate
    return bool(flow["in_flight"] + size_of(fabric, f, number) <= max(flow["window"], float(rules["mtu"])))


@njit_norefcount
def arm(fabric: RunState, f: int, kind: int, when: int) -> None:
    """Set a timer of a flow (GO, TIMEOUT or ADDED), unless it is set."""
    flow = fabric.flow[f]
    if not flow["pending"] & (1 << kind):
        flow["pending"] |= 1 << kind
        schedule(fabric.events, fabric.state["first_timer"] + kind * len(fabric.flow) + f, when)


@njit_norefcount
def get_ready(fabric: RunState, f: int) -> None:
    """Let a flow that may send wait for its turns in the queue of its host's link.

    What waits is a packet that is made when its turn comes: then it is known what is best sent.
    """
    flow = fabric.flow[f]
    if not may_send(fabric, f):
        return
    while flow["n_ready"] < flow["turns"]:
        flow["n_ready"] += 1
        fabric.host[flow["src"]]["n_ready"] += 1
        p = take_packet(fabric)
        packet = fabric.packet[p]
        packet["kind"], packet["flow"], packet["number"], packet["came_over"] = codes.DATA, f, -1, -1
        packet["size"] = rules_for(fabric, f)["mtu"]
        queue_in_order(fabric, flow["src"], p)


@njit_norefcount
def make_packet(fabric: RunState, f: int, p: int, now: int) -> None:
    """Make the next packet of a flow that may send: the first that is to be sent again, or a new one."""
    flow, rules, state, mark = fabric.flow[f], rules_for(fabric, f), fabric.state, fabric.mark
    again = flow["n_resend"] > 0
    number = flow["first_resend"] if again else flow["highest"]
    place = flow["ring"] + (number & flow["ring_mask"])
    size = size_of(fabric, f, number)
    if again:
        forget_resend(fabric, f, number, codes.IN_FLIGHT)
        if mark[place] < codes.MOST_RESENT:
            mark[place] += np.uint8(codes.ONE_MORE)
        state["retransmissions"] += 1
        flow["resent"] += size
    else:
        flow["highest"] += 1
        mark[place] = np.uint8(codes.IN_FLIGHT)
    state["n_sent"] += 1
    fabric.sent_at[place] = now // NS & CLOCK
    flow["in_flight"] += size
    if flow["give_up"] == NEVER and rules["give_up"] < NEVER:
        flow["give_up"] = now + patience(fabric, f)
        arm(fabric, f, codes.TIMEOUT, flow["give_up"])
    packet = fabric.packet[p]
    left = backlog(fabric, f)
    full = flow["in_flight"] + size >= flow["window"] and not rules["counts_packets"]
    packet["amount"] = 0
    if rules["transport"] == codes.RCCC:
        flow["credit"] -= size
        full = flow["credit"] <= 0
        packet["amount"] = wanted_credit(fabric, f, left)
    # where many flows take turns, or one is slow, the bytes that one answer is due for take longer than the timer
    full |= fabric.host[flow["src"]]["n_ready"] * rules["ack_every"] * rules["ps_per_byte"] > rules["give_up"] // 2
    full |= rules["paces"] and rules["ack_every"] > flow["rate"] * (rules["give_up"] // 2)
    packet["n_noted"] = 0
    if rules["paces"]:
        pace(fabric, f, size, now)
    if flow["cap"] > 0.0:
        flow["free_at"] = max(flow["free_at"], now + int(size / flow["cap"]))
    packet["kind"], packet["flow"], packet["number"], packet["size"] = codes.DATA, f, number, size
    packet["sent"] = now
    if rules["on_path"]:
        packet["hop"] = fabric.stream[f]["begin"]
    else:
        packet["entropy"], packet["target"] = next_entropy(fabric, f), flow["dst"]
        if len(fabric.tried) > 0:
            fabric.tried[place] = packet["entropy"] & (rules["entropies"] - 1)
    flags = codes.ACK_NOW if full or left == 0 or (again and not rules["goes_back"]) else 0
    flags |= codes.RESENT if again else 0
    if not again and number == flow["first"]:
        flags |= codes.FIRST
    if ends_message(fabric, f, number):
        flags |= codes.LAST
    if flags & codes.ACK_NOW:
        flow["asking"] = max(flow["asking"], number + 1)
    packet["flags"] = flags | (codes.ON_PATH if rules["on_path"] else 0)


@njit_norefcount
def backlog(fabric: RunState, f: int) -> int:
    """Return the bytes on the wire that a message has to send, once and again."""
    flow, mtu = fabric.flow[f], rules_for(fabric, f)["mtu"]
    new = flow["limit"] - flow["highest"]
    return int((new + flow["n_resend"]) * mtu + (flow["last_size"] - mtu if new > 0 else 0))


@njit_norefcount
def on_answer(fabric: RunState, p: int, now: int) -> None:
    """Take an acknowledgement, a NACK or credit."""
    packet = fabric.packet[p]
    f, kind = packet["flow"], packet["kind"]
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if kind == codes.ACK:
        _on_ack(fabric, p, now)
    elif kind == codes.NACK:
        _on_nack(fabric, p, now)
    elif kind == codes.CNP:
        on_notified(fabric, f, packet["amount"], now)
        return
    if flow["blind"]:  # what was sent before the first answer was not paid for
        flow["blind"] = False
        flow["credit"] = min(flow["credit"], 0)
        if rules["transport"] == codes.RCCC and flow["first"] == flow["highest"] < flow["limit"]:  # nothing has asked
            request(fabric, f)
    if kind > codes.NACK and packet["amount"] > flow["pulled"]:
        flow["credit"] = min(flow["credit"] + packet["amount"] - flow["pulled"], int(rules["window"]))
        flow["pulled"] = packet["amount"]
    if flow["finished_at"] < 0:
        get_ready(fabric, f)
        if flow["asking"] <= flow["acknowledged"] < flow["highest"]:
            _ask_if_stalled(fabric, f)


@njit_norefcount
def _ask_if_stalled(fabric: RunState, f: int) -> None:
    """Ask for an acknowledgement when the window is full of packets that no answer is due for.

    A receiver acknowledges every so many bytes, and a window may have shrunk below that since they were sent.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    has_more = flow["n_resend"] > 0 or flow["highest"] < flow["limit"]
    adapts = rules["transport"] != codes.RCCC and not rules["counts_packets"]
    if adapts and has_more and flow["in_flight"] < rules["ack_every"] and not may_send(fabric, f):
        request(fabric, f)


@njit_norefcount
def _on_ack(fabric: RunState, p: int, now: int) -> None:
    packet, mark = fabric.packet[p], fabric.mark
    f = packet["flow"]
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    has_time = packet["sent"] != UNSENT
    if rules["follows_rtt"] and rules["give_up"] < NEVER and has_time:
        on_round_trip(fabric, f, now - packet["sent"])
    news = max(0, packet["amount"] - flow["known"])
    flow["known"] += news
    flow["in_flight"] -= news
    marked = packet["flags"] & codes.MARKED != 0
    delay = flow["delay"]
    place = flow["ring"] + (packet["number"] & flow["ring_mask"])
    transport = rules["transport"]
    is_new = packet["number"] >= flow["acknowledged"] and mark[place] & codes.SENDER_BITS == codes.IN_FLIGHT
    if transport != codes.RCCC and is_new and has_time:
        delay = measure(fabric, f, now - packet["sent"], marked or transport != codes.NSCC)
    end = max(flow["acknowledged"], packet["expected"])
    for number in range(flow["acknowledged"], end):
        _settle(fabric, f, number)
    flow["acknowledged"] = end
    number, bitmap = base_of(packet), packet["bitmap"]
    while bitmap != 0:
        if bitmap & np.uint64(1) and number >= end:
            _settle(fabric, f, number)
        bitmap >>= np.uint64(1)
        number += 1
    if rules["on_path"] and end <= packet["number"]:
        if rules["goes_back"]:
            go_back(fabric, f, now)
        else:
            find_lost(fabric, f, packet["number"], packet["sent"], now)
    learn(fabric, f, packet["entropy"], FOR_MARK if marked else 0)
    on_news(fabric, p, delay, news, now)
    if end == flow["limit"]:
        flow["give_up"] = NEVER  # until the next message
    if end == flow["n_packets"] and flow["finished_at"] < 0:
        flow["finished_at"] = now
        fabric.state["n_unfinished"] -= 1


@njit_norefcount
def _settle(fabric: RunState, f: int, number: int) -> None:
    """Note that a packet has come, also one that had been given up."""
    flow, mark = fabric.flow[f], fabric.mark
    place = flow["ring"] + (number & flow["ring_mask"])
    if mark[place] & codes.SENDER_BITS == codes.TO_RESEND:
        forget_resend(fabric, f, number, codes.ACKNOWLEDGED)
        flow["in_flight"] += size_of(fabric, f, number)  # it was taken off when it was given up
    mark[place] |= np.uint8(codes.ACKNOWLEDGED)


@njit_norefcount
def _on_nack(fabric: RunState, p: int, now: int) -> None:
    packet = fabric.packet[p]
    f, number = packet["flow"], packet["number"]
    flow = fabric.flow[f]
    place = flow["ring"] + (number & flow["ring_mask"])
    if number < flow["acknowledged"] or fabric.mark[place] & codes.SENDER_BITS != codes.IN_FLIGHT:
        return
    give_back(fabric, f, number, now)
    # the last link is no choice of the path's
    bad = packet["flags"] & codes.LAST_HOP == 0
    learn(fabric, f, packet["entropy"], FOR_TRIM if bad else 0)


@njit_norefcount
def give_up(fabric: RunState, f: int, now: int) -> None:
    """Send again what has been without an answer for too long, and look again when the next may be.

    Where timeouts follow round trips, they double when the first packet that is not acknowledged has no answer again.
    """
    flow, rules, state = fabric.flow[f], rules_for(fabric, f), fabric.state
    oldest, limit, doubles = np.int64(NEVER), patience(fabric, f), False
    for number in range(flow["acknowledged"], flow["highest"]):
        place = flow["ring"] + (number & flow["ring_mask"])
        if fabric.mark[place] & codes.SENDER_BITS != codes.IN_FLIGHT:
            continue
        # packets are given up long before the clock begins again
        sent = (now // NS - ((now // NS - np.int64(fabric.sent_at[place])) & CLOCK)) * NS
        if sent + limit > now:
            oldest = min(oldest, sent)
            continue
        doubles |= number == flow["acknowledged"]
        if rules["goes_back"]:  # the oldest is the first, and all behind it are sent again
            go_back(fabric, f, now)
            state["timeouts"] += 1
            oldest = np.int64(NEVER)
            break
        size = size_of(fabric, f, number)
        flow["in_flight"] -= size
        if rules["transport"] == codes.NSCC:
            flow["window"] = max(flow["window"] - size, float(rules["mtu"]))
        if len(fabric.tried) > 0:
            learn(fabric, f, int(fabric.tried[place]), FOR_LOSS)
        resend(fabric, f, number)
        state["timeouts"] += 1
    flow["blind"] = False
    if doubles:
        on_timeout(fabric, f)
    flow["give_up"] = now + patience(fabric, f) if oldest == NEVER else oldest + limit
    if rules["transport"] == codes.RCCC and flow["credit"] <= 0:
        request(fabric, f)
    get_ready(fabric, f)


@njit_norefcount
def request(fabric: RunState, f: int) -> None:
    """Ask the receiver for credit, or for an answer to all that was sent, without data to carry the question."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    p = take_packet(fabric)
    packet = fabric.packet[p]
    packet["kind"], packet["flow"], packet["number"], packet["flags"] = codes.REQUEST, f, flow["highest"], 0
    packet["size"], packet["sent"] = rules["answer"], UNSENT
    if rules["transport"] == codes.RCCC:
        packet["amount"] = wanted_credit(fabric, f, backlog(fabric, f))
    else:
        flow["asking"] = flow["highest"]
    if rules["on_path"]:
        follow(fabric, p, f)
    else:
        packet["entropy"], packet["target"] = next_entropy(fabric, f), flow["dst"]
        go_out(fabric, p, flow["src"])
