"""NCCL's PAT: a binomial tree for each rank's part, all at once, the farthest step first.

References
----------
Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", arXiv:2506.20252, 2025.
"""

from __future__ import annotations

import numpy as np

from commsim.core.program import Program

from .pieces import Pieces


def write_pat(p: Program, pieces: Pieces, *, reduces: bool) -> None:
    """Write all loops: rank r + d gets from r, for d from the largest power of two down, what r has; or the reverse.

    Parameters
    ----------
    p : Program
        Program of as many chunks as ranks times `pieces.width`.
    pieces : Pieces
        A place for each rank.
    reduces : bool
        Whether parts are added on the way home, in the reverse order; else they are copied from home.
    """
    n = p.n_ranks
    distances = [1 << k for k in reversed(range((n - 1).bit_length()))]
    for loops in pieces.loops:
        for distance in reversed(distances) if reduces else distances:
            # In the tree of a part, member i has it after the steps down to its lowest bit.
            member = np.arange(0, n - distance, 2 * distance)
            home, i = (axis.ravel() for axis in np.meshgrid(np.arange(n), member, indexing="ij"))
            near, far = (home + i) % n, (home + i + distance) % n
            for loop in loops:
                chunk = home * pieces.width + loop.first
                if reduces:
                    p.reduce(chunk, src=far, dst=near, count=loop.count, channel=loop.channel)
                else:
                    p.copy(chunk, src=near, dst=far, count=loop.count, channel=loop.channel)
