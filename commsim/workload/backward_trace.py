"""Gradients in the order in which a backward pass makes them: sizes and ready times, from a model or a CSV trace."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze

FORWARD_SHARE = 0.5
"""Forward time of a layer over its backward time unless measured: one product of matrices where backward has two."""


@dataclass(frozen=True, slots=True, eq=False)
class BackwardTrace(Value):
    """Gradients of one iteration, the last layer's first.

    Parameters
    ----------
    n_bytes : float64[n_tensors], bytes
        Size of each.
    ready : float64[n_tensors], s
        When each is ready, from the start of the backward pass; the last one ends it.
    forward : float64[n_tensors], s
        How long the forward pass needs the tensor's layer; it comes to the last tensor first.

    Raises
    ------
    InputError
        If there is no tensor, a number is negative or not finite, or ready times fall.
    """

    n_bytes: NDArray[np.float64]
    ready: NDArray[np.float64]
    forward: NDArray[np.float64]

    def __post_init__(self) -> None:
        n = np.size(self.n_bytes)
        if not n:
            raise InputError("a backward pass has at least one tensor, got none")
        for name in ("n_bytes", "ready", "forward"):
            values = freeze(getattr(self, name), np.float64, (n,), name)
            if not ((values >= 0) & np.isfinite(values)).all():
                raise InputError(f"{name} must be 0 or more and finite, got {values.min()}..{values.max()}")
            object.__setattr__(self, name, values)
        if (np.diff(self.ready) < 0).any():
            raise InputError("tensors must be in the order in which they become ready")

    @property
    def backward_time(self) -> float:
        """Seconds of the backward pass."""
        return float(self.ready[-1])

    @property
    def compute_time(self) -> float:
        """Seconds of one iteration's computation."""
        return self.backward_time + float(self.forward.sum())


def trace_from_gaps(n_bytes: NDArray[np.float64], gaps: NDArray[np.float64]) -> BackwardTrace:
    """Trace from the seconds between each tensor and the one before it, with the usual share of forward time."""
    return BackwardTrace(n_bytes, np.cumsum(gaps), FORWARD_SHARE * np.asarray(gaps))


def read_backward_trace(path: str | Path, value_bytes: int = 4) -> BackwardTrace:
    """Read a CSV file with a heading and the columns ``numel`` and ``gap_us``, or ``nbytes`` and ``wait_us``.

    Parameters
    ----------
    path : str or Path
        The file; other columns are not looked at.
    value_bytes : int
        Bytes of an element, for ``numel``.

    Raises
    ------
    InputError
        Naming the file, the line and what is wrong with it.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or []
            if {"numel", "gap_us"} <= set(names):
                size, gap, factor = "numel", "gap_us", float(value_bytes)
            elif {"nbytes", "wait_us"} <= set(names):
                size, gap, factor = "nbytes", "wait_us", 1.0
            else:
                raise InputError(f"{path}: needs the columns numel and gap_us, or nbytes and wait_us, got {names}")
            found = [[_number(path, i, row, column) for column in (size, gap)] for i, row in enumerate(rows, 2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not found:
        raise InputError(f"{path}: holds no tensor")
    table = np.array(found)
    return trace_from_gaps(table[:, 0] * factor, table[:, 1] * 1e-6)


def _number(path: str | Path, line: int, row: dict[str, str], column: str) -> float:
    read: Callable[[str], float] = float
    try:
        value = read(row[column])
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{path}, line {line}: {column} must be a number of 0 or more, got {row[column]!r}")
    return value
