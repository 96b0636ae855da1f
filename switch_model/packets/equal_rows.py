"""Rows with equal keys, in the order in which they came."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def runs_of(*keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Order in which rows of equal keys stand together, each run in the rows' own order, and where runs begin.

    Parameters
    ----------
    *keys : array[n]
        One or more columns.

    Returns
    -------
    order : int64[n]
        Rows.
    opens_run : bool[n]
        Whether the row at each place of `order` is the first of its run.
    """
    order = np.lexsort(keys[::-1])
    opens = np.zeros(len(order), np.bool_)
    opens[:1] = True
    for key in keys:
        column = key[order]
        opens[1:] |= column[1:] != column[:-1]
    return order, opens


def numbered(*keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give equal keys a number, from 0 in sorted order; and return a row that has each number, the first one."""
    order, opens = runs_of(*keys)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(opens) - 1
    return number, order[opens]
