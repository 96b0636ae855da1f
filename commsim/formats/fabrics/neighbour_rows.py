"""Neighbours of LLDP as rows of a database: ``netq show lldp json``, and what SuzieQ exports, a row for each port.

A row names a box, its port, the neighbour and that one's port. Names of fields are written in several ways
(``peer_hostname``, ``peerHostname``); rates are not in it.

References
----------
NVIDIA Cumulus NetQ, user guide, "LLDP": ``netq show lldp``, columns Hostname, Interface, Peer Hostname, Peer Interface.
SuzieQ, schema of ``lldp``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_json

from .cabling import MAX_BYTES, MAX_CABLES, Cable, Cabling, End

# Where rows stand, and fields in small letters without signs.
_TABLES = ("lldp", "data", "results", "items")
_FIELDS = {
    "hostname": "device", "host": "device", "ifname": "port", "interface": "port", "port": "port",
    "peerhostname": "far", "peerhost": "far", "neighbor": "far", "peerifname": "far_port", "peerinterface": "far_port",
    "peerport": "far_port",
}  # fmt: skip
_ALL = set(_FIELDS.values())


def is_neighbour_rows(tree: object) -> bool:
    """Whether a file of JSON is such a table."""
    rows = _rows_in(tree)
    return bool(rows) and isinstance(rows[0], Mapping) and _fields_of(rows[0]).keys() == _ALL


def read_neighbour_rows(path: str | Path) -> Cabling:
    """Read a table; both ends of a cable may have a row.

    Raises
    ------
    InputError
        If a row lacks a field, or no row has a neighbour.
    """
    cabling, seen = Cabling(), set[frozenset[End]]()
    for number, row in enumerate(_rows_in(read_json(Path(path), MAX_BYTES)), 1):
        fields = _fields_of(row) if isinstance(row, Mapping) else {}
        if missing := _ALL - fields.keys():
            raise InputError(f"{path}, row {number}: lacks {', '.join(sorted(missing))}; has {str(row)[:80]}")
        near, far = End(fields["device"], fields["port"]), End(fields["far"], fields["far_port"])
        both = frozenset((near, far))
        if not far.device or both in seen:
            continue
        seen.add(both)
        if len(seen) > MAX_CABLES:
            raise InputError(f"{path}: more than {MAX_CABLES} cables")
        cabling.add(Cable(near, far), f"{path}, row {number}")
    if not cabling.cables:
        raise InputError(f"{path}: has no row with a neighbour")
    return cabling


def _rows_in(tree: Any) -> list[Any]:
    if isinstance(tree, Mapping):
        tree = next((tree[name] for name in _TABLES if isinstance(tree.get(name), list)), [])
    return tree if isinstance(tree, list) else []


def _fields_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that are known, as text."""
    known = {_FIELDS.get(re.sub(r"[\W_]", "", str(key)).lower(), ""): str(value) for key, value in row.items()}
    known.pop("", None)
    return known
