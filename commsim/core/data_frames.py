"""Rows of results as a data frame of pandas or polars, whichever is there."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import InputError

LIBRARIES = ("pandas", "polars")


def frame_of(rows: Iterable[Mapping[str, Any]], library: str | None = None) -> Any:
    """Return rows as a data frame; what is nested gets a column each, with a dot in its name.

    Parameters
    ----------
    rows : iterable of mapping
        A value by name, as the JSON of the command line has them.
    library : {"pandas", "polars"}, optional
        Default: pandas if it is installed, else polars.

    Raises
    ------
    InputError
        If the library is another one, or is not installed.
    """
    if library not in (None, *LIBRARIES):
        raise InputError(f"library must be one of {', '.join(LIBRARIES)}, got {library!r}")
    wanted = LIBRARIES if library is None else (library,)
    found = next((name for name in wanted if importlib.util.find_spec(name) is not None), None)
    if found is None:
        package = "'commsim[frames]'" if wanted[0] == "pandas" else wanted[0]
        raise InputError(f"a data frame needs {' or '.join(wanted)}: pip install {package}")
    flat = flat_rows(rows)
    if found == "pandas":
        return importlib.import_module("pandas").DataFrame(flat)
    names = names_of(flat)  # polars wants all columns in every row
    return importlib.import_module("polars").DataFrame([{name: row.get(name) for name in names} for row in flat])


def flat_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in which what was nested has a name each, with a dot in it."""
    return [dict(_flat(row)) for row in rows]


def names_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of all values of flat rows, each once, in the order in which they come first."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _flat(row: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
