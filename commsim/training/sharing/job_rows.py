"""Rows of jobs: of a file that holds a list or the form of the service, or of a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.files.fields import Keys


def rows_of(tree: object, source: str | Path) -> tuple[object, str | Path, Keys]:
    """Return the rows of a file of jobs, with the names that messages give to it and to the place of its list."""
    if isinstance(tree, dict) and "jobs" in tree and not {*tree} - {"jobs", "version"}:
        return tree["jobs"], source, ("jobs",)
    return tree, source, ()


def rows_of_frame(table: object) -> object:
    """Return the rows of a data frame of pandas or polars, without empty fields; anything else as it is."""
    if hasattr(table, "to_dicts"):
        rows = table.to_dicts()
    elif hasattr(table, "iterrows") and hasattr(table, "to_dict"):
        rows = table.to_dict("records")
    else:
        return table
    return [{key: value for key, value in row.items() if value is not None and value == value} for row in rows]


def plain(value: Any) -> Any:
    """Return tuples, mappings, arrays and numbers of NumPy, such as the places of a candidate, as a file has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (tuple, list)) else value
