"""Which packets of a flow are to be sent again: how many, and the first of them."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.run_state import IN_FLIGHT, SENDER_BITS, TO_RESEND, Fabric


@njit_norefcount
def resend(fabric: Fabric, f: int, number: int) -> None:
    """Note that a packet is to be sent again."""
    flow = fabric.flow[f]
    place = flow["ring"] + (number & flow["ring_mask"])
    fabric.mark[place] += np.uint8(TO_RESEND - IN_FLIGHT)
    if flow["n_resend"] == 0 or number < flow["first_resend"]:
        flow["first_resend"] = number
    flow["n_resend"] += 1


@njit_norefcount
def forget_resend(fabric: Fabric, f: int, number: int, then: int) -> None:
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
