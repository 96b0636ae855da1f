"""What specifications of all kinds share: fields, axes, series that a click in the legend hides, zoom, tooltips."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from commsim.pages.figure import Figure, without_unit
from commsim.pages.figure_tables import UNITS, Column, FigureTable, distinct
from commsim.pages.palette import EFFECTS

Spec = dict[str, Any]
HEIGHT = 260
# Pixels of a row of a map or a timeline.
ROW = 15
# Most values of an axis that get a tick each.
MAX_TICKS = 64
# Room of the names beside an axis, and columns of a legend.
NAMES = {"expr": "min(230, 0.4 * containerSize()[0])"}
LEGEND_COLUMNS = {"expr": "max(1, floor(containerSize()[0] / 240))"}
COUNT = {"op": "count", "as": "rows"}
INK = {"expr": "ink"}


def columns_of(figure: Figure) -> list[str]:
    """Names of the columns that a figure draws, in the order of their fields."""
    names = [*figure.roles.values()]
    if figure.kind in ("scatter", "spans"):
        names += figure.table
    return list(dict.fromkeys(names))


class SpecFields:
    """Names of a figure's columns in a specification, and what is written of them."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.names = {name: f"f{i}" for i, name in enumerate(columns_of(figure))}

    def __contains__(self, role: str) -> bool:
        return role in self.figure.roles

    def of(self, role: str) -> str:
        """Name of the field of a role."""
        return self.names[self.figure.roles[role]]

    def some(self, *roles: str) -> list[str]:
        """Names of the fields of those roles that the figure has."""
        return [self.of(role) for role in roles if role in self]

    def column(self, role: str) -> Column:
        """Return the column of a role."""
        return self.figure.table[self.figure.roles[role]]

    def words(self, role: str) -> str:
        """Return the label of a role."""
        return self.figure.wording[role]

    def tooltip_lines(self, *roles: str) -> list[Spec]:
        """Return the lines of a tooltip that say the values of roles."""
        return [
            tooltip_line(self.of(role), self.words(role), unit_of(self.column(role))) for role in roles if role in self
        ]

    def series(self) -> list[Any]:
        """Names of the series, in their order; those of numbers are the numbers."""
        names = values_of(self.column("by"))
        return [name for name in EFFECTS if name in names] if set(names) <= set(EFFECTS) else names


def tooltip_line(field: str, title: str, unit: str | None) -> Spec:
    """Return a line of a tooltip; the unit of words is None."""
    return {"field": field, "title": title, "unit": unit}


def told_columns(table: FigureTable, names: dict[str, str]) -> list[Spec]:
    """Return the lines of a tooltip that say the values of columns, by the names of their fields."""
    return [tooltip_line(field, without_unit(name), unit_of(table[name])) for name, field in names.items()]


def unit_of(column: Column) -> str | None:
    """Return the unit of the numbers of a column, one of ours or none; None for words."""
    if column.labels is not None:
        return None
    return column.unit if column.unit in UNITS.values() else ""


def values_of(column: Column) -> list[Any]:
    """Different words or numbers of a column, in their order."""
    values = distinct(column).tolist()
    return [column.labels[int(v)] for v in values] if column.labels is not None else values


def column_format(column: Column) -> Spec:
    """Describe how the values of a column are written on an axis or in a legend."""
    unit = unit_of(column)
    return {} if unit is None else {"formatType": "quantity", "format": unit}


def summed(op: str, field: str, name: str) -> Spec:
    """Return one sum of an aggregation."""
    return {"op": op, "field": field, "as": name}


def present(fields: list[str]) -> Spec:
    """Leave out rows in which one of the fields is missing."""
    return {"filter": " && ".join(f"isValid(datum.{field})" for field in fields)}


def positive(fields: SpecFields, **named: str) -> list[Spec]:
    """Leave out what a logarithmic axis cannot show: fields by the role of their axis."""
    return [{"filter": f"datum.{named[role]} > 0"} for role in sorted(fields.figure.logarithmic & named.keys())]


def coloured(fields: SpecFields) -> Spec:
    """Colour by series; a series keeps its colour whatever is filtered."""
    if "by" not in fields:
        return {}
    legend = {"title": None, "columns": LEGEND_COLUMNS, **column_format(fields.column("by"))}
    scale = {"domain": fields.series()}
    return {"color": {"field": fields.of("by"), "type": "nominal", "scale": scale, "legend": legend}}


def marked(fields: SpecFields) -> Spec:
    """Return marks by series, in the legend of their colours."""
    return {"shape": coloured(fields)["color"]} if "by" in fields else {}


def selections(fields: SpecFields) -> list[Spec]:
    """Return what people change: the part of the x axis, and in the legend which series are shown.

    Drag moves, the wheel zooms while shift is held (without it the page scrolls), a double click shows all.
    """
    how = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"}
    zoom: Spec = {"name": "zoom", "select": how, "bind": "scales"}
    if "by" not in fields:
        return [zoom]
    field = fields.of("by")
    select = {"type": "point", "fields": [field], "toggle": "true"}
    every = [{field: name} for name in fields.series()]
    return [zoom, {"name": "shown", "select": select, "bind": "legend", "value": every}]


def visible_series(fields: SpecFields) -> list[Spec]:
    """Leave out the series that a click in the legend has hidden."""
    return [{"filter": {"param": "shown"}}] if "by" in fields else []


def scale(fields: SpecFields, role: str) -> Spec:
    """Return the scale of an axis: logarithmic if the figure says so, with base 2 for sizes and ranks."""
    if role not in fields.figure.logarithmic:
        return {"zero": role == "y", "nice": role == "y"}
    values, unit = distinct(fields.column(role)), unit_of(fields.column(role))
    binary = unit == "B" or (unit == "" and bool((values == np.rint(values)).all()))
    return {"type": "log", "base": 2 if binary else 10, "nice": False, "padding": 8}


def axis(fields: SpecFields, role: str) -> Spec:
    """Return an axis with round numbers as ticks."""
    unit = unit_of(fields.column(role)) or ""
    logarithmic = json.dumps(role in fields.figure.logarithmic)
    ticks = {"expr": f"axisTicks(domain('{role}'), '{unit}', {logarithmic})"}
    title = {"title": fields.words(role), "labelOverlap": "parity", "labelSeparation": 6}
    return {**title, "formatType": "quantity", "format": unit, "values": ticks}


def axis_of_data(fields: SpecFields, role: str) -> Spec:
    """Return an axis whose ticks stand at the values of the data, where these are few and no times."""
    values, unit = values_of(fields.column(role)), unit_of(fields.column(role))
    return axis(fields, role) | ({"values": values} if len(values) <= MAX_TICKS and unit != "s" else {})
