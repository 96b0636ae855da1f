"""One parameter of a sweep: a value, a list of values, or a range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError

from .quantities import UNITS, as_kind, joined_kind, kind_of

MAX_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Axis:
    """Values of one parameter.

    Parameters
    ----------
    name : str
        Table and key: ``topology.bandwidth``.
    kind : str
        ``truth``, ``whole``, ``number``, ``text`` or a kind of quantity.
    values : tuple
        What it may be, in SI units; of a range without steps the two ends.
    scale : {"", "linear", "log"}
        How a sample is spread over a range without steps; empty for a list.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    scale: str = ""

    def at(self, share: float) -> Any:
        """Value at a place between 0 and 1, as a sample draws it."""
        if not self.scale:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        low, high = self.values
        if self.kind == "whole":
            return min(math.floor(_between(low, high + 1, self.scale, share)), high)
        return _rounded(_between(low, high, self.scale, share), self.kind)


def read_axis(name: str, value: Any, kind: str, sampled: bool) -> Axis:
    """Read one parameter's values from a file.

    Parameters
    ----------
    name : str
        Table and key.
    value : Any
        A value, a list, or a table ``{from, to, scale, steps}``.
    kind : str
        Kind from :func:`kind_in`, of all values that this parameter has anywhere in the file.
    sampled : bool
        Whether ranges are drawn from (no steps), or walked in steps.

    Raises
    ------
    InputError
        If a range or a list makes no sense.
    """
    if isinstance(value, Mapping):
        return _read_range(name, value, kind, sampled)
    values = value if isinstance(value, list) else [value]
    if not 1 <= len(values) <= MAX_VALUES:
        raise InputError(f"{name} must have 1 to {MAX_VALUES} values, got {len(values)}")
    members = tuple(as_kind(value, kind) for value in values)
    if len(set(members)) != len(members):
        twice = next(value for i, value in enumerate(members) if value in members[:i])
        raise InputError(f"{name} has the value {twice!r} twice")
    return Axis(name, kind, members)


def kind_in(name: str, everything: list[Any]) -> str:
    """Kind of all values of one parameter, in all its cases.

    Raises
    ------
    InputError
        If a value is none of a sweep's, or numbers, text and different quantities are mixed.
    """
    kinds = set()
    for given in everything:
        if isinstance(given, Mapping):
            values = [given[key] for key in ("from", "to") if key in given]
        else:
            values = given if isinstance(given, list) else [given]
        for value in values[:MAX_VALUES]:
            if not isinstance(value, (bool, int, float, str)) or value in (math.inf, -math.inf) or value != value:
                raise InputError(f"{name} must be numbers, text, true or false, got {value!r}")
            if isinstance(value, int) and abs(value) >= 2**63:
                raise InputError(f"{name} must fit 64 bits, got {value}")
            kinds.add(kind_of(value))
    kind = joined_kind(kinds) if kinds else None
    if kind is None:
        raise InputError(f"{name} must have values of one kind, got {' and '.join(sorted(kinds)) or 'none'}")
    return kind


def _read_range(name: str, table: Mapping[str, Any], kind: str, sampled: bool) -> Axis:
    unknown = set(table) - {"from", "to", "scale", "steps"}
    if unknown or not {"from", "to"} <= set(table):
        raise InputError(f"{name} must be {{from = ..., to = ..., scale = ..., steps = ...}}, got {dict(table)!r}")
    if kind not in ("whole", "number", *UNITS):
        raise InputError(f"{name} must have a range of numbers or quantities, got {dict(table)!r}")
    low, high, scale = as_kind(table["from"], kind), as_kind(table["to"], kind), table.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise InputError(f"{name}: scale must be linear or log, got {scale!r}")
    if not low < high or (scale == "log" and (low <= 0 or high / low == float("inf"))):
        positive = "positive and " if scale == "log" else ""
        raise InputError(f"{name} must have a range with from {positive}below to, got {dict(table)!r}")
    if sampled:
        if "steps" in table:
            raise InputError(f'{name}: steps belong to sample = "grid"; a sample draws from the whole range')
        return Axis(name, kind, (low, high), scale)
    steps = table.get("steps")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 2 <= steps <= MAX_VALUES:
        raise InputError(f"{name}: a range in a grid has steps = 2 to {MAX_VALUES}, got {steps!r}")
    values = [_rounded(_between(low, high, scale, i / (steps - 1)), kind) for i in range(steps)]
    values[0], values[-1] = low, high
    if len(set(values)) != steps:
        raise InputError(f"{name} has only {len(set(values))} different values in {steps} steps; give fewer steps")
    return Axis(name, kind, tuple(values))


def _between(low: float, high: float, scale: str, share: float) -> float:
    if scale == "log":
        return float(low * (high / low) ** share)
    return low + (high - low) * share


def _rounded(value: float, kind: str) -> Any:
    """Round a size to whole bytes, other numbers to twelve digits, so that 1e3 stays what it is."""
    if kind == "whole":
        return round(value)
    return float(round(value)) if kind == "size" else float(f"{value:.12g}")
