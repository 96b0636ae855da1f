"""How a buffer of any number of elements is cut into chunks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def chunk_bounds(n_elements: int, n_chunks: int) -> NDArray[np.int64]:
    """Bounds of the chunks: chunk c is elements ``bounds[c]:bounds[c + 1]``, and sizes differ by one at most.

    Parameters
    ----------
    n_elements : int
        Elements of the buffer; with fewer than `n_chunks` some chunks are empty.
    n_chunks : int
        Pieces.

    Returns
    -------
    int64[n_chunks + 1]
        ``c * n_elements // n_chunks``. The bounds of every b-th chunk are those of ``n_chunks / b`` chunks, so the
        blocks of ranks do not depend on how finely an algorithm cuts them.
    """
    return np.arange(n_chunks + 1, dtype=np.int64) * n_elements // n_chunks
