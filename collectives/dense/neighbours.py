"""Exchanges with neighbours only: round a ring, or on a grid."""

from __future__ import annotations

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.layouts import neighbour
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT, Schedule

from .torus import check_dims


def shift_cost(n_ranks: int, size: float, link: LogGP) -> float:
    """Cost of one message of the whole buffer."""
    return link.message(size) if n_ranks > 1 else 0.0


@collective("send_recv", cost=shift_cost)
def ring_send_recv(n_ranks: int) -> Schedule:
    """Send to the next rank and receive from the previous one, all at once: o + L + S/B seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.

    Returns
    -------
    Schedule
        One message of the whole buffer from every rank.

    References
    ----------
    nccl-tests, src/sendrecv.cu: the same pattern, and its bus-bandwidth factor of 1.
    """
    p = Program(n_ranks, n_chunks=1)
    rank = np.arange(n_ranks)
    p.copy(0, src=rank, dst=(rank + 1) % n_ranks, dst_buffer=OUTPUT)
    return p.build()


def grid_exchange_cost(n_ranks: int, size: float, link: LogGP, dims: tuple[int, ...] | None = None) -> float:
    """Cost of two messages along every dimension of more than one rank, which leave one port together."""
    dims = dims or (n_ranks,)
    messages = 2 * sum(side > 1 for side in dims)
    return messages * (link.o + size / (2 * len(dims) * link.B)) + (link.L if messages else 0.0)


@collective("neighbour_exchange", cost=grid_exchange_cost)
def grid_neighbour_exchange(n_ranks: int, dims: tuple[int, ...] | None = None) -> Schedule:
    """Exchange with both neighbours along each of D dimensions: 2D(o + S/(2DB)) + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    dims : tuple of int, optional
        Sides of the periodic grid, the last one of consecutive ranks; by default one ring. Along a side of 1 a rank
        is its own neighbour, which costs nothing.

    Returns
    -------
    Schedule
        2D messages of one block from every rank, each on a channel of its own. Blocks 2d and 2d+1 go down and up
        along dimension d, and what comes from below and from above is put into the same places of the output.

    Raises
    ------
    InputError
        If the sides do not multiply to p.

    References
    ----------
    MPI Forum, "MPI: A message-passing interface standard", version 4.1, section 8.6 (MPI_Neighbor_alltoall on a
    Cartesian communicator, whose order of neighbours this is).
    """
    dims = (n_ranks,) if dims is None else check_dims("grid_neighbour_exchange", n_ranks, dims)
    p = Program(n_ranks, n_chunks=2 * len(dims))
    rank, block = np.arange(n_ranks), np.arange(2 * len(dims))[:, np.newaxis]
    there = neighbour(rank, block, dims)
    p.copy(src=rank, dst=there, src_chunk=block, dst_chunk=block ^ 1, channel=block, dst_buffer=OUTPUT)
    return p.build(layout=dims)
