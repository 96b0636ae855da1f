"""How much denser the sum of sparse data is than what each rank has.

References
----------
Wang et al., "ZEN: Empowering distributed training with sparsity-driven data synchronization", OSDI 2025: densification
ratio.
"""

from __future__ import annotations

import numpy as np

from commsim.core.errors import InputError

from .occupancy import Occupancy

# Words of each rank that are united at once.
PIECE = 2**16


def union_density(occupancy: Occupancy) -> float:
    """Share U of blocks that some rank has: what comes back down from a sparse sum."""
    words = occupancy.words
    pieces = (np.bitwise_or.reduce(words[:, at : at + PIECE], axis=0) for at in range(0, words.shape[1], PIECE))
    return sum(int(np.bitwise_count(piece).sum(dtype=np.int64)) for piece in pieces) / occupancy.n_blocks


def densification(occupancy: Occupancy) -> float:
    """Union density over the mean density of a rank, gamma: 1 when all have the same blocks, n when none is shared.

    Raises
    ------
    InputError
        If no rank has any block.
    """
    mean = float(occupancy.density.mean())
    if mean == 0:
        raise InputError("densification needs a rank with a non-zero block: this bitmap is empty")
    return union_density(occupancy) / mean
