"""Tables as files that other programs read: CSV, JSON, Parquet."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.formats.files import replacing, write_json

from .shard import DESCRIPTION, require_pyarrow, write_parquet

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".csv", ".json", ".parquet")


def require_suffix(path: str | Path) -> str:
    """Return the suffix of a file that a table can be written as.

    Raises
    ------
    InputError
        If it is another one, or the name is that of a file of results.
    """
    suffix, name = Path(path).suffix, Path(path).name
    if name == DESCRIPTION or name.startswith("part-"):
        raise InputError(f"{path}: results of sweeps have files by that name; give another one")
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a table is written as {', '.join(SUFFIXES)}")
    return suffix


def write_table(table: pyarrow.Table, path: str | Path) -> None:
    """Write a table; the file appears whole or not at all. What is missing is empty in CSV and null in JSON.

    Raises
    ------
    InputError
        If the suffix is unknown, or the file cannot be written.
    """
    suffix, path = require_suffix(path), Path(path)
    about = json.loads((table.schema.metadata or {}).get(b"commsim", b"{}"))
    if suffix == ".parquet":
        write_parquet(path, table, about)
    elif suffix == ".json":
        rows = [{key: _finite(value) for key, value in row.items()} for row in table.to_pylist()]
        write_json(path, {"schema": 1, "config": about, "results": rows})
    else:
        _write_csv(table, path)


def _write_csv(table: pyarrow.Table, path: Path) -> None:
    require_pyarrow()
    import pyarrow.csv

    with replacing(path) as out:
        pyarrow.csv.write_csv(table, out)


def _finite(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)  # dates, decimals and lists that a query made
