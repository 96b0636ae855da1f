"""Measured curves as tables of a network file: times by size, with units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.curves import STEPS, Curve, Curves
from commsim.core.errors import InputError
from commsim.core.units import parse_size, parse_time, write_size, write_time

from .fields import TableFields

DATA = ("fresh", "relayed")
_TIMES = ("seconds", "occupancy", "low", "high")


def curves_tree(curves: Curves) -> dict[str, Any]:
    """Return what :func:`read_curves` reads."""
    return {
        "machine": curves.machine,
        **({"mark": curves.mark} if curves.mark else {}),
        "steps": [_step_tree(curve) for curve in curves.curves],
    }


def read_curves(table: TableFields) -> Curves:
    """Read the table ``curves`` of a network file.

    Parameters
    ----------
    table : TableFields
        Table with ``machine``, perhaps a ``mark``, and a list of ``steps``.

    Raises
    ------
    InputError
        If a field is missing, unknown or wrong, a curve has one size only, or descends.
    """
    machine, mark = table.text("machine", ""), table.text("mark", "")
    curves = tuple(_read_step(fields) for fields in table.tables("steps"))
    table.finish()
    try:
        return Curves(curves, machine, mark)
    except InputError as error:
        table.fail("steps", f": {error}")


def _step_tree(curve: Curve) -> dict[str, Any]:
    case: dict[str, Any] = {"step": curve.step}
    if curve.step in ("copy", "reduce"):
        case |= {"ways": 2 if curve.two_way else 1, "data": DATA[curve.relayed]}
    if curve.working_set:
        case["working_set"] = write_size(curve.working_set)
    columns = {name: [write_time(float(t)) for t in getattr(curve, name)] for name in _TIMES}
    for name in _TIMES[1:]:
        if columns[name] == columns["seconds"]:
            del columns[name]
    return case | {"size": [write_size(float(size)) for size in curve.size]} | columns


def _read_step(fields: TableFields) -> Curve:
    step = fields.one_of("step", STEPS)
    ways, data = fields.whole("ways", 1, 2, 1), fields.one_of("data", DATA, DATA[0])
    working_set = fields.quantity("working_set", parse_size, 0.0)
    size = _column(fields, "size", parse_size)
    times = {name: _column(fields, name, parse_time) for name in _TIMES if name in fields or name == "seconds"}
    fields.finish()
    for name, values in times.items():
        if len(values) != len(size):
            fields.fail(name, f"must have one time for each of {len(size)} sizes, got {len(values)}")
    try:
        return Curve(step, ways == 2, data == DATA[1], working_set, size, **times)
    except InputError as error:
        fields.fail(None, f": {error}")


def _column(fields: TableFields, key: str, parse: Callable[[str, str], float]) -> NDArray[np.float64]:
    values = fields.items(key, str, "text with a unit")
    out = np.empty(len(values))
    for i, text in enumerate(values):
        try:
            out[i] = parse(text, "")
        except InputError as error:
            fields.member(key, i, str(error).strip())
    return out
