"""How much denser the sum of sparse data is than what each rank has.

References
----------
Wang et al., "ZEN: Empowering distributed training with sparsity-driven data synchronization", OSDI 2025: densification
ratio.
"""

from __future__ import annotations

from commsim.core.errors import InputError

from .long_occupancy import AnyOccupancy


def union_density(occupancy: AnyOccupancy) -> float:
    """Share U of blocks that some rank has: what comes back down from a sparse sum."""
    return occupancy.n_union / occupancy.n_blocks


def densification(occupancy: AnyOccupancy) -> float:
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
