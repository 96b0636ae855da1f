"""Timelines: a lane per rank or link, a bar per message."""

from __future__ import annotations

import dataclasses

import numpy as np

from commsim.pages.figure import Figure
from commsim.pages.figure_tables import distinct, number_column

from .fields import (
    INK,
    NAMES,
    ROW,
    Spec,
    SpecFields,
    axis,
    coloured,
    selections,
    told_columns,
    values_of,
    visible_series,
)

# Share of a lane that stays free above and below its bars.
EDGE = 0.08


def with_positions(figure: Figure) -> Figure:
    """Add to a timeline where its bars stand, in lanes from the top; other figures are as they were."""
    if figure.kind != "spans":
        return figure
    lanes, level = figure.table[figure.roles["y"]], figure.table[figure.roles["level"]].values
    lane = np.searchsorted(distinct(lanes), lanes.values)
    depth = np.ones(int(lane.max(initial=0)) + 1)
    np.maximum.at(depth, lane, level + 1)
    height = (1 - 2 * EDGE) / depth[lane]
    top = lane + EDGE + level * height
    ends = (number_column("bar_top", top, ""), number_column("bar_bottom", top + height, ""))
    roles = {**figure.roles, "top": "bar_top", "bottom": "bar_bottom"}
    return dataclasses.replace(figure, table=figure.table.beside(*ends), roles=roles)


def spans(fields: SpecFields) -> Spec:
    """Draw a bar for each message in the lane of its rank or link; what is critical is outlined."""
    names, path = values_of(fields.column("y")), f"datum.{fields.of('mark')} > 0"
    until = float(np.nanmax(fields.column("end").values))
    across = {"field": fields.of("x"), "type": "quantitative", "scale": {"domain": [0, until], "nice": False},
              "axis": axis(fields, "x")}  # fmt: skip
    bars = {
        "name": "drawn", "params": selections(fields), "transform": visible_series(fields),
        "mark": {"type": "rect", "clip": True, "strokeWidth": 1},
        "encoding": {
            "x": across, "x2": {"field": fields.of("end")}, "y": _lanes(fields, names),
            "y2": {"field": fields.of("bottom")}, **coloured(fields), "tooltip": _tooltip(fields),
            "stroke": {"condition": {"test": path, "value": INK}, "value": None},
            "opacity": {"condition": {"test": f"fade && !({path})", "value": 0.25}, "value": 0.85},
        },
    }  # fmt: skip
    fade = {"name": "fade", "value": False, "bind": {"input": "checkbox", "name": "fade what is not critical "}}
    return {"height": ROW * len(names) + 10, "params": [{"name": "names", "value": names}, fade], "layer": [bars]}


def _lanes(fields: SpecFields, names: list[str]) -> Spec:
    """Return the axis of lanes, each with its name in its middle."""
    middles = [i + 0.5 for i in range(len(names))]
    written = {"values": middles, "labelExpr": "names[floor(datum.value)]", "labelLimit": NAMES, "title": None}
    scale = {"domain": [0, len(names)], "reverse": True, "nice": False}
    return {"field": fields.of("top"), "type": "quantitative", "scale": scale,
            "axis": {**written, "labelOverlap": "parity", "ticks": False, "grid": False}}  # fmt: skip


def _tooltip(fields: SpecFields) -> list[Spec]:
    placed = {fields.figure.roles[role] for role in ("y", "level", "top", "bottom")}
    others = {name: field for name, field in fields.names.items() if name not in placed}
    return [*fields.tooltip_lines("y"), *told_columns(fields.figure.table, others)]
