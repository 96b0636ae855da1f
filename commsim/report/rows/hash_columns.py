"""Columns that every table of predictions has where the hash of routes matters, or the network has faults."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.result import Result
from commsim.core.units import microseconds

SPREAD = ("fastest(us)", "slowest(us)")
COST = ("whole(us)", "faults_cost")
__all__ = ["COST", "cost_cells", "hashes_in_title", "spread_cells", "spread_names"]


def spread_names(results: Sequence[Result]) -> list[str]:
    """Return the names of the columns of the fastest and the slowest draw; none where no result is a median."""
    return list(SPREAD) if any(result.hashes is not None for result in results) else []


def spread_cells(result: Result) -> list[str]:
    """Return the times of the fastest and the slowest draw; of a result that the hash does not change, its own."""
    ends = (result.time,) * 2 if result.hashes is None else (result.hashes.fastest, result.hashes.slowest)
    return [microseconds(time) for time in ends]


def hashes_in_title(results: Sequence[Result]) -> str:
    """Return what a title says, after a comma, of times that are medians; nothing where none is."""
    drawn = {result.hashes.n for result in results if result.hashes is not None}
    return f", median of {'/'.join(map(str, sorted(drawn)))} hashes of ECMP" if drawn else ""


def cost_cells(result: Result) -> list[str]:
    """Return the time on the network without its faults, and how many times that the time is."""
    if result.whole is None:
        return ["-", "-"]
    return [microseconds(result.whole), f"{result.faults_cost:.3f}x"]
