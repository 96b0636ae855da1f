"""DCTCP: how a flow's window follows the marks, and what it takes for losses."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .packet_state import Row

DUPLICATES_OF_A_LOSS = 3


@njit_norefcount
def adjust_window(flow: Row, transport: Row, newly: int, marked: bool) -> None:
    """Update the share of marks once per round, cut the window once per round, and let it grow otherwise."""
    flow["n_acks"] += 1
    flow["n_marks"] += marked
    if flow["una"] >= flow["round_end"]:
        flow["alpha"] += transport["gain"] * (flow["n_marks"] / flow["n_acks"] - flow["alpha"])
        flow["n_acks"] = flow["n_marks"] = 0
        flow["round_end"] = flow["fresh"]
    if flow["recovering"]:
        return
    if flow["una"] >= flow["cut_end"]:
        if marked:
            flow["window"] = max(flow["window"] * (1.0 - flow["alpha"] / 2.0), 1.0)
            flow["threshold"] = flow["window"]
            flow["cut_end"] = flow["fresh"]
        elif flow["window"] < flow["threshold"]:
            flow["window"] = min(flow["window"] + newly, float(transport["max_window"]))
        else:
            flow["window"] = min(flow["window"] + newly / flow["window"], float(transport["max_window"]))


@njit_norefcount
def note_losses(flow: Row, newly: int) -> None:
    """Repeat what three repeated acknowledgements ask for, then each further hole of the same window (NewReno)."""
    if newly > 0 and not flow["recovering"]:
        flow["dup"] = 0
    elif newly > 0 and flow["una"] >= flow["recover"]:
        flow["recovering"] = False
        flow["dup"] = 0
    elif newly > 0:
        flow["resend"] = flow["una"]
        flow["dup"] = max(0, flow["dup"] - newly + 1)
    elif flow["una"] < flow["fresh"]:
        flow["dup"] += 1
        if flow["dup"] == DUPLICATES_OF_A_LOSS and not flow["recovering"] and flow["una"] >= flow["recover"]:
            flow["recovering"] = True
            flow["recover"] = flow["fresh"]
            flow["window"] = flow["threshold"] = max(flow["window"] / 2.0, 2.0)
            flow["resend"] = flow["una"]


@njit_norefcount
def collapse(flow: Row) -> None:
    """Begin again with a window of one packet, after a time without acknowledgement."""
    flow["threshold"] = max(min(flow["window"], float(flow["fresh"] - flow["una"])) / 2.0, 2.0)
    flow["window"] = 1.0
    flow["recovering"] = False
    flow["dup"] = 0
    flow["recover"] = flow["fresh"]
