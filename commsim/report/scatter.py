"""Predicted against measured: marks on two logarithmic axes, and the line on which both are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .chart import Axis, Series, draw_chart
from .picture import Picture


def draw_scatter(title: str, x: str, y: str, points: Mapping[str, Sequence[tuple[float, float, str]]]) -> Picture:
    """Draw groups of points over the diagonal.

    Parameters
    ----------
    title, x, y : str
        Above the chart, and of its axes.
    points : mapping of str to sequence of (float, float, str)
        By the group's name: what was measured, what was predicted, and what a mouse on the mark is told. Points that
        are not positive are left out.

    Raises
    ------
    ValueError
        If there is no point to draw.
    """
    groups = [
        Series(name, tuple((a, b) for a, b, _ in mine), joined=False, titles=tuple(text for _, _, text in mine))
        for name, mine in points.items()
    ]
    both = [value for mine in points.values() for a, b, _ in mine if a > 0 and b > 0 for value in (a, b)]
    if not both:
        raise ValueError("a scatter plot needs at least one point with both coordinates above 0")
    equal = Series("equal", ((min(both), min(both)), (max(both), max(both))), dashed=True)
    return draw_chart(title, Axis(x, True), Axis(y, True), [*groups, equal])
