"""The picture of a comparison: measured and predicted times against size, and between what they were spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.comparison.pairs import Pair


def draw_comparison(pairs: Sequence[Pair], path: str) -> None:
    """Draw the pairs that have a size and times.

    Raises
    ------
    InputError
        If there is none, or no picture can be written to `path`.
    """
    from commsim.report.chart import Axis, Series, draw_chart
    from commsim.report.draw import write_picture

    series = []
    for operation in sorted({pair.measured.operation for pair in pairs}):
        mine = sorted(
            (
                p
                for p in pairs
                if p.measured.operation == operation and p.measured.size and p.measured.time and p.predicted
            ),
            key=lambda p: p.measured.size,
        )
        if not mine:
            continue
        prefix = operation if len({pair.measured.operation for pair in pairs}) > 1 else ""
        titles = tuple(f"{p.measured.size:.0f} B: {p.error:+.1%}" for p in mine)
        for name, points in (
            ("measured", [p.measured.time for p in mine]),
            ("predicted", [p.predicted for p in mine]),
        ):
            xy = tuple((p.measured.size, time * 1e6) for p, time in zip(mine, points, strict=True))
            series.append(Series(f"{prefix} {name}".strip(), xy, titles=titles))
        for name in ("low", "high"):
            spread = [(p.measured.size, float(getattr(p.measured, name) or 0) * 1e6) for p in mine]
            if all(time > 0 for _, time in spread):
                series.append(Series(f"{prefix} {name}".strip(), tuple(spread), dashed=True))
    if not series:
        raise InputError("there is nothing to draw: no size has both times")
    picture = draw_chart("predicted and measured", Axis("size (B)", True), Axis("time (us)", True), series)
    write_picture(picture, path)
