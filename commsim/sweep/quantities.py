"""Values of parameters: text with a unit becomes an SI float with the kind of quantity that it is, and back."""

from __future__ import annotations

from typing import Any

from commsim.core.errors import InputError
from commsim.core.units import (
    parse_bandwidth,
    parse_cost,
    parse_size,
    parse_time,
    write_bandwidth,
    write_cost,
    write_size,
    write_time,
)

# Unit in which each kind of quantity is kept.
UNITS = {"bandwidth": "B/s", "time": "s", "size": "B", "cost": "s/B"}
# What a parameter may be.
KINDS = ("truth", "whole", "number", "text", *UNITS)
_PARSERS = {"bandwidth": parse_bandwidth, "time": parse_time, "size": parse_size, "cost": parse_cost}
_WRITERS = {"bandwidth": write_bandwidth, "time": write_time, "size": write_size, "cost": write_cost}


def read_quantity(text: str) -> tuple[float, str]:
    """Read text with a unit as (SI value, kind of quantity).

    Raises
    ------
    InputError
        If it is no rate, time, size or time per byte.
    """
    if text[:1].isdigit() or text[:1] == ".":
        for kind, parse in _PARSERS.items():
            try:
                return parse(text), kind
            except InputError:
                continue
    raise InputError(f"expected a quantity such as 400Gbps, 1.5us or 64MiB, got {text!r}")


def kind_of(value: Any) -> str:
    """Kind of a value in a file: ``truth``, ``whole``, ``number``, ``text``, or a quantity of :data:`UNITS`."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole"
    if isinstance(value, float):
        return "number"
    try:
        return read_quantity(value)[1]
    except InputError:
        return "text"


def joined_kind(kinds: set[str]) -> str | None:
    """Return the kind that values of several kinds have together; None if they do not fit in one column."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds <= {"whole", "number"}:
        return "number"
    return "text" if kinds <= {"text", *UNITS} else None


def as_kind(value: Any, kind: str) -> Any:
    """Return a value of a file as its column keeps it."""
    if kind in UNITS:
        return read_quantity(value)[0]
    return float(value) if kind == "number" else value


def write_value(value: Any, kind: str) -> str:
    """Write a value as the specs of topologies and collectives take it; it reads back as exactly the same."""
    if kind in _WRITERS:
        return _WRITERS[kind](value)
    if kind == "truth":
        return str(value).lower()
    return value if isinstance(value, str) else repr(value)
