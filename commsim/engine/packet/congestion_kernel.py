"""Congestion control: DCTCP's window follows marks and losses, DCQCN's rate follows notifications, time and bytes."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .packet_state import Row

DUPLICATES_OF_A_LOSS = 3
NEARLY = 0.999  # of the line's rate; halving the distance never arrives


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


@njit_norefcount
def cut_rate(flow: Row, transport: Row, now: int) -> None:
    """Cut the rate by half the estimate of congestion, which has decayed since the last notification."""
    if flow["alpha_at"] >= 0:
        flow["alpha"] *= (1.0 - transport["gain"]) ** ((now - flow["alpha_at"]) // transport["decay_time"])
    flow["target"] = flow["rate"]
    flow["rate"] = max(flow["rate"] * (1.0 - flow["alpha"] / 2.0), transport["min_rate"])
    flow["alpha"] += transport["gain"] * (1.0 - flow["alpha"])
    flow["alpha_at"] = now
    flow["by_time"] = flow["by_bytes"] = 0
    flow["n_sent"] = 0
    flow["rise_at"] = now + transport["rise_time"]


@njit_norefcount
def raise_rate(flow: Row, transport: Row) -> None:
    """Go half-way to the target: fast recovery, then with a target that grows, then with one that grows faster."""
    fewer = min(flow["by_time"], flow["by_bytes"])
    if fewer > transport["n_recovery"]:
        flow["target"] += (fewer - transport["n_recovery"]) * transport["hyper"]
    elif max(flow["by_time"], flow["by_bytes"]) >= transport["n_recovery"]:
        flow["target"] += transport["additive"]
    flow["target"] = min(flow["target"], flow["line"])
    flow["rate"] = (flow["rate"] + flow["target"]) / 2.0
    if flow["rate"] >= NEARLY * flow["line"]:
        flow["rate"] = flow["target"] = flow["line"]


@njit_norefcount
def pace(flow: Row, transport: Row, now: int, size: int) -> None:
    """Note that `size` bytes go: when the next packet may follow, and whether enough went for a rise."""
    if flow["rate"] >= flow["line"]:
        return
    flow["free_at"] = now + int(size / flow["rate"] + 0.5)
    flow["n_sent"] += size
    if flow["n_sent"] >= transport["rise_bytes"]:
        flow["n_sent"] = 0
        flow["by_bytes"] += 1
        raise_rate(flow, transport)
