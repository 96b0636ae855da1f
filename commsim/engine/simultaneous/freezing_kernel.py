"""Kernels that freeze flows, bundle by bundle or one by one, at the level at which a link is full."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

LINK_ROW = np.dtype(
    [
        ("free", np.int64),  # capacity not yet given away, in units so small that sums are exact
        ("unit", np.float64),
        ("per_unit", np.float64),
        ("demand", np.float64),  # what its open flows take per level,
        ("n_open", np.int32),  # and how many they are
    ],
    align=True,
)


@njit_norefcount
def _take(of_link: Any, q: int, n: int, each: float, share: float) -> None:
    """Let `n` open flows have `each` of what a link has left."""
    of_link[q]["free"] -= int(n * each * of_link[q]["per_unit"])
    of_link[q]["n_open"] -= n
    of_link[q]["demand"] -= n * share


@njit_norefcount
def freeze_bundle(
    b: int, level: float, routes: Any, members: tuple[NDArray[np.int64], NDArray[np.int32]], head: NDArray[np.int32],
    state: Any,
) -> None:  # fmt: skip
    """Freeze the open flows of bundle `b`, together on what they share."""
    levels, n_left, of_link = state
    n = n_left[b]
    if n == 0:
        return
    n_left[b] = 0
    for k in range(members[0][b], members[0][b + 1]):
        f = members[1][k]
        if levels[f] == 0.0:
            levels[f] = level
            if head[f] >= 0:
                _take(of_link, head[f], 1, level, 1.0)
    for k in range(routes[0][b], routes[0][b + 1]):
        _take(of_link, routes[1][k], n, level * routes[2][k], routes[2][k])


@njit_norefcount
def freeze_flow(
    f: int, level: float, routes: Any, bundle: NDArray[np.int32], head: NDArray[np.int32], state: Any
) -> None:
    """Freeze one flow that its head holds down."""
    levels, n_left, of_link = state
    if levels[f] > 0.0:
        return
    levels[f] = level
    _take(of_link, head[f], 1, level, 1.0)
    b = bundle[f]
    n_left[b] -= 1
    for k in range(routes[0][b], routes[0][b + 1]):
        _take(of_link, routes[1][k], 1, level * routes[2][k], routes[2][k])
