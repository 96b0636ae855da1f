"""Which packets of a flow are to be sent again, and how long a sender waits for an answer before it sends one again.

Where queues have an end, that is a time in which the deepest of them drain. Else it follows the round trips that were
measured, and doubles with each timeout in a row (RFC 6298).
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import IN_FLIGHT, SENDER_BITS, TO_RESEND
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for

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
