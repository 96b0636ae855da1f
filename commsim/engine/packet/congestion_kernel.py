"""Congestion control: DCTCP's window follows marks and losses, DCQCN's rate follows notifications, time and bytes."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .packet_state import Row

DUPLICATES_OF_A_LOSS = 3
NEARLY = 0.999  # of the line's rate; halving the distance never arrives


@njit_norefcount
def adjust_window(flow: Row, transport: Row, newly: int, marked: bool) -> None:
    """Update the share of marks once per round, cut the window once per round, and let it grow otherwise.

    Parameters
    ----------
    flow : FLOW_ROW
        Row of the flow; changed in place.
    transport : TRANSPORT_ROW
        How it sends.
    newly : int
        Packets that are newly acknowledged.
    marked : bool
        Whether the acknowledgement echoes a mark.
    """
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
    """Cut the rate by half the estimate of congestion, which has decayed since the last notification.

    Parameters
    ----------
    flow : FLOW_ROW
        Row of the flow; changed in place.
    transport : TRANSPORT_ROW
        How it sends.
    now : int, ps
        Present time.
    """
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
    elif max(flow["by_time"], flow["by_bytes"]) > transport["n_recovery"]:
        flow["target"] += transport["additive"]
    flow["target"] = min(flow["target"], flow["line"])
    flow["rate"] = (flow["rate"] + flow["target"]) / 2.0
    if flow["rate"] >= NEARLY * flow["line"]:
        flow["rate"] = flow["target"] = flow["line"]


@njit_norefcount
def pace(flow: Row, transport: Row, now: int, size: int) -> None:
    """Note that `size` bytes go: when the next packet may follow, and whether enough went for a rise.

    Parameters
    ----------
    flow : FLOW_ROW
        Row of the flow; changed in place.
    transport : TRANSPORT_ROW
        How it sends.
    now : int, ps
        Present time.
    size : int
        Bytes on the wire.
    """
    rate = min(flow["rate"], flow["cap"])
    if rate < flow["line"]:
        flow["free_at"] = now + int(size / rate + 0.5)
    if flow["rate"] >= flow["line"]:
        return
    flow["n_sent"] += size
    if flow["n_sent"] >= transport["rise_bytes"]:
        flow["n_sent"] = 0
        flow["by_bytes"] += 1
        raise_rate(flow, transport)


@njit_norefcount
def measure_round_trip(flow: Row, took: int) -> None:
    """Follow the round trip and its deviation (RFC 6298)."""
    if flow["round_trip"] == 0:
        flow["round_trip"], flow["deviation"] = took, took // 2
    else:
        flow["deviation"] += (abs(flow["round_trip"] - took) - flow["deviation"]) // 4
        flow["round_trip"] += (took - flow["round_trip"]) // 8


@njit_norefcount
def least_timeout(flow: Row, transport: Row) -> int:
    """Time without acknowledgement after which a sender begins again, before it is doubled."""
    return int(max(transport["rto"], flow["round_trip"] + 4 * flow["deviation"]))
