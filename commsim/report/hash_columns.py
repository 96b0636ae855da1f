"""Columns that every table of predictions has where the hash of routes matters, or the network has faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commsim.core.result import OverHashes, Result
from commsim.core.units import format_time, microseconds

TIME = "time(us)"
SPREAD = ("fastest(us)", "slowest(us)")
COST = ("whole(us)", "faults_cost")
__all__ = ["COST", "TIME", "cost_cells", "ends_of_hashes", "spread_cells", "spread_names", "with_ends", "with_spread"]


def spread_names(results: Sequence[Result]) -> list[str]:
    """Return the names of the columns of the fastest and the slowest draw; none where no result is a median."""
    return list(SPREAD) if any(result.hashes is not None for result in results) else []


def spread_cells(result: Result) -> list[str]:
    """Return the times of the fastest and the slowest draw; of a result that the hash does not change, its own."""
    ends = (result.time,) * 2 if result.hashes is None else (result.hashes.fastest, result.hashes.slowest)
    return [microseconds(time) for time in ends]


def with_spread(
    names: Sequence[str], cells: Sequence[Sequence[str]], results: Sequence[Result]
) -> tuple[list[str], list[list[str]]]:
    """Return a table's columns and cells with those of the fastest and the slowest draw behind its time.

    Parameters
    ----------
    names, cells : sequence
        Columns, of which one is ``TIME``, and cells of each row.
    results : sequence of Result
        Result of each row; where none is a median, nothing is added.
    """
    at, spread = names.index(TIME) + 1, spread_names(results)
    rows = [[*row[:at], *spread_cells(one)[: len(spread)], *row[at:]] for row, one in zip(cells, results, strict=True)]
    return [*names[:at], *spread, *names[at:]], rows


def ends_of_hashes(hashes: OverHashes | None) -> str:
    """Return what follows a time that is a median, in a line of facts; nothing where the hash does not matter."""
    if hashes is None:
        return ""
    return f", {format_time(hashes.fastest)} to {format_time(hashes.slowest)} over {hashes.n} hashes of ECMP"


def with_ends(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    at: int,
    rows: Sequence[Mapping[str, Any]],
    shown_as: Callable[[float], str] = format_time,
) -> tuple[list[str], list[list[str]]]:
    """Return a table's columns and cells with those of the fastest and the slowest hash, where rows have them.

    Parameters
    ----------
    names, cells : sequence
        Columns, and cells of each row.
    at : int
        Position of the new columns.
    rows : sequence of mapping
        JSON row of each, of which some have `fastest_s` and `slowest_s`.
    shown_as : callable
        Text of a time.
    """
    if not any("fastest_s" in row for row in rows):
        return [*names], [[*one] for one in cells]
    ends = [[shown_as(row[key]) if key in row else "-" for key in ("fastest_s", "slowest_s")] for row in rows]
    shown = [[*one[:at], *end, *one[at:]] for one, end in zip(cells, ends, strict=True)]
    return [*names[:at], "fastest", "slowest", *names[at:]], shown


def cost_cells(result: Result) -> list[str]:
    """Return the time on the network without its faults, and how many times that the time is."""
    if result.whole is None:
        return ["-", "-"]
    return [microseconds(result.whole), f"{result.faults_cost:.3f}x"]
