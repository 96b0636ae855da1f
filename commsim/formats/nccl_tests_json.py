"""What nccl-tests writes with ``-J``: one object, with truth values as text, a padded root, and "nan" where nothing is.

The environment of the run, which may hold secrets, is never looked at.

References
----------
nccl-tests 2.19, ``src/util.cu``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.formats.fields import Fields

from .measured import Asked, Measured, check_count
from .nccl_names import program_operation, require_operation

_HALVES = ("out_of_place", "in_place")


def read_nccl_tests_json(tree: Mapping[str, Any], path: Path, asked: Asked) -> list[Measured]:
    """Read the results of a decoded file.

    Raises
    ------
    InputError
        Naming line and field, if one is missing or wrong, or nothing says which operation was measured.
    """
    top = Fields(tree, path)
    arguments = list(top.items("args", str, "text")) if "args" in top else []
    operation = next(filter(None, map(program_operation, arguments)), "") or require_operation(path, asked)
    devices = top.table("config").tables("devices") if "devices" in top.table("config") else []
    n_ranks = _ranks(devices) or asked.n_ranks
    results = top.tables("results")
    check_count(path, len(results))
    rows = []
    for i, result in enumerate(results, 1):
        for half in _HALVES:
            timing = result.table(half)
            time = _number(timing, "time")
            if time is None:
                continue
            low, high = _spread(result.table(f"{half}_per_iter"))
            rows.append(Measured(
                operation, result.number("size"), time * 1e-6, n_ranks, in_place=half == "in_place",
                low=low, high=high, source=str(path), line=i,
            ))  # fmt: skip
    return rows


def _ranks(devices: list[Fields]) -> int:
    """Ranks in the group of the first device."""
    groups = [device.whole("group", default=0) for device in devices]
    return groups.count(groups[0]) if groups else 0


def _number(table: Fields, key: str) -> float | None:
    """Return a field that is a number, or text for none."""
    value = table.raw(key)
    if value is None or (isinstance(value, str) and value.strip().lower() in ("nan", "-nan", "n/a", "")):
        return None
    return table.number(key)


def _spread(times: Fields) -> tuple[float | None, float | None]:
    """Percentiles 5 and 95 of single iterations; the least and the largest, where these are not there."""
    if "times_us" in times:
        every = times.numbers("times_us")
        if every:
            low, high = np.percentile(every, (5, 95)) * 1e-6
            return float(low), float(high)
    low_us, high_us = _number(times, "min_us"), _number(times, "max_us")
    return (None if low_us is None else low_us * 1e-6), (None if high_us is None else high_us * 1e-6)
