"""Which packets of a flow are to be sent again, and how long a sender waits for an answer before it sends one again.

Where queues have an end, that is a time in which the deepest of them drain. Else it follows the round trips that were
measured, and doubles with each timeout in a row (RFC 6298). Over one path a gap in the order is a loss: what is missing
is sent again, or with go-back-N all since then.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import IN_FLIGHT, SENDER_BITS, TO_RESEND
from commsim.packets.hosts.packet_sizes_kernel import size_of
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for
from commsim.packets.transports.control_kernel import on_trimming

NS = 1000  # ps
CLOCK = (1 << 31) - 1  # ns: what `sent_at` holds, 2 s and then again from 0
MAX_BACKOFF = 6


@njit_norefcount
def resend(fabric: RunState, f: int, number: int) -> None:
    """Note that a packet is to be sent again."""
    flow = fabric.flow[f]
    place = flow["ring"] + (number & flow["ring_mask"])
    fabric.mark[place] += np.uint8(TO_RESEND - IN_FLIGHT)
    if flow["n_resend"] == 0 or number < flow["first_resend"]:
        flow["first_resend"] = number
    flow["n_resend"] += 1


@njit_norefcount
def forget_resend(fabric: RunState, f: int, number: int, then: int) -> None:
    """Take a packet off those that are to be sent again, and find the next of them."""
    flow, mark = fabric.flow[f], fabric.mark
    place = flow["ring"] + (number & flow["ring_mask"])
    mark[place] = np.uint8(mark[place] - TO_RESEND + then)
    flow["n_resend"] -= 1
    if flow["n_resend"] > 0 and number == flow["first_resend"]:
        number += 1
        while mark[flow["ring"] + (number & flow["ring_mask"])] & SENDER_BITS != TO_RESEND:
            number += 1
        flow["first_resend"] = number


@njit_norefcount
def find_lost(fabric: RunState, f: int, number: int, sent: int, now: int) -> None:
    """Send again what is lost: one path keeps the order, so what was sent before a packet that came does not come."""
    flow = fabric.flow[f]
    for earlier in range(flow["acknowledged"], number):
        place = flow["ring"] + (earlier & flow["ring_mask"])
        if fabric.mark[place] & SENDER_BITS == IN_FLIGHT and fabric.sent_at[place] < sent // NS & CLOCK:
            give_back(fabric, f, earlier, now)


@njit_norefcount
def give_back(fabric: RunState, f: int, number: int, now: int) -> None:
    """Note that a packet was trimmed or lost, and is to be sent again."""
    size = size_of(fabric, f, number)
    on_trimming(fabric, f, size, now)
    flow = fabric.flow[f]
    flow["in_flight"] -= size
    if flow["asking"] == number + 1:
        flow["asking"] = 0  # what asked has not come
    resend(fabric, f, number)


@njit_norefcount
def go_back(fabric: RunState, f: int, now: int) -> None:
    """Send again all that is under way (go-back-N): the receiver keeps nothing that comes behind what it lacks.

    One packet was lost, so that a control hears of one.
    """
    flow = fabric.flow[f]
    is_first = True
    for number in range(flow["acknowledged"], flow["highest"]):
        place = flow["ring"] + (number & flow["ring_mask"])
        if fabric.mark[place] & SENDER_BITS != IN_FLIGHT:
            continue
        size = size_of(fabric, f, number)
        if is_first:
            on_trimming(fabric, f, size, now)
            is_first = False
        flow["in_flight"] -= size
        flow["asking"] = min(flow["asking"], flow["acknowledged"])  # what asked is not answered
        resend(fabric, f, number)


@njit_norefcount
def patience(fabric: RunState, f: int) -> int:
    """Time without an answer after which a flow sends a packet again, ps."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if not rules["follows_rtt"]:
        return int(rules["give_up"])
    return int(max(rules["give_up"], flow["round_trip"] + 4 * flow["deviation"]) << flow["backoff"])


@njit_norefcount
def on_round_trip(fabric: RunState, f: int, took: int) -> None:
    """Follow the round trip and its deviation; answers return when the packet was sent, so repeated ones count, too."""
    flow = fabric.flow[f]
    flow["backoff"] = 0
    if flow["round_trip"] == 0:
        flow["round_trip"], flow["deviation"] = took, took // 2
    else:
        flow["deviation"] += (abs(flow["round_trip"] - took) - flow["deviation"]) // 4
        flow["round_trip"] += (took - flow["round_trip"]) // 8


@njit_norefcount
def on_timeout(fabric: RunState, f: int) -> None:
    """Wait twice as long for the next answer."""
    flow = fabric.flow[f]
    flow["backoff"] = min(flow["backoff"] + 1, MAX_BACKOFF)
