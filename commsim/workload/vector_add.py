"""How long a GPU takes to add two vectors: from a table of measurements, or at a given rate."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError


def read_vector_add(path: str | Path) -> Callable[[float], float]:
    """Read a CSV file with the columns ``nbytes`` and ``seconds``.

    Returns
    -------
    callable
        From bytes of a vector to seconds: straight lines between the measured sizes, the first time below them, and
        the last size's rate above.

    Raises
    ------
    InputError
        Naming the file, the line and what is wrong with it.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if not {"nbytes", "seconds"} <= set(rows.fieldnames or []):
                raise InputError(f"{path}: needs the columns nbytes and seconds, got {rows.fieldnames or []}")
            table = [_row(path, line, row) for line, row in enumerate(rows, 2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not table:
        raise InputError(f"{path}: holds no measurement")
    sizes, seconds = np.array(table).T
    if (np.diff(sizes) <= 0).any():
        raise InputError(f"{path}: nbytes must rise from line to line")

    def add_time(n_bytes: float) -> float:
        beyond = max(1.0, n_bytes / sizes[-1])
        return float(np.interp(n_bytes, sizes, seconds) * beyond)

    return add_time


def _row(path: str | Path, line: int, row: dict[str, str]) -> tuple[float, float]:
    try:
        n_bytes, seconds = float(row["nbytes"]), float(row["seconds"])
    except (TypeError, ValueError):
        n_bytes = seconds = np.nan
    if not (0 < n_bytes < np.inf and 0 <= seconds < np.inf):
        raise InputError(f"{path}, line {line}: nbytes and seconds must be numbers above 0, got {list(row.values())}")
    return n_bytes, seconds
