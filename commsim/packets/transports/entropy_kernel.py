"""Which of its entropies a sender gives to the next packet; a switch's hash makes a path of it.

Oblivious: all in turn, in an order that is drawn again each round. Bitmap: so too, but those that brought marks or
trimming are left out as often as they are bad. REPS: those of good acknowledgements again (Bonato et al., "REPS:
recycled entropy packet spraying", 2025). Mixed: REPS while there are any, else bitmap. Entropies are a power of two.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import BITMAP, ECMP, MIXED, OBLIVIOUS, PATH, REPS
from commsim.packets.links.loss_kernel import draw
from commsim.packets.packet_rows import N_RECYCLED, RunState
from commsim.packets.rule_kernel import rules_for

WORST = 15
# what is added to an entropy's penalty when a packet comes back marked, trimmed, or not at all
FOR_MARK, FOR_TRIM, FOR_LOSS = 1, 4, WORST


@njit_norefcount
def next_entropy(fabric: RunState, f: int) -> int:
    """Choose the entropy of the packet that message `f` sends now."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    balancing = rules["balancing"]
    if balancing == ECMP:
        return int(flow["upper"])
    if (balancing in (REPS, MIXED)) and flow["n_recycled"] > 0:
        at = f * N_RECYCLED + flow["recycled_head"]
        flow["recycled_head"] = (flow["recycled_head"] + 1) % N_RECYCLED
        flow["n_recycled"] -= 1
        return int(flow["upper"] + fabric.recycled[at])
    if balancing == REPS and flow["highest"] >= rules["entropies"]:
        return int(flow["upper"] + int(draw(fabric) * rules["entropies"]))
    first = f * fabric.state["n_entropies"]
    entropy = flow["turn"] ^ flow["flip"]
    if balancing in (BITMAP, MIXED):
        # one lap at most; only the first that is left out is forgiven a little, so a bad path stays out for rounds
        tried, lenient = 0, True
        while fabric.penalty[first + entropy] > 0 and tried <= rules["entropies"]:
            if lenient:
                fabric.penalty[first + entropy] -= 1
                lenient = False
            tried += 1
            _turn(fabric, f)
            entropy = flow["turn"] ^ flow["flip"]
    _turn(fabric, f)
    return int(flow["upper"] + entropy)


@njit_norefcount
def _turn(fabric: RunState, f: int) -> None:
    flow, entropies = fabric.flow[f], rules_for(fabric, f)["entropies"]
    flow["turn"] += 1
    if flow["turn"] == entropies:
        flow["turn"] = 0
        flow["flip"] = int(draw(fabric) * entropies)


@njit_norefcount
def learn(fabric: RunState, f: int, entropy: int, penalty: int) -> None:
    """Learn what became of a packet with an entropy; a penalty of 0 is a good acknowledgement.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f : int
        The message.
    entropy : int
        Entropy of the packet.
    penalty : int
        0, `FOR_MARK`, `FOR_TRIM` or `FOR_LOSS`.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    balancing = rules["balancing"]
    which = entropy & (rules["entropies"] - 1)
    if balancing in (ECMP, OBLIVIOUS, PATH):
        return
    if penalty == 0:
        if balancing != BITMAP and flow["n_recycled"] < N_RECYCLED:
            at = (flow["recycled_head"] + flow["n_recycled"]) % N_RECYCLED
            fabric.recycled[f * N_RECYCLED + at] = np.uint16(which)
            flow["n_recycled"] += 1
    else:
        at = f * fabric.state["n_entropies"] + which
        fabric.penalty[at] = np.uint8(min(WORST, fabric.penalty[at] + penalty))
