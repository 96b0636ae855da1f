"""HPCC: the window follows the load of the busiest link, which packets bring back from the switches.

A link's load is what it sent since the last answer, over what it can, and what queues before it, over rate times
round trip. The window that changes start from is renewed once in a round trip, so that a load is not answered twice.

Source: Li et al., "HPCC: high precision congestion control", SIGCOMM 2019, algorithm 1. Constants: `transports.Hpcc`.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.packet_rows import RunState
from commsim.packets.rule_kernel import rules_for


@njit_norefcount
def on_ack(fabric: RunState, f: int, p: int) -> None:
    """Adapt window and rate to the acknowledgement of a packet.

    Parameters
    ----------
    fabric : RunState
        All state; changed in place.
    f, p : int
        The message, and the acknowledgement, which has the notes of the packet that it answers.
    """
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if not _measure(fabric, f, p):
        return
    # a round ends with the answer to the first packet that was sent after it began
    is_new_round = fabric.packet[p]["number"] >= flow["round_end"]
    if flow["heard"] >= rules["load"] or flow["stage"] >= rules["stages"]:
        window = flow["aim"] / (flow["heard"] / rules["load"]) + rules["window_step"]
        stage = 0
    else:
        window = flow["aim"] + rules["window_step"]
        stage = flow["stage"] + 1
    flow["window"] = min(max(window, rules["window_step"]), flow["most"])
    if is_new_round:
        flow["stage"], flow["aim"], flow["round_end"] = stage, flow["window"], flow["highest"]
    flow["rate"] = flow["window"] / rules["rtt"]


@njit_norefcount
def _measure(fabric: RunState, f: int, p: int) -> bool:
    """Take a packet's notes into the smoothed load of the busiest link; return whether there were two to compare."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    n, rtt = fabric.state["n_notes"], float(rules["rtt"])
    load, time, known = 0.0, 0.0, True
    for i in range(n):
        new, old = fabric.note[p * n + i], fabric.noted[f * n + i]
        if new["link"] < 0:
            break
        between = float(new["when"] - old["when"])
        if new["link"] == old["link"] and between > 0.0:
            per_byte = fabric.link[new["link"]]["ps_per_byte"]
            queued = min(new["queue"], old["queue"]) * per_byte / rtt
            here = queued + (new["sent"] - old["sent"]) * per_byte / between
            if here > load:
                load, time = here, between
        else:
            known = False
        old["queue"], old["sent"], old["when"], old["link"] = new["queue"], new["sent"], new["when"], new["link"]
    if known and time > 0.0:
        weight = min(time, rtt) / rtt
        flow["heard"] += weight * (load - flow["heard"])
    return known and flow["heard"] > 0.0


@njit_norefcount
def copy_notes(fabric: RunState, p: int, q: int) -> None:
    """Return to its sender, with the answer `q`, what the links wrote into packet `p`."""
    n = fabric.state["n_notes"]
    for i in range(n):
        there, here = fabric.note[q * n + i], fabric.note[p * n + i]
        there["link"] = -1
        if i >= fabric.packet[p]["n_noted"]:
            return
        there["queue"], there["sent"] = here["queue"], here["sent"]
        there["when"], there["link"] = here["when"], here["link"]
