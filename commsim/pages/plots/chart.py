"""Charts of lines and bars that commands draw beside their tables, by matplotlib; they are no figures of a study."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.units import count_text
from commsim.core.value import Shown
from commsim.pages.palette import SERIES as COLOURS
from commsim.pages.pictures.picture import Point
from commsim.pages.plots.plot_axes import DASHES, MARKS, STYLE

# Inches of a chart, of a bar, of what is around the bars of a case, and of a name in a legend.
WIDTH, HEIGHT, BAR, AROUND, NAME = 6.7, 3.6, 0.14, 0.1, 0.15
# What would differ between two files of the same chart.
UNDATED = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
# Of a line with more points none is marked.
MAX_MARKED = 200


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line, in the order of x; a dashed one without marks is a bound.

    Parameters
    ----------
    name : str
        Name in the legend.
    points : tuple of Point
        Points of the line.
    dashed : bool
        A line without marks.
    joined : bool
        False for marks without a line.
    colour : int, optional
        Its number; by default that of the series.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False
    joined: bool = True
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """What an axis shows, whether equal factors take equal lengths, and its ticks, unless matplotlib chooses them."""

    label: str
    logarithmic: bool = False
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart of lines with marks; a linear axis of y begins at 0."""

    title: str
    x: ChartAxis
    y: ChartAxis
    series: tuple[Series, ...]

    @property
    def height(self) -> float:
        """Inches that it takes: more where the legend has many names."""
        return max(HEIGHT, 0.5 + NAME * len({line.name for line in self.series if line.name}))

    @property
    def count(self) -> str:
        """Number of lines, in words."""
        return count_text(len(self.series), "line")

    def draw(self, axes: Any) -> None:
        """Draw it on axes of matplotlib."""
        for i, line in enumerate(self.series):
            number = i if line.colour is None else line.colour
            marked = not line.dashed and (len(line.points) <= MAX_MARKED or not line.joined)
            mark = MARKS[number % len(MARKS)] if marked else ""
            if not marked and len(line.points) == 1:  # a line of one point is nothing to see
                mark = "x"
            x, y = zip(*line.points, strict=True) if line.points else ((), ())
            axes.plot(
                x, y, color=COLOURS[number % len(COLOURS)], marker=mark,
                linestyle=(DASHES[1] if line.dashed else "-") if line.joined else "none", label=line.name,
            )  # fmt: skip
        for axis, name in ((self.x, "x"), (self.y, "y")):
            getattr(axes, f"set_{name}label")(axis.label)
            if axis.logarithmic:
                getattr(axes, f"set_{name}scale")("log")
                for which in ("major", "minor"):
                    getattr(getattr(axes, f"{name}axis"), f"set_{which}_formatter")(_numbers())
            if axis.ticks:
                getattr(axes, f"set_{name}ticks")(axis.ticks, [f"{tick:g}" for tick in axis.ticks])
                getattr(axes, f"set_{name}ticks")((), minor=True)
        if not self.y.logarithmic:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        if len({line.name for line in self.series if line.name}) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart with a group of bars for each case, one of a colour for each name; the values stand at their ends."""

    title: str
    label: str
    cases: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return 0.9 + len(self.cases) * (len(self.values) * BAR + AROUND)

    @property
    def count(self) -> str:
        """Number of bars, in words."""
        return count_text(len(self.cases) * len(self.values), "bar")

    def draw(self, axes: Any) -> None:
        """Draw it on axes of matplotlib."""
        middle, width = np.arange(len(self.cases)), 0.8 / len(self.values)
        for j, (name, values) in enumerate(self.values.items()):
            at = middle + (j - (len(self.values) - 1) / 2) * width
            bars = axes.barh(at, values, width, color=COLOURS[j % len(COLOURS)], label=name)
            axes.bar_label(bars, labels=[f"{value:.4g}" for value in values], padding=2, fontsize=7)
        axes.set_yticks(middle, self.cases)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.grid(False, axis="y")
        axes.set_xlabel(self.label)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


@dataclass(frozen=True, slots=True, repr=False)
class Chart(Shown):
    """Charts one below the other, with a title for programs that read pictures aloud."""

    title: str
    panels: tuple[LineChart | Bars, ...]

    def __repr__(self) -> str:
        return f"Chart({self.title}, {', '.join(panel.count for panel in self.panels)})"

    def svg(self) -> str:
        """Return the picture as SVG.

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        if importlib.util.find_spec("matplotlib") is None:
            raise InputError(needs("charts need matplotlib", "plot"))
        out = io.BytesIO()
        write_chart(self, out, "svg")
        return out.getvalue().decode()


def draw_chart(title: str, x: ChartAxis, y: ChartAxis, series: Sequence[Series]) -> Chart:
    """Make a chart of lines.

    Parameters
    ----------
    title : str
        Title above the chart.
    x, y : ChartAxis
        A logarithmic axis leaves out points that are not positive; a linear one of y begins at 0.
    series : sequence of Series
        Series, at least one with a point.

    Raises
    ------
    ValueError
        Without a point to draw.
    """
    shown = tuple(
        dataclasses.replace(line, points=tuple(p for p in line.points if _drawable(p, x, y))) for line in series
    )
    if not any(one.points for one in shown):
        raise ValueError("a chart needs at least one point")
    return Chart(title, (LineChart(title, x, y, shown),))


def draw_bars(title: str, label: str, cases: Sequence[str], values: Mapping[str, Sequence[float]]) -> Chart:
    """Make a chart of bars.

    Parameters
    ----------
    title, label : str
        Text above the chart; text below the axis.
    cases : sequence of str
        Names of the groups, from the top.
    values : mapping of str to sequence of float
        Values by name in the legend, one for each case.
    """
    return Chart(title, (Bars(title, label, tuple(cases), {name: tuple(column) for name, column in values.items()}),))


def stacked(title: str, charts: Sequence[Chart]) -> Chart:
    """Put charts one below the other."""
    return Chart(title, tuple(panel for chart in charts for panel in chart.panels))


def write_chart(chart: Chart, out: BinaryIO, kind: str) -> None:
    """Draw a chart and write it; the same chart gives the same bytes.

    Parameters
    ----------
    chart : Chart
        What.
    out : binary file
        Written to.
    kind : {"svg", "png", "pdf"}
        Format.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    heights = [panel.height for panel in chart.panels]
    with mpl.rc_context({**STYLE, "savefig.dpi": 192}):
        canvas = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        axes = np.atleast_1d(canvas.subplots(len(heights), 1, height_ratios=heights))
        for ax, panel in zip(axes, chart.panels, strict=True):
            ax.set_title(panel.title, fontsize=9, loc="left")
            panel.draw(ax)
        canvas.savefig(
            out,
            format=kind,
            metadata={"Title": chart.title, **UNDATED.get(kind, {})},
        )


def _numbers() -> Any:
    """Return what names the ticks that matplotlib would name by numbers; its own are formulas, which STYLE leaves."""
    from matplotlib.ticker import LogFormatter

    class Numbers(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    return Numbers()


def _drawable(point: Point, x: ChartAxis, y: ChartAxis) -> bool:
    positive = (not x.logarithmic or point[0] > 0) and (not y.logarithmic or point[1] > 0)
    return positive and all(math.isfinite(v) for v in point)
