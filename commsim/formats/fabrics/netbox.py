"""Cables as NetBox's interfaces for programs return them: REST of all versions, GraphQL, or a list of either.

References
----------
NetBox, "REST API" and "GraphQL API": ``/api/dcim/cables/``; ``a_terminations`` since 3.3, ``termination_a`` before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_json
from commsim.core.machines.nic_names import is_nic, split_nic

from .cable_list import PLANNED
from .cabling import MAX_BYTES, Cable, Cabling, End

# What a termination of another kind than an interface of a device is of: a circuit, a power feed.
_INTERFACE, _KIND = "dcim.interface", ("object_type", "termination_type")
# Objects that rows may lie in: results of REST, data and its only list of GraphQL.
_DEPTH = 3


def is_netbox(tree: object) -> bool:
    """Whether a file of JSON has cables of NetBox's interface for programs."""
    return bool(_rows(tree))


def _rows(tree: object, depth: int = _DEPTH) -> list[Any]:
    """Return the first list of cables in an object, or in what it holds."""
    if isinstance(tree, list):
        first = tree[0] if tree else None
        return tree if isinstance(first, Mapping) and any(key in first for key in _keys("a")) else []
    values = tree.values() if isinstance(tree, Mapping) and depth else ()
    return next((rows for value in values if (rows := _rows(value, depth - 1))), [])


def _keys(side: str) -> tuple[str, str]:
    return f"{side}_terminations", f"termination_{side}"


def read_netbox(path: str | Path) -> Cabling:
    """Read ``api/dcim/cables/?format=json``, or ``cable_list`` of GraphQL.

    Raises
    ------
    InputError
        If a row is no object, or it is one page of several.
    """
    tree: Any = read_json(path, MAX_BYTES)
    rows = _rows(tree)
    if not rows:
        raise InputError(f"{path}: expected a list of cables, or an object with results, which is one")
    if isinstance(tree, Mapping) and tree.get("next"):
        n = tree.get("count", "all")
        raise InputError(f"{path}: is one page, {len(rows)} of {n} cables; ask for all: api/dcim/cables/?limit=0")
    cabling, planned, others = Cabling(), 0, 0
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{path}: results[{i}] must be an object, got {type(row).__name__}")
        if _value(row.get("status")).lower().removeprefix("status_") in PLANNED:
            planned += 1
            continue
        ends = [[_netbox_end(one) for one in _terminations(row, side)] for side in "ab"]
        if any(end is None for side in ends for end in side) or not all(ends):
            others += 1
            continue
        for a, b in zip(*ends, strict=False):
            if a is not None and b is not None:
                cabling.add(Cable(a, b), f"{path}: results[{i}]")
    if planned:
        cabling.told.append(f"{planned} cables that are planned or taken away are left out")
    if others:
        cabling.told.append(f"{others} cables that do not join interfaces of two devices are left out")
    return cabling


def _terminations(row: Mapping[str, Any], side: str) -> Iterator[Any]:
    for key in _keys(side):
        found = row.get(key)
        kind = row.get(f"{key}_type")
        for one in found if isinstance(found, list) else [found] if isinstance(found, Mapping) else []:
            yield {_KIND[0]: kind, **one} if kind and isinstance(one, Mapping) else one


def _value(of: Any) -> str:
    return str(of.get("value", "")) if isinstance(of, Mapping) else str(of or "")


def _netbox_end(one: Any) -> End | None:
    """Return the end that a termination is; None of what is no interface of a device."""
    if not isinstance(one, Mapping) or any(one.get(key) not in (None, _INTERFACE) for key in _KIND):
        return None
    of = one.get("object", one)
    device = of.get("device") if isinstance(of, Mapping) else None
    if not isinstance(of, Mapping) or not isinstance(device, Mapping) or not (device.keys() & {"name", "display"}):
        return None
    name, port = str(device.get("name") or device.get("display")), str(of.get("name") or of.get("display") or "")
    host, nic = split_nic(name)
    return End(host, nic) if nic and not is_nic(port) else End(name, port)
