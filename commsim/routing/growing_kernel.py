"""Arrays that grow while a kernel fills them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

T = TypeVar("T", bound=np.generic)


@kernel
def grown(values: NDArray[T], n: int) -> NDArray[T]:
    """Return a copy with room for more; compiling a loop takes less time than NumPy's concatenation.

    Parameters
    ----------
    values : T[m]
        Values, which the copy begins with.
    n : int
        Number of further values that it has room for.
    """
    larger = np.empty(values.shape[0] + n, values.dtype)
    for i in range(values.shape[0]):
        larger[i] = values[i]
    return larger
