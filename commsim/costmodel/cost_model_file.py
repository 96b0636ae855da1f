"""The file of a cost model: what it holds, its JSON Schema, and how it is written and read."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, shorten
from commsim.core.files.whole_files import read_tree, replacing
from commsim.core.units import format_size

from .evaluators.cost_model import FORMAT, VERSION

# Largest file, bytes.
MAX_BYTES = 2**20
# Beyond any size in bytes or time in s.
MAX_NUMBER = 1e30
COLUMNS = ("size", "time", "low", "high")


@functools.cache
def schema() -> Any:
    """Return the JSON Schema of the file."""
    text = resources.files("commsim.costmodel") / "cost_model.schema.json"
    return json.loads(text.read_text(encoding="utf-8"))


def text_of(head: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a file: a curve to a line.

    Parameters
    ----------
    head : mapping
        What stands above the curves.
    curves : sequence of mapping
        Curves.
    """
    lines = [
        f" {json.dumps(key)}: {_compact(value)},"
        for key, value in {"format": FORMAT, "version": VERSION, **head}.items()
    ]
    listed = ",\n".join(f"  {_compact(curve)}" for curve in curves)
    return "\n".join(["{", *lines, ' "curves": [', listed, " ]", "}", ""])


def write_cost_model(path: str, text: str) -> None:
    """Write a file.

    Raises
    ------
    InputError
        If it is larger than ``MAX_BYTES``.
    """
    n = len(text.encode())
    if n > MAX_BYTES:
        raise InputError(
            f"{path}: the cost model has {format_size(n)}, more than {format_size(MAX_BYTES)}; name fewer --operation, "
            "--machines or --gpus, or a larger --tolerance"
        )
    with replacing(Path(path)) as file:
        file.write(text.encode())


def read_cost_model(path: str) -> dict[str, Any]:
    """Read a file, and check what evaluators rely on.

    Raises
    ------
    InputError
        If the file is no cost model, is of another version, or a curve is wrong.
    """
    tree = read_tree(path)
    if tree.get("format") != FORMAT:
        raise InputError(f"{path}: no cost model: format must be {FORMAT!r}, got {shorten(repr(tree.get('format')))}")
    if tree.get("version") != VERSION:
        raise InputError(f"{path}: version must be {VERSION}, got {shorten(repr(tree.get('version')))}")
    curves = tree.get("curves")
    if not isinstance(curves, list) or not curves:
        raise InputError(f"{path}: curves must be a list of at least one")
    for i, curve in enumerate(curves):
        _check_curve(f"{path}: curves[{i}]", curve, tree.get("largest_size"))
    return tree


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_NUMBER


def _column(where: str, key: str, column: Any) -> list[float]:
    if not isinstance(column, list) or not column or not all(map(_is_number, column)):
        raise InputError(f"{where}.{key} must be numbers, as many as sizes")
    return column


def _check_curve(where: str, curve: Any, largest: Any) -> None:
    """Refuse a curve whose columns do not fit, or whose sizes do not ascend."""
    if not isinstance(curve, dict):
        raise InputError(f"{where}: expected a table, got {shorten(repr(curve))}")
    for key, kind in (("operation", str), ("machines", int), ("gpus", int), ("faults", str)):
        if type(curve.get(key)) is not kind:
            raise InputError(f"{where}.{key} must be {'text' if kind is str else 'a whole number'}")
    sizes = _column(where, "size", curve.get("size"))
    for key in COLUMNS:
        if len(_column(where, key, curve.get(key, curve.get("time")))) != len(sizes):
            raise InputError(f"{where}.{key} must be numbers, as many as sizes")
    if any(b <= a for a, b in pairwise(sizes)) or sizes[-1] != largest:
        raise InputError(f"{where}.size must ascend, up to largest_size")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
