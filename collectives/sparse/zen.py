"""ZEN's balanced parallelism: each rank adds up the elements whose hash is its own."""

from __future__ import annotations

from commsim.core.cost import LogGP
from commsim.core.schedule import Schedule
from commsim.sparse.encodings import coo, hash_bitmap
from commsim.sparse.form import SparseForm

from .. import collective
from ..servers.parameter_server import parameter_server, parameter_server_cost


def zen_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of pushing p-1 parts and pulling p-1 sums: (p-1)(2(o + S/(pB)) + gamma S/p) + 2L."""
    return parameter_server_cost(n_ranks, size, link, colocated=True)


@collective("all_reduce", cost=zen_cost, sparse=SparseForm(coo, copying=hash_bitmap, hashed=True))
def zen(n_ranks: int) -> Schedule:
    """All-reduce in parts of equal hash: (p-1)(2(o + S/(pB)) + gamma S/p) + 2L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        Every rank sends each other rank the elements whose hash is that one's, as a list; each adds them up and sends
        the sum to all others, as values behind a bitmap of its class. Where non-zero elements lie does not matter:
        hashing gives every rank an equal part of them.

    Notes
    -----
    Of k elements a rank sends (p-1)/p k, and of the union of gamma k it receives (p-1)/p gamma k. As lists both ways
    that is (p-1)/p (1 + gamma) 2 k numbers; the bitmap makes of the indices on the way back n (p-1)/p bits for a
    tensor of n elements, less where gamma k > n/32.

    References
    ----------
    Wang et al., "ZEN: Empowering distributed training with sparsity-driven data synchronization", OSDI 2025: balanced
    parallelism and the hash bitmap.
    """
    return parameter_server(n_ranks, colocated=True)
