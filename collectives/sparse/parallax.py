"""Parallax's hybrid: the dense part of the gradients goes round a ring, the sparse part to parameter servers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from collectives.dense.ring import ring_cost
from collectives.servers.parameter_server import count_partitions, parameter_server_cost
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import Schedule, Transfers
from commsim.sparse.encodings import coo
from commsim.sparse.form import SparseForm

PARTITIONS, FINEST = 8, 32
RING, PUSH, PULL = range(3)


def parallax_bounds(
    n_ranks: int,
    size: float,
    link: LogGP,
    n_servers: int | None = None,
    dense_share: float = 0.0,
    n_partitions: int = PARTITIONS,
) -> tuple[float, float]:
    """Bounds of a ring and a parameter server that share the links of the ranks.

    Neither is faster than without the other. On a link of a rank a message of the ring meets at most s of the servers';
    and one of the servers' meets, beside those that it met without a ring, one of the ring. So the ring keeps 1/(s+1)
    of each link, and the servers half of what they had, or more: both are over by the time that the slower one takes
    so.
    """
    if n_ranks == 1:
        return 0.0, 0.0
    n_servers, share = _servers_of(n_servers), float(_share(dense_share))

    def of_ring(slower: int) -> float:
        return ring_cost(n_ranks, share * size, _slowed(link, slower)) if share else 0.0

    def of_servers(slower: int) -> float:
        rest = (1 - share) * size
        slowed = _slowed(link, slower)
        return parameter_server_cost(n_ranks, rest, slowed, n_servers, n_partitions=n_partitions) if share < 1 else 0.0

    alone = max(of_ring(1), of_servers(1))
    return alone, max(of_ring(1 + n_servers), of_servers(2)) if 0 < share < 1 else alone


def of_the_ring(schedule: Schedule, transfers: Transfers) -> NDArray[np.bool_]:  # noqa: ARG001 - a form's signature
    """Tell which messages go round the ring."""
    return np.asarray(transfers["channel"] == RING)


@collective("all_reduce", bounds=parallax_bounds, sparse=SparseForm(coo, always_dense=of_the_ring), needs=("servers",))
def parallax(
    n_ranks: int, n_servers: int | None = None, dense_share: float = 0.0, n_partitions: int = PARTITIONS
) -> Schedule:
    """All-reduce of a share x by a ring, the rest by s servers: at least max(2(p-1)x S/(pB), p(1-x) S/(sB)) seconds.

    Parameters
    ----------
    n_ranks : int
        p, the workers.
    n_servers : int, optional
        s, helpers on hosts of their own; each sums an equal part of the sparse gradients. By default as many as ranks,
        as far as hosts are free, or one where it is not known how many are.
    dense_share : float
        x, 0..1: the first so much of the tensor is dense, by default nothing: its data is what ``density=`` or
        ``gradients=`` says. Taken as the nearest fraction with a denominator of at most 32, which has to be one between
        0 and 1 where x is.
    n_partitions : int
        Pieces of each server's part, so that one is pulled while the next one is pushed.

    Returns
    -------
    Schedule
        A ring all-reduce of the first chunks, as dense messages; at the same time every rank pushes its elements of
        the other chunks to the servers, as lists, and pulls their sums.

    Raises
    ------
    InputError
        Without a server or partition, or if the share is not in 0..1.

    Notes
    -----
    Of w bytes of sparse gradients with density d a rank pushes (4 + v)/v d w bytes, and pulls the union's; a server
    of s receives p/s of that. A ring would send 2(p-1)/p w whatever the density.

    References
    ----------
    Kim et al., "Parallax: Sparsity-aware data parallel training of deep neural networks", EuroSys 2019: the choice of
    ring or servers by variable. Its sums inside a machine before servers see them are not modelled.
    """
    n_servers, share = _servers_of(n_servers), _share(dense_share)
    unit = math.lcm(n_ranks, n_servers * count_partitions("parallax", n_partitions, n_servers * FINEST))
    if n_ranks == 1:
        return Program(1, 1).build()
    n_dense, n_chunks = share.numerator * unit, share.denominator * unit
    p = Program(n_ranks, n_chunks=n_chunks, n_helpers=n_servers if share < 1 else 0)
    p.room_for(2 * n_ranks * ((n_ranks - 1) * (n_dense > 0) + n_servers * n_partitions * (share < 1)))
    if n_dense:
        _ring(p, n_dense // n_ranks)
    if share < 1:
        _servers(p, n_servers, n_partitions, n_dense, (n_chunks - n_dense) // (n_servers * n_partitions))
    return p.build()


def _ring(p: Program, count: int) -> None:
    """Write a ring all-reduce of the first chunks, `count` to a message."""
    rank, n = np.arange(p.n_ranks), p.n_ranks
    following = (rank + 1) % n
    for write, first in ((p.reduce, rank), (p.copy, following)):
        for i in range(n - 1):
            write((first - i) % n * count, src=rank, dst=following, count=count, channel=RING)


def _servers(p: Program, n_servers: int, n_partitions: int, first: int, count: int) -> None:
    """Write pushes to and pulls from servers of the chunks from `first` on, `count` to a message."""
    rank, part = (x.ravel() for x in np.meshgrid(np.arange(p.n_ranks), np.arange(n_servers), indexing="ij"))
    server = p.n_ranks + part
    for i in range(n_partitions):
        chunk = first + (i * n_servers + part) * count
        p.reduce(chunk, src=rank, dst=server, count=count, channel=PUSH)
        p.copy(chunk, src=server, dst=rank, count=count, channel=PULL)


def _servers_of(n_servers: int | None) -> int:
    if n_servers is not None and n_servers < 1:
        raise InputError(f"parallax needs n_servers of at least 1, got n_servers={n_servers}")
    return n_servers or 1


def _share(dense_share: float) -> Fraction:
    if not 0 <= dense_share <= 1:
        raise InputError(f"parallax: dense_share must be 0..1, got {dense_share}")
    share = Fraction(dense_share).limit_denominator(FINEST)
    if share in (0, 1) and share != dense_share:
        raise InputError(
            f"parallax: dense_share must be 0, 1, or at least 1/{FINEST} away from both, got {dense_share}"
        )
    return share


def _slowed(link: LogGP, factor: int) -> LogGP:
    return LogGP(L=link.L, o=link.o * factor, B=link.B / factor, gamma=link.gamma)
