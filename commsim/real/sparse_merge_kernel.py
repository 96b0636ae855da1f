"""Kernel that adds two lists of elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def merge_lists(
    index_a: NDArray[np.int64],
    value_a: NDArray[np.number],
    index_b: NDArray[np.int64],
    value_b: NDArray[np.number],
    index: NDArray[np.int64],
    value: NDArray[np.number],
) -> int:
    """Merge two rising lists; at an index of both, the value is ``a + b``.

    Parameters
    ----------
    index_a, index_b : int64[n], int64[m]
        Rising.
    value_a, value_b : [n], [m]
        Values of one type.
    index, value : int64[n + m], [n + m]
        Written.

    Returns
    -------
    int
        Elements of the sum.
    """
    n, m = index_a.shape[0], index_b.shape[0]
    i = j = k = 0
    while i < n and j < m:
        if index_a[i] < index_b[j]:
            index[k], value[k] = index_a[i], value_a[i]
            i += 1
        elif index_b[j] < index_a[i]:
            index[k], value[k] = index_b[j], value_b[j]
            j += 1
        else:
            index[k], value[k] = index_a[i], value_a[i] + value_b[j]
            i += 1
            j += 1
        k += 1
    while i < n:
        index[k], value[k] = index_a[i], value_a[i]
        i += 1
        k += 1
    while j < m:
        index[k], value[k] = index_b[j], value_b[j]
        j += 1
        k += 1
    return k
