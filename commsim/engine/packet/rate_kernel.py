"""DCQCN: how a flow's rate falls on a notification of congestion, and rises again by time and by bytes."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

NEARLY = 0.999  # of the line's rate; halving the distance never arrives


@njit_norefcount
def cut_rate(flow: Any, way: Any, now: int) -> None:
    """Cut the rate by half the estimate of congestion, which has decayed since the last notification."""
    if flow["alpha_at"] >= 0:
        flow["alpha"] *= (1.0 - way["gain"]) ** ((now - flow["alpha_at"]) // way["decay_time"])
    flow["target"] = flow["rate"]
    flow["rate"] = max(flow["rate"] * (1.0 - flow["alpha"] / 2.0), way["min_rate"])
    flow["alpha"] += way["gain"] * (1.0 - flow["alpha"])
    flow["alpha_at"] = now
    flow["by_time"] = flow["by_bytes"] = 0
    flow["n_sent"] = 0
    flow["rise_at"] = now + way["rise_time"]


@njit_norefcount
def raise_rate(flow: Any, way: Any) -> None:
    """Go half-way to the target: fast recovery, then with a target that grows, then with one that grows faster."""
    fewer = min(flow["by_time"], flow["by_bytes"])
    if fewer > way["n_recovery"]:
        flow["target"] += (fewer - way["n_recovery"]) * way["hyper"]
    elif max(flow["by_time"], flow["by_bytes"]) >= way["n_recovery"]:
        flow["target"] += way["additive"]
    flow["target"] = min(flow["target"], flow["line"])
    flow["rate"] = (flow["rate"] + flow["target"]) / 2.0
    if flow["rate"] >= NEARLY * flow["line"]:
        flow["rate"] = flow["target"] = flow["line"]


@njit_norefcount
def pace(flow: Any, way: Any, now: int, size: int) -> None:
    """Note that `size` bytes go: when the next packet may follow, and whether enough went for a rise."""
    if flow["rate"] >= flow["line"]:
        return
    flow["free_at"] = now + int(size / flow["rate"] + 0.5)
    flow["n_sent"] += size
    if flow["n_sent"] >= way["rise_bytes"]:
        flow["n_sent"] = 0
        flow["by_bytes"] += 1
        raise_rate(flow, way)
