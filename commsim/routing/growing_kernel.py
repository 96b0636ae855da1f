"""Arrays that grow while a kernel fills them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def grown(values: NDArray[Any], n: int) -> NDArray[Any]:
    """Return a copy with room for more; a loop compiles in a tenth of the time of NumPy's concatenation.

    Parameters
    ----------
    values : Any[m]
        What is kept.
    n : int
        How many more there shall be room for.
    """
    larger = np.empty(values.shape[0] + n, values.dtype)
    for i in range(values.shape[0]):
        larger[i] = values[i]
    return larger
