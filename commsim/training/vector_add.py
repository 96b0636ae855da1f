"""How long a GPU takes to add two vectors: from a table of measurements, or at a given rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.csv_rows import read_rows


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
    table = [
        (row.non_negative("nbytes"), row.non_negative("seconds")) for row in read_rows(path, ("nbytes", "seconds"))
    ]
    if not table:
        raise InputError(f"{path}: holds no measurement")
    sizes, seconds = np.array(table).T
    if (np.diff(sizes, prepend=0) <= 0).any():
        raise InputError(f"{path}: nbytes must be above 0, and rise from line to line")

    def add_time(n_bytes: float) -> float:
        beyond = max(1.0, n_bytes / sizes[-1])
        return float(np.interp(n_bytes, sizes, seconds) * beyond)

    return add_time
