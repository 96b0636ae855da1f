"""All-reduces of sparse vectors by recursive doubling, or split among the ranks and gathered again: SparCML, ZEN."""

from __future__ import annotations

import numpy as np

from collectives import collective
from collectives.dense.halving_doubling import (
    doubling_cost,
    gather_by_doubling,
    recursive_doubling_all_reduce,
    recursive_doubling_cost,
)
from collectives.servers.parameter_server import parameter_server, parameter_server_cost
from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import Schedule
from commsim.sparse.encodings import ENCODINGS, coo, dense, hash_bitmap
from commsim.sparse.form import SparseForm

SWITCHING = ENCODINGS["switching"]


@collective("all_reduce", cost=doubling_cost, sparse=SparseForm(SWITCHING))
def sparcml_ssar(n_ranks: int) -> Schedule:
    """All-reduce of lists by recursive doubling: k(o + L + S/B + gamma S) seconds for p = 2^k, with S growing.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any, folded as :func:`collectives.dense.halving_doubling.recursive_doubling_all_reduce` does.

    Returns
    -------
    Schedule
        Partners exchange their sums, which are longer in every round: in round i the union of 2^i ranks' elements,
        which is gamma(2^i) times a rank's own k. A message is dense once that takes fewer bytes.

    Notes
    -----
    A rank so sends 8 k sum over i < log2 p of gamma(2^i) bytes of 4-byte indices and values: between 8 k log2 p, where
    all ranks have the same elements, and 8 k (p - 1), where no two share one and gamma(n) = n.

    References
    ----------
    Renggli et al., "SparCML: High-performance sparse communication for machine learning", SC 2019,
    SSAR_Recursive_double. Wang et al. (ZEN), OSDI 2025: the sum over the rounds.
    """
    return recursive_doubling_all_reduce(n_ranks)


def split_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """(p-1)(o + S/(pB) + gamma S/p) + L for the parts that every rank sends to every other, then the all-gather."""
    if n_ranks == 1:
        return 0.0
    part = size / n_ranks
    split = (n_ranks - 1) * (link.o + part / link.B + link.gamma * part) + link.L
    return split + recursive_doubling_cost(n_ranks, size, link)


@collective("all_reduce", cost=split_cost, sparse=SparseForm(SWITCHING))
def sparcml_split(n_ranks: int) -> Schedule:
    """All-reduce of lists, split then gathered: (p-1)(o + 2 S/(pB) + gamma S/p) + L + k(o + L) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any. The all-gather is :func:`collectives.dense.halving_doubling.recursive_doubling_all_gather`.

    Returns
    -------
    Schedule
        Every rank sends each other rank that one's part of its list, in one round; each adds up its part, and the
        sums are gathered by recursive doubling, still as lists where that takes fewer bytes.

    Notes
    -----
    In the first phase a rank sends (p-1)/p of its k elements where these lie evenly. In the second, the union of u
    elements is gathered: every rank receives what the others hold of it, (p-1)/p u where the parts are even, with u
    between k and p k.

    References
    ----------
    Renggli et al. (SparCML), SC 2019, SSAR_Split_allgather.
    """
    p = Program(n_ranks, n_chunks=n_ranks)
    p.room_for(n_ranks**2)
    src, dst = np.divmod(np.arange(n_ranks**2), n_ranks)
    away = src != dst
    p.reduce(dst[away], src=src[away], dst=dst[away])
    p.fence()
    gather_by_doubling(p)
    return p.build()


@collective("all_reduce", cost=split_cost, sparse=SparseForm(SWITCHING, copying=dense))
def sparcml_dsar(n_ranks: int) -> Schedule:
    """All-reduce of lists to a dense sum: (p-1)(o + 2 S/(pB) + gamma S/p) + L + k(o + L) seconds for p = 2^k.

    Parameters
    ----------
    n_ranks : int
        p, at least 1; any.

    Returns
    -------
    Schedule
        That of :func:`sparcml_split`; but the sums are dense from the second phase on, which pays where the union has
        more than half of all elements: indices cost as much as values.

    References
    ----------
    Renggli et al. (SparCML), SC 2019, DSAR_Split_allgather.
    """
    return sparcml_split(n_ranks)


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
