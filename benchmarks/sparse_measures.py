"""How ranks' non-zero blocks overlap, and how evenly they lie, in real gradients.

References
----------
Wang et al., "ZEN: Empowering distributed training with sparsity-driven data synchronization", OSDI 2025: overlap
ratio and skewness ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.partition import Partition


def expected_union_density(density: float, n_ranks: int) -> float:
    """Mean of U where ranks draw independently of each other: ``1 - (1 - d) ** n``."""
    if not 0 <= density <= 1 or n_ranks < 1:
        raise InputError(f"needs a density of 0..1 and at least 1 rank, got {density} and {n_ranks}")
    return float(-np.expm1(n_ranks * np.log1p(-density))) if density < 1 else 1.0


def densifications(occupancy: Occupancy) -> NDArray[np.float64]:
    """Return gamma of the first 1, 2, ... n ranks, float64[n_ranks]; 0 as long as these have no block.

    The union over the first i ranks, over their mean density.
    """
    union = np.bitwise_or.accumulate(occupancy.words, axis=0) if occupancy.n_ranks > 1 else occupancy.words
    united = np.bitwise_count(union).sum(axis=1, dtype=np.float64)
    mean = np.cumsum(occupancy.counts) / np.arange(1, occupancy.n_ranks + 1)
    return np.asarray(np.divide(united, mean, out=np.zeros(len(united)), where=mean > 0))


def overlap(occupancy: Occupancy) -> float:
    """Blocks that two ranks share over those of the poorer one, averaged over all pairs of ranks that have some.

    Raises
    ------
    InputError
        If there are not two ranks with a non-zero block.
    """
    words = occupancy.words[occupancy.counts > 0]
    if len(words) < 2:
        raise InputError(f"overlap needs at least 2 ranks with a non-zero block, got {len(words)}")
    counts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    ratios = [
        np.bitwise_count(words[i + 1 :] & words[i]).sum(axis=1) / np.minimum(counts[i + 1 :], counts[i])
        for i in range(len(words) - 1)
    ]
    return float(np.concatenate(ratios).mean())


def skewness(occupancy: Occupancy, n_parts: int | None = None, *, hashed: bool = False) -> float:
    """Density of the fullest part of the tensor over that of the whole, averaged over ranks that have some block.

    Parameters
    ----------
    occupancy : Occupancy
        Occupancy in which at least one rank has a block.
    n_parts : int, optional
        Equal parts; by default as many as ranks.
    hashed : bool
        Parts are classes of a hash in place of ranges: what balanced parallelism makes of the same tensor.

    Returns
    -------
    float
        1 when all parts are equally full, `n_parts` when one has all.

    Raises
    ------
    InputError
        If no rank has a block, or there are more parts than blocks.
    """
    n_parts = n_parts or occupancy.n_ranks
    if not 1 <= n_parts <= occupancy.n_blocks:
        raise InputError(f"skewness needs 1..{occupancy.n_blocks} parts, as many as blocks at most, got {n_parts}")
    partition = Partition(occupancy.n_elements, occupancy.block, n_parts, hashed)
    part, sizes = partition.chunk_of_blocks(), partition.sizes()
    if not occupancy.counts.any():
        raise InputError("skewness needs a rank with a non-zero block: this bitmap is empty")
    ratios = []
    for rank in np.flatnonzero(occupancy.counts):
        filled = np.bincount(part[occupancy.bitmap_of(int(rank))], minlength=n_parts)
        fullest = np.divide(filled, sizes, out=np.zeros(n_parts), where=sizes > 0).max()
        ratios.append(fullest / occupancy.density[rank])
    return float(np.mean(ratios))
