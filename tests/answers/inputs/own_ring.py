"""own_ring.py: the ring, in either direction."""

import numpy as np

from collectives import collective
from commsim import Program, Schedule


@collective("all_reduce")
def own_ring(n_ranks: int, backwards: bool = False) -> Schedule:
    """All-reduce over a ring."""
    step = -1 if backwards else 1
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    with p.repeat(n_ranks - 1, chunk=-step):
        p.reduce(rank, src=rank, dst=(rank + step) % n_ranks)
    with p.repeat(n_ranks - 1, chunk=-step):
        p.copy((rank + step) % n_ranks, src=rank, dst=(rank + step) % n_ranks)
    return p.build()
