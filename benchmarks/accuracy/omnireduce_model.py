"""How long OmniReduce takes on its authors' machines: a few constants, fitted once to all of their measurements.

What the flow engine computes from links alone is the second term; the constants hold what links do not explain. What
they stand for is in ``commsim.papers.omnireduce_protocol``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.sparse_measures import expected_union_density
from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class OmniReduceTime:
    """``fixed + down * U * S + up * d * S`` seconds for S bytes, of which a rank has a share d and some rank U.

    Parameters
    ----------
    fixed : float, s
        What is there however little is sent; grows with the number of ranks.
    down, up : float, s/byte
        Of the union on its way back, and of a rank's own blocks on their way to the aggregators.
    """

    fixed: float
    down: float
    up: float = 0.0

    def time(self, size: float, density: float, n_ranks: int, union: float | None = None) -> float:
        """Return the seconds of an all-reduce with GPU-direct RDMA.

        Parameters
        ----------
        size : float, bytes
            S.
        density : float
            d, of blocks.
        n_ranks : int
            Ranks.
        union : float, optional
            U; what ranks that draw independently have, ``1 - (1 - d) ** n``, unless given.

        Raises
        ------
        InputError
            If the size is not positive or a density not in 0..1.
        """
        union = expected_union_density(density, n_ranks) if union is None else union
        if not 0 < size < math.inf or not density <= union <= 1:
            raise InputError(f"needs a size above 0 and density <= union <= 1, got {size:g}, {density:g}, {union:g}")
        return self.fixed + (self.down * union + self.up * density) * size


# Bytes of the tensor in all of the authors' measurements.
MEASURED_SIZE = 4 * 26_214_400

# 8 ranks and 8 aggregators at 100 Gb/s, densities up to 0.2: 86.4 Gb/s of goodput, and 2.36 ms.
DOWNLINK_ONLY = OmniReduceTime(2.36e-3, 8 / 86.4e9)

# The same machines at any density: a third constant, since a rank's own blocks are not sent quite for nothing.
BOTH_WAYS = OmniReduceTime(2.55e-3, 8.30e-3 / MEASURED_SIZE, 4.55e-3 / MEASURED_SIZE)
