"""Figures of papers as charts: published numbers beside ours, in the shape that their sweep gives them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from commsim.pages.plots.chart import Chart, ChartAxis, Series, draw_bars, draw_chart, stacked

from .paper import PaperRow

# Factor between the ends of an axis from which equal factors take equal lengths.
WIDE = 16
# Curves of one chart; more cannot be distinguished.
MOST = 7


def draw_rows(title: str, rows: Sequence[PaperRow]) -> Chart:
    """Draw one chart for each figure, one below the other.

    A figure that is swept over numbers is drawn as curves, ours as lines and the published numbers as marks of the same
    colour; any other one as bars.

    Parameters
    ----------
    title : str
        Title of the whole picture, for programs that read it aloud.
    rows : sequence of PaperRow
        Rows, at least one; those of a figure follow each other.
    """
    figures = itertools.groupby(rows, lambda row: (row.paper, row.figure))
    return stacked(title, [_chart(f"{paper}: {figure}", list(its)) for (paper, figure), its in figures])


def _chart(title: str, rows: list[PaperRow]) -> Chart:
    across = _axis(rows)
    groups: dict[str, list[PaperRow]] = {}
    for row in rows:
        others = ", ".join(f"{name}={value}" for name, value in row.swept.items() if name not in (across, "case"))
        groups.setdefault(others, []).append(row)
    if across is None or len(groups) > MOST or max(map(len, groups.values())) < 3:
        values = {"published": [row.theirs for row in rows], "ours": [row.ours for row in rows]}
        return draw_bars(title, rows[0].unit, [row.case or row.figure for row in rows], values)
    series = []
    for i, (name, its) in enumerate(groups.items()):
        at = sorted(its, key=lambda row: float(row.swept[across]))
        for what, joined in (("published", False), ("ours", True)):
            values_of = tuple((float(row.swept[across]), row.theirs if not joined else row.ours) for row in at)
            series.append(Series(f"{name} {what}".strip(), values_of, joined=joined, dashed=joined, colour=i))
    places = [float(row.swept[across]) for row in rows]
    wide = min(places) > 0 and max(places) >= WIDE * min(places)
    return draw_chart(title, ChartAxis(across, logarithmic=wide), ChartAxis(rows[0].unit), series)


def _axis(rows: Sequence[PaperRow]) -> str | None:
    """Return the swept number that takes most values, if one takes at least three."""
    taken = {name: [row.swept[name] for row in rows] for name, value in rows[0].swept.items() if _is_number(value)}
    names = [name for name, values in taken.items() if all(map(_is_number, values)) and len(set(values)) > 2]
    return max(names, key=lambda name: len(set(taken[name])), default=None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
