"""DCQCN: how a flow's rate falls on a notification of congestion, and rises again by time and by bytes."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .packet_state import Row

NEARLY = 0.999  # of the line's rate; halving the distance never arrives


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
