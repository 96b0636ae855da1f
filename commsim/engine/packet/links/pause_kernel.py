"""Pauses of links (PFC, IEEE 802.1Qbb): a node whose queues hold too much of what came over a link asks it to wait."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.links.class_kernel import class_of
from commsim.engine.packet.links.wheel_kernel import schedule
from commsim.engine.packet.run_state import Fabric


@njit_norefcount
def hold(fabric: Fabric, i: int, p: int, size: int) -> None:
    """Count bytes that came over a link and wait in the next node; ask it to pause their class, or to go on."""
    link, rank = fabric.link[i], class_of(fabric, p)
    row = i * fabric.state["n_classes"] + rank
    fabric.held[row] += size
    held, bit = fabric.held[row], np.uint8(1 << rank)
    pausing = link["pausing"] & bit != 0
    if (held >= link["xoff"] and not pausing) or (held <= link["xon"] and pausing):
        link["pausing"] ^= bit
        if not link["pause_pending"]:
            link["pause_pending"] = True
            schedule(fabric.events, 2 * len(fabric.link) + i, fabric.state["now"] + link["latency"])
