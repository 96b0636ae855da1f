"""Truncation: how many of the largest blocks or elements are kept of what a transfer has written, or how large."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InputError

UNLIMITED = int(np.iinfo(np.int64).max)
"""No truncation."""


def limits_of(keep: ArrayLike | None, n_transfers: int) -> NDArray[np.int64]:
    """Return one limit for each transfer.

    Parameters
    ----------
    keep : int or int[n_transfers], optional
        At least 1 each; no truncation unless given.
    n_transfers : int
        Transfers of the schedule.

    Returns
    -------
    int64[n_transfers]

    Raises
    ------
    InputError
        If these are no whole numbers of at least 1, or not one for each transfer.
    """
    given = np.asarray(UNLIMITED if keep is None else keep)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n_transfers,)):
        raise InputError(
            f"keep must be a whole number, or one for each of {n_transfers} transfers; got {given.dtype} of shape "
            f"{given.shape}"
        )
    if given.size and given.min() < 1:
        raise InputError(f"keep must be at least 1, got {given.min()}")
    return np.array(np.broadcast_to(given.astype(np.int64), (n_transfers,)))


def floors_of(above: ArrayLike, n_transfers: int) -> NDArray[np.float64]:
    """Return one magnitude for each transfer, below which elements are cut.

    Parameters
    ----------
    above : float or float[n_transfers]
        At least 0 each; 0 cuts nothing.
    n_transfers : int
        Transfers of the schedule.

    Returns
    -------
    float64[n_transfers]

    Raises
    ------
    InputError
        If one is negative or no finite number, or there is not one for each transfer.
    """
    given = np.asarray(above)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (n_transfers,)):
        raise InputError(
            f"a threshold must be a number, or one for each of {n_transfers} transfers; got {given.dtype} of shape "
            f"{given.shape}"
        )
    wrong = given[~((given >= 0) & np.isfinite(given))]
    if wrong.size:
        raise InputError(f"a threshold must be at least 0 and finite, got {wrong[0]}")
    return np.array(np.broadcast_to(given.astype(np.float64), (n_transfers,)))
