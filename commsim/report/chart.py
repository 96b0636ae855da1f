"""Line and bar charts of the same shapes as other pictures; charts of cluster runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .palette import FAINT, INK
from .palette import SERIES as COLOURS
from .picture import Disc, Label, Line, Picture, Point, Polygon, Rectangle, Shape, shortened, text_width

if TYPE_CHECKING:
    from commsim.cluster.outcome import Outcome

WIDTH, HEIGHT = 640.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 86.0, 18.0, 40.0, 52.0


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line, in the order of x; a dashed one without marks is a bound.

    Parameters
    ----------
    name : str
        In the legend.
    points : tuple of Point
        Where.
    dashed : bool
        A line without marks.
    joined : bool
        False for marks without a line.
    titles : tuple of str
        What a mouse that rests on each point is told; the coordinates when empty.
    colour : int, optional
        Its number; by default that of the series.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False
    joined: bool = True
    titles: tuple[str, ...] = ()
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows, and whether equal factors take equal lengths."""

    label: str
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def at(self, value: float) -> float:
        low, high, value = (
            (math.log10(v) for v in (self.low, self.high, value)) if self.logarithmic else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            decades = [10.0**e for e in range(first, last + 1)]
            fine = [d * f for d in decades for f in (1, 2, 5)] if last - first < 3 else decades
            return [t for t in fine if self.low * 0.999 <= t <= self.high * 1.001]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(f for f in (1, 2, 5, 10) if (self.high - self.low) / (step * f) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def draw_chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> Picture:
    """Draw lines with marks, a grid, and a legend.

    Parameters
    ----------
    title : str
        Above the chart.
    x, y : Axis
        A logarithmic axis leaves out points that are not positive; a linear one of y begins at 0.
    series : sequence of Series
        At least one with a point.

    Raises
    ------
    ValueError
        If there is no point to draw.
    """
    shown = [_drawable_part(s, x, y) for s in series]
    xs = [p[0] for s in shown for p in s.points]
    ys = [p[1] for s in shown for p in s.points]
    if not xs:
        raise ValueError("a chart needs at least one point")
    across = _scale(xs, LEFT, WIDTH - RIGHT, x.logarithmic, False)
    upwards = _scale(ys, HEIGHT - BOTTOM, TOP, y.logarithmic, True)
    shapes: list[Shape] = [Rectangle(0, 0, WIDTH, HEIGHT, "#ffffff")]
    shapes += _frame(title, x, y, across, upwards)
    for i, one in enumerate(shown):
        shapes += _line(one, _colour(one, i), across, upwards)
    return Picture(WIDTH, HEIGHT, title, (*shapes, *_legend(shown)))


def _drawable_part(series: Series, x: Axis, y: Axis) -> Series:
    drawable = [i for i, point in enumerate(series.points) if _drawable(point, x, y)]
    titles = tuple(series.titles[i] for i in drawable) if series.titles else ()
    return dataclasses.replace(series, points=tuple(series.points[i] for i in drawable), titles=titles)


def _drawable(point: Point, x: Axis, y: Axis) -> bool:
    positive = (not x.logarithmic or point[0] > 0) and (not y.logarithmic or point[1] > 0)
    return positive and all(math.isfinite(v) for v in point)


def _scale(values: list[float], start: float, end: float, logarithmic: bool, from_zero: bool) -> _Scale:
    low, high = min(values), max(values)
    if logarithmic:
        low, high = (low / 1.1, high * 1.1) if low == high else (low, high)
    else:
        low = min(low, 0.0) if from_zero else low
        high = high if high > low else low + (abs(low) or 1.0)
        high += 0.05 * (high - low) * from_zero
    return _Scale(low, high, start, end, logarithmic)


def _frame(title: str, x: Axis, y: Axis, across: _Scale, upwards: _Scale) -> list[Shape]:
    shapes: list[Shape] = [Label(WIDTH / 2, 20, title, 13.0, bold=True)]
    for value in across.ticks():
        at = across.at(value)
        shapes.append(Line(((at, TOP), (at, HEIGHT - BOTTOM)), "#e6e6e6", 1.0))
        shapes.append(Label(at, HEIGHT - BOTTOM + 14, f"{value:g}", 10.0, FAINT))
    for value in upwards.ticks():
        at = upwards.at(value)
        shapes.append(Line(((LEFT, at), (WIDTH - RIGHT, at)), "#e6e6e6", 1.0))
        shapes.append(Label(LEFT - 6, at, f"{value:g}", 10.0, FAINT, "end"))
    corner = ((LEFT, TOP), (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM))
    shapes.append(Line(corner, INK, 1.0))
    shapes.append(Label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x.label))
    return [*shapes, Label(8, TOP - 12, y.label, anchor="start")]


def _line(series: Series, colour: str, across: _Scale, upwards: _Scale) -> list[Shape]:
    points = [(across.at(px), upwards.at(py)) for px, py in series.points]
    shapes: list[Shape] = []
    if len(points) > 1 and series.joined:
        shapes.append(Line(tuple(points), colour, 1.6, series.dashed, series.name))
    if not series.dashed and (len(points) <= 200 or not series.joined):
        titles = series.titles or tuple(f"{series.name}: {px:g}, {py:g}" for px, py in series.points)
        shapes += [Disc(*at, 3.0, colour, colour, title) for at, title in zip(points, titles, strict=True)]
    return shapes


def _colour(series: Series, i: int) -> str:
    return COLOURS[(i if series.colour is None else series.colour) % len(COLOURS)]


def _legend(series: Sequence[Series]) -> list[Shape]:
    shapes: list[Shape] = []
    named = [s for s in series if s.name and s.points]
    if len(named) < 2:
        return []
    width = 34 + max(text_width(s.name, 10.0) for s in named)
    left, top = WIDTH - RIGHT - width - 4, HEIGHT - BOTTOM - 16 * len(named) - 8
    shapes.append(Rectangle(left, top, width, 16.0 * len(named) + 6, "#ffffff", "#d0d0d0"))
    for i, one in enumerate(series):
        if one in named:
            y = top + 11 + 16 * named.index(one)
            colour = _colour(one, i)
            if one.joined:
                shapes.append(Line(((left + 6, y), (left + 24, y)), colour, 1.8, one.dashed))
            else:
                shapes.append(Disc(left + 15, y, 3.0, colour, colour))
            shapes.append(Label(left + 28, y, one.name, 10.0, INK, "start"))
    return shapes


BAR, GAP, NAMES = 12.0, 8.0, 190.0


def draw_bars(title: str, label: str, cases: Sequence[str], values: Mapping[str, Sequence[float]]) -> Picture:
    """Draw a group of bars for each case, one bar of a colour for each name; the values stand at their ends.

    Parameters
    ----------
    title, label : str
        Above the chart; below the axis.
    cases : sequence of str
        Names of the groups, from the top.
    values : mapping of str to sequence of float
        By the name in the legend, one for each case.
    """
    each = BAR * len(values) + GAP
    bottom = TOP + each * len(cases)
    across = _scale([value for column in values.values() for value in column], NAMES, WIDTH - RIGHT - 44, False, True)
    shapes: list[Shape] = [
        Rectangle(0, 0, WIDTH, bottom + BOTTOM, "#ffffff"),
        Label(WIDTH / 2, 14, title, 13.0, bold=True),
    ]
    for value in across.ticks():
        shapes.append(Line(((across.at(value), TOP), (across.at(value), bottom)), "#e6e6e6", 1.0))
        shapes.append(Label(across.at(value), bottom + 12, f"{value:g}", 10.0, FAINT))
    for i, case in enumerate(cases):
        top = TOP + i * each + GAP / 2
        shapes.append(Label(NAMES - 6, top + BAR * len(values) / 2, shortened(case, NAMES - 10), anchor="end"))
        for j, (name, column) in enumerate(values.items()):
            ends = sorted((across.at(0.0), across.at(column[i])))
            colour, told = COLOURS[j % len(COLOURS)], f"{name}, {case}: {column[i]:.4g}"
            shapes.append(Rectangle(ends[0], top + j * BAR, ends[1] - ends[0], BAR - 1, colour, title=told))
            shapes.append(Label(ends[1] + 4, top + (j + 0.5) * BAR, f"{column[i]:.4g}", 9.0, INK, "start"))
    left = NAMES
    for j, name in enumerate(values):
        shapes.append(Rectangle(left, TOP - 14, 10, 8, COLOURS[j % len(COLOURS)]))
        shapes.append(Label(left + 14, TOP - 10, name, 10.0, INK, "start"))
        left += 30 + text_width(name, 10.0)
    shapes.append(Label((NAMES + WIDTH - RIGHT) / 2, bottom + 32, label))
    return Picture(WIDTH, bottom + BOTTOM, title, tuple(shapes))


HOUR, DAY = 3600.0, 86400.0
MAX_POINTS = 400


def draw_outcomes(outcomes: Sequence[Outcome]) -> Picture:
    """Draw both charts of all outcomes; one with CASSINI is dashed beside the one without.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one, of the same trace.
    """
    times = [Series(one.label, _spread(one), one.placing == "cassini") for one in outcomes]
    use = [Series(one.label, _use(one), one.placing == "cassini") for one in outcomes]
    above = draw_chart("job completion time", Axis("JCT (h)", logarithmic=True), Axis("share of jobs"), times)
    below = draw_chart("GPUs in use", Axis("time (days)"), Axis("GPUs"), use)
    return stacked("job completion times and GPUs in use", [above, below])


def stacked(title: str, charts: Sequence[Picture]) -> Picture:
    """Draw charts one below the other."""
    tops = np.cumsum([0.0, *(chart.height for chart in charts)]).tolist()
    shapes = (_lower(shape, top) for chart, top in zip(charts, tops, strict=False) for shape in chart.shapes)
    return Picture(max(chart.width for chart in charts), tops[-1], title, tuple(shapes))


def _spread(outcome: Outcome) -> tuple[tuple[float, float], ...]:
    hours = np.sort([job.jct_s for job in outcome.jobs]) / HOUR
    share = np.arange(1, len(hours) + 1) / len(hours)
    keep = np.unique(np.linspace(0, len(hours) - 1, MAX_POINTS).round().astype(int))
    return tuple((float(hours[i]), float(share[i])) for i in keep)


def _use(outcome: Outcome) -> tuple[tuple[float, float], ...]:
    """Mean number of GPUs in use in each of a few hundred equal parts of the time."""
    times = np.array([time for time, _ in outcome.use])
    gpus = np.array([n for _, n in outcome.use], np.float64)
    area = np.concatenate(([0.0], np.cumsum(gpus[:-1] * np.diff(times))))
    edges = np.linspace(times[0], times[-1], MAX_POINTS + 1)
    parts = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    return tuple((float(t / DAY), float(n)) for t, n in zip((edges[1:] + edges[:-1]) / 2, parts, strict=True))


def _lower(shape: Shape, by: float) -> Shape:
    if isinstance(shape, Line | Polygon):
        return replace(shape, points=tuple((x, y + by) for x, y in shape.points))
    if isinstance(shape, Rectangle | Disc | Label):
        return replace(shape, y=shape.y + by)
    raise TypeError(f"unknown shape {shape!r}")
