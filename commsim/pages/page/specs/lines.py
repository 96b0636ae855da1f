"""Figures over two axes: lines between bounds, shares of rows within a time, predictions over measurements."""

from __future__ import annotations

import numpy as np

from commsim.pages.figure import without_unit
from commsim.pages.figure_tables import distinct, format_value
from commsim.pages.figures_of_rows import BAND

from .fields import (
    COUNT,
    INK,
    Spec,
    SpecFields,
    axis,
    axis_of_data,
    coloured,
    marked,
    positive,
    present,
    scale,
    selections,
    summed,
    told_columns,
    tooltip_line,
    unit_of,
    visible_series,
)

# Lines at rates; points of x of which each is marked.
MAX_RATES, MAX_MARKED = 6, 48
# Share of the axis below which a second name of a dashed line would cover the first.
LEAST_APART = 0.08
CROSS = "M-1,-1L1,1M-1,1L1,-1"
DASHED = {"type": "rule", "strokeDash": [6, 4], "color": INK}


def curves(fields: SpecFields) -> Spec:
    """Draw lines of medians between least and greatest, measured points, and dashed lines at rates."""
    across = {"field": fields.of("x"), "type": "quantitative", "scale": scale(fields, "x")}
    across |= {"axis": axis_of_data(fields, "x")}
    upwards = {"type": "quantitative", "scale": scale(fields, "y"), "axis": axis(fields, "y")}
    keys, value = fields.some("by", "x"), fields.of("y")
    low, high = (fields.of(role) if role in fields else value for role in ("low", "high"))
    sums = [summed("median", value, "median"), summed("min", low, "least"), summed("max", high, "greatest"), COUNT]
    medians = {
        "transform": [present([*keys, value]), {"aggregate": sums, "groupby": keys}], "encoding": {"x": across},
        "layer": _medians(fields, upwards),
    }  # fmt: skip
    layers = [medians, *_measured(fields, across, upwards), *_rules(fields, upwards)]
    return {"layer": layers, "resolve": {"legend": {"color": "shared"}}}


def _medians(fields: SpecFields, upwards: Spec) -> list[Spec]:
    series, hidden = coloured(fields), visible_series(fields)
    line = {"name": "drawn", "params": selections(fields), "transform": hidden,
            "mark": {"type": "line", "strokeWidth": 1.7},
            "encoding": {"y": {"field": "median", **upwards}, **series}}  # fmt: skip
    band = {"transform": hidden, "mark": {"type": "area", "opacity": 0.15},
            "encoding": {"y": {"field": "least", **upwards}, "y2": {"field": "greatest"}, **series}}  # fmt: skip
    unit = unit_of(fields.column("y"))
    words = {"median": fields.words("y"), "least": "least", "greatest": "greatest"}
    lines = [*fields.tooltip_lines("by", "x"), *(tooltip_line(name, word, unit) for name, word in words.items())]
    lines.append(tooltip_line("rows", "rows", ""))
    few = len(distinct(fields.column("x"))) <= MAX_MARKED
    marks = {
        "transform": [*hidden, *positive(fields, x=fields.of("x"), y="median")],
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1 if few else 0},
        "encoding": {
            "y": {"field": "median", **upwards},
            "tooltip": lines,
            **series,
            **(marked(fields) if few else {}),
        },
    }
    return [line, band, marks]


def _measured(fields: SpecFields, across: Spec, upwards: Spec) -> list[Spec]:
    """Draw crosses at what was measured, from a table of its own."""
    points, roles = fields.figure.points, fields.figure.roles
    if points is None or not {roles["x"], roles["y"]} <= set(points):
        return []
    names = {name: f"f{i}" for i, name in enumerate(points)}
    x, y = names[roles["x"]], names[roles["y"]]
    lines = told_columns(points, names)
    lines[int(y[1:])]["title"] = f"measured {without_unit(roles['y'])}"
    encoding = {"x": {**across, "field": x}, "y": {**upwards, "field": y}, "tooltip": lines}
    mark = {"type": "point", "shape": CROSS, "stroke": INK, "strokeWidth": 1.6, "size": 60}
    steps = [present([x, y]), *positive(fields, x=x, y=y)]
    return [{"data": {"name": "points"}, "transform": steps, "mark": mark, "encoding": encoding}]


def _rules(fields: SpecFields, upwards: Spec) -> list[Spec]:
    """Draw dashed lines at the rates of links, or at the level of a figure, with names where there is room."""
    figure = fields.figure
    at = {float(v): f"line rate {format_value(float(v), 'B/s')}" for v in _rates(fields)}
    if figure.level is not None:
        at[figure.level] = figure.wording["level"]
    if not at:
        return []
    top = max([*at, float(np.nanmax(fields.column("y").values))])
    named, free = [], -np.inf
    for value, text in sorted(at.items()):
        named.append({"at": value, "name": text, "text": text if value / top > free else ""})
        free = value / top + LEAST_APART if value / top > free else free
    height = {"y": {"field": "at", **upwards}}
    lines = {"tooltip": [tooltip_line("name", fields.words("y"), None)]}
    written: Spec = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "dy": 3, "x": 0, "color": INK}
    return [
        {"data": {"values": named}, "mark": dict(DASHED), "encoding": height | lines},
        {"data": {"values": named}, "mark": written, "encoding": height | {"text": {"field": "text"}}},
    ]


def _rates(fields: SpecFields) -> list[float]:
    if "rule" not in fields:
        return []
    values = distinct(fields.column("rule")).tolist()
    return values if len(values) <= MAX_RATES else [values[0], values[-1]]


def cdf(fields: SpecFields) -> Spec:
    """Draw the share of rows that are not larger than each value, as steps."""
    x, by, word = fields.of("x"), fields.some("by"), fields.figure.wording.get("y", "share")
    share = [
        present([x, *by]),
        {"window": [{"op": "row_number", "as": "place"}], "groupby": by, "sort": [{"field": x}]},
        {"joinaggregate": [{"op": "count", "as": "n"}], "groupby": by},
        {"calculate": "datum.place / datum.n", "as": "share"},
        *positive(fields, x=x),
    ]
    across = {"field": x, "type": "quantitative", "scale": scale(fields, "x"), "axis": axis(fields, "x")}
    upwards = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1]},
               "axis": {"title": word, "format": ".0%", "tickCount": 5}}  # fmt: skip
    series = coloured(fields)
    dashes = {"strokeDash": series["color"]} if by else {}
    line = {"name": "drawn", "params": selections(fields), "transform": visible_series(fields),
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.7},
            "encoding": {**series, **dashes, "order": {"field": "share"}}}  # fmt: skip
    lines = [*fields.tooltip_lines("by", "x"), tooltip_line("share", word, "%")]
    some = {"filter": "datum.place % ceil(datum.n / 200) == 0"}
    hover = {"transform": [*visible_series(fields), some], "encoding": {"tooltip": lines},
             "mark": {"type": "point", "size": 90, "opacity": 0, "filled": True}}  # fmt: skip
    return {"transform": share, "encoding": {"x": across, "y": upwards}, "layer": [line, hover]}


def scatter(fields: SpecFields) -> Spec:
    """Draw predictions over measurements, around a band of what is close."""
    across, upwards = (
        {"field": fields.of(role), "type": "quantitative", "scale": scale(fields, role), "axis": axis(fields, role)}
        for role in ("x", "y")
    )
    lines = told_columns(fields.figure.table, fields.names)
    marks = {
        "name": "drawn", "params": selections(fields), "mark": {"type": "point", "filled": True, "size": 45},
        "transform": [*visible_series(fields), *positive(fields, x=fields.of("x"), y=fields.of("y"))],
        "encoding": {"x": across, "y": upwards, "tooltip": lines, **coloured(fields), **marked(fields)},
    }  # fmt: skip
    return {"layer": [*_band(upwards), marks]}


def _band(upwards: Spec) -> list[Spec]:
    """Draw the band of what is close, a line where both are equal, and nothing a little above and below."""
    edges = {"values": [{"low": 1 - BAND, "high": 1 + BAND, "one": 1, "least": 1 - 2 * BAND, "most": 1 + 2.5 * BAND}]}
    band = {"data": edges, "mark": {"type": "rect", "color": {"expr": "band"}},
            "encoding": {"y": {**upwards, "field": "low"}, "y2": {"field": "high"}}}  # fmt: skip
    rules = (("least", {"type": "rule", "opacity": 0}), ("most", {"type": "rule", "opacity": 0}), ("one", DASHED))
    return [band, *({"data": edges, "mark": mark, "encoding": {"y": {**upwards, "field": field}}}
                    for field, mark in rules)]  # fmt: skip
