"""Maps: a cell per value of x and y, coloured by a number or by what is fastest."""

from __future__ import annotations

import numpy as np

from commsim.pages.figure_tables import distinct
from commsim.pages.palette import RATIO_ENDS

from .fields import (
    COUNT,
    HEIGHT,
    NAMES,
    ROW,
    Spec,
    SpecFields,
    axis,
    coloured,
    column_format,
    marked,
    present,
    selections,
    summed,
    tooltip_line,
    values_of,
)

# Pixels of a row of a map with more rows than these, of which only some are named; of rows of numbers.
LOW_ROW, MANY_ROWS, HIGH_ROWS = 6, 64, (18, 44)
# Most parts of a time that are cells with names; most columns of cells that hold a number.
MAX_CELLS, MAX_TEXTS = 20, 12
# An algorithm that leads by less is drawn pale.
CLOSE = 1.01
# Width of a part of a time: a little more than it is, or seams would be seen.
OVERLAP = 1.03
LENGTH = {"expr": "min(220, 0.45 * containerSize()[0])"}


def heat(fields: SpecFields) -> Spec:
    """Colour cells by the median of a value: a load from 0 to 1, or a ratio in which 1 is neutral."""
    keys, value, ratio = fields.some("facet", "y", "x"), fields.of("value"), fields.figure.scale == "ratio"
    lines = fields.tooltip_lines("facet", "y", "x")
    lines += [tooltip_line("median", fields.words("value"), "" if ratio else "%"), tooltip_line("rows", "rows", "")]
    most = _farthest(fields) if ratio else 1.0
    colour = _ratio(fields, most) if ratio else _load(fields)
    rects: Spec = {"name": "drawn", "mark": {"type": "rect", "clip": True},
                   "encoding": {"color": colour, "tooltip": lines}}  # fmt: skip
    if of_parts(fields):
        rects["params"] = selections(fields)
    layers = [rects]
    if ratio and len(distinct(fields.column("x"))) <= MAX_TEXTS:
        layers.append(_numbers(most))
    steps = [present([*keys, value]), {"aggregate": [summed("median", value, "median"), COUNT], "groupby": keys}]
    return {**_height(fields), **_faceted(fields, steps + _ends(fields)), "encoding": _cells(fields), "layer": layers}


def _load(fields: SpecFields) -> Spec:
    legend = {"title": fields.words("value"), "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    idle = {"test": "datum.median <= 0", "value": {"expr": "idle"}}
    scale = {"type": "linear", "domain": [0, 1], "range": "heatmap", "clamp": True}
    return {"field": "median", "type": "quantitative", "scale": scale, "condition": idle,
            "legend": {**legend, "gradientLength": LENGTH}}  # fmt: skip


def _ratio(fields: SpecFields, most: float) -> Spec:
    legend = {"title": fields.words("value"), "format": ".3~g", "values": [1 / most, 1, most]}
    scale = {"type": "log", "domain": [1 / most, 1, most], "range": "diverging", "clamp": True}
    return {"field": "median", "type": "quantitative", "scale": scale, "legend": {**legend, "gradientLength": LENGTH}}


def _farthest(fields: SpecFields) -> float:
    """Where the colours of ratios end."""
    values = fields.column("value").values
    values = values[np.isfinite(values) & (values > 0)]
    far = float(np.exp(np.abs(np.log(values)).max())) if len(values) else 1.0
    return next((end for end in RATIO_ENDS if end >= far), far)


def _numbers(most: float) -> Spec:
    """Write the ratio into each cell that is wide enough."""
    colour = {"expr": f"abs(log(datum.median)) > {0.55 * float(np.log(most))!r} ? '#ffffff' : '#222222'"}
    mark = {"type": "text", "fontSize": 10, "color": colour, "opacity": {"expr": "bandwidth('x') > 34 ? 1 : 0"}}
    return {"mark": mark, "encoding": {"text": {"field": "median", "type": "quantitative", "format": ".3~g"}}}


def choice(fields: SpecFields) -> Spec:
    """Colour cells by what is fastest, pale where another is close."""
    keys, value, by = fields.some("facet", "y", "x"), fields.of("value"), fields.of("by")
    ranked = [{"op": "row_number", "as": "rank"}, {"op": "lead", "field": "median", "as": "second"},
              {"op": "lead", "field": by, "as": "runner_up"}]  # fmt: skip
    order = [{"field": "median"}, {"field": "place"}]  # equal times: the first in the order of names
    steps = [
        present([*keys, by, value]),
        {"aggregate": [summed("median", value, "median"), COUNT], "groupby": [*keys, by]},
        {"calculate": f"indexof(names, datum.{by})", "as": "place"},
        {"window": ranked, "groupby": keys, "sort": order, "frame": [None, None]},
        {"filter": "datum.rank == 1"},
        {"calculate": "datum.second / datum.median", "as": "lead"},
    ]
    lines = [
        *fields.tooltip_lines("facet", "y", "x"),
        tooltip_line(by, "fastest", None),
        tooltip_line("median", "time", "s"),
    ]
    lines += [
        tooltip_line("runner_up", "second", None),
        tooltip_line("lead", "times as long", ""),
        tooltip_line("rows", "rows", ""),
    ]
    pale = {"condition": {"test": f"datum.lead < {CLOSE}", "value": 0.45}, "value": 1}
    paper = {"expr": "paper"}
    rects = {"name": "drawn", "mark": {"type": "rect", "stroke": paper},
             "encoding": {**coloured(fields), "opacity": pale, "tooltip": lines}}  # fmt: skip
    seen = {"expr": "bandwidth('x') > 12 ? 1 : 0"}
    mark = {"type": "point", "filled": True, "size": 30, "color": paper, "opacity": seen}
    spec = {**_height(fields), **_faceted(fields, steps), "encoding": _cells(fields)}
    names = {"name": "names", "value": fields.series()}
    return spec | {"params": [*spec.get("params", []), names],
                   "layer": [rects, {"mark": mark, "encoding": marked(fields)}]}  # fmt: skip


def of_parts(fields: SpecFields) -> bool:
    """Whether x are parts of a time along an axis, not cells with names."""
    return fields.column("x").unit == "s" and len(distinct(fields.column("x"))) > MAX_CELLS


def _cells(fields: SpecFields) -> Spec:
    """Return both axes of a map; words stand from the top, numbers from the bottom."""
    column = fields.column("y")
    order = values_of(column) if column.labels is not None else values_of(column)[::-1]
    bare = {"labelOverlap": "parity", "ticks": False}
    upwards = {"field": fields.of("y"), "type": "ordinal", "sort": order,
               "axis": {**bare, "labelLimit": NAMES, "title": fields.words("y"), **column_format(column)}}  # fmt: skip
    if of_parts(fields):
        across = {"field": fields.of("x"), "type": "quantitative", "scale": {"nice": False, "zero": False},
                  "axis": axis(fields, "x") | {"grid": False}}  # fmt: skip
        return {"y": upwards, "x": across, "x2": {"field": "until"}}
    title = {"labelAngle": 0, "labelLimit": 120, "title": fields.words("x"), **column_format(fields.column("x"))}
    across = {"field": fields.of("x"), "type": "ordinal", "sort": values_of(fields.column("x")), "axis": bare | title}
    return {"y": upwards, "x": across}


def _height(fields: SpecFields) -> Spec:
    n = len(distinct(fields.column("y")))
    least, most = HIGH_ROWS
    each = min(most, max(least, HEIGHT // max(1, n)))
    if fields.column("y").labels is not None:
        each = ROW if n <= MANY_ROWS else LOW_ROW
    return {"height": max(2 * ROW, n * each)}


def _ends(fields: SpecFields) -> list[Spec]:
    """Describe where each part of a time ends: parts are equal."""
    if not of_parts(fields):
        return []
    values = distinct(fields.column("x"))
    step = float(values[-1] - values[0]) / (len(values) - 1)
    return [{"calculate": f"datum.{fields.of('x')} + {OVERLAP * step!r}", "as": "until"}]


def _faceted(fields: SpecFields, steps: list[Spec]) -> Spec:
    """Return the steps for one value of the facet, which is chosen above the figure; first one that is no ring."""
    if "facet" not in fields:
        return {"transform": steps}
    names = values_of(fields.column("facet"))
    others = [name for name in names if not str(name).startswith("ring")]
    bind = {"input": "select", "options": names, "name": f"{fields.words('facet')} "}
    one = {"name": "facet", "value": (others or names)[0], "bind": bind}
    return {"params": [one], "transform": [{"filter": f"datum.{fields.of('facet')} == facet"}, *steps]}
