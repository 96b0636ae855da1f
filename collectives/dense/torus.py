"""All-reduce on a grid of ranks: rings along one dimension after the other, and back."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.program import Program
from commsim.core.schedule import Schedule

from .ring import half_ring_cost, reducing_ring_cost

Ranks = NDArray[np.int64]


def default_dims(n_ranks: int) -> tuple[int, int]:
    """Two dimensions, as nearly square as the divisors of p allow, the shorter one last."""
    shorter = max(d for d in range(1, math.isqrt(n_ranks) + 1) if n_ranks % d == 0)
    return n_ranks // shorter, shorter


def check_dims(name: str, n_ranks: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse sides that do not make a grid of p ranks.

    Raises
    ------
    InputError
        Saying what they make.
    """
    if not dims or min(dims) < 1 or math.prod(dims) != n_ranks:
        sides = "x".join(map(str, dims))
        raise InputError(f"{name}: dims must be sides of a grid of {n_ranks} ranks, got {sides or 'none'}")
    return tuple(int(side) for side in dims)


def torus_cost(
    n_ranks: int, size: float, link: LogGP, dims: tuple[int, ...] | None = None, all_links: bool = False
) -> float:
    """Cost of a ring reduce-scatter and a ring all-gather per dimension, each of what the ones before it left.

    Over all links 2D parts go at once; a rank's message engine starts the 2D messages of a hop in turn.
    """
    dims = dims or default_dims(n_ranks)
    if all_links:
        n_parts, least = 2 * len(dims), min(dims)
        if link.ports < n_parts or least != max(dims) or least < 3:
            why = "has a closed form only on equal sides of 3 ranks or more with a link each way"
            raise NoClosedFormError(f"torus_all_reduce:all_links=true {why}; use engine flow, or all_links=false")
        size, link = size / n_parts, dataclasses.replace(link, o=n_parts * link.o)
    cost = 0.0
    for side in reversed(dims):
        cost += reducing_ring_cost(side, size, link) + half_ring_cost(side, size, link)
        size /= side
    return cost


@collective("all_reduce", needs=("dims",), cost=torus_cost)
def torus_all_reduce(n_ranks: int, dims: tuple[int, ...] | None = None, all_links: bool = False) -> Schedule:
    """All-reduce on a grid: the sum over sides d of 2(d-1)(o + L + S/(dmB)) + (d-1) gamma S/(dm) seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    dims : tuple of int, optional
        Sides of the grid, of any number of dimensions; m is the product of the sides behind d. Consecutive ranks are
        neighbours along the last dimension, which goes first: of ranks per socket, sockets per host and hosts, put
        hosts first and ranks per socket last. By default two nearly equal sides.
    all_links : bool
        Whether 2D equal parts of the vector start along each of the D dimensions in both directions at once, for ranks
        with a link each way: on equal sides the sum over sides d of 2(d-1)(2Do + L + S/(2DdmB)). On a torus it is
        true unless it is given.

    Returns
    -------
    Schedule
        Ring reduce-scatter along the last dimension, then of the remaining part along the one before it, and so on;
        ring all-gathers in the opposite order.

    Raises
    ------
    InputError
        If the sides do not multiply to p.

    References
    ----------
    Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash", 2018 (two
    dimensions). Chan et al., "Collective communication", Concurrency and Computation 2007, for more. Sack and Gropp,
    "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015, for all links.
    """
    dims = default_dims(n_ranks) if dims is None else check_dims("torus_all_reduce", n_ranks, dims)
    if all_links:
        return _over_all_links(n_ranks, dims)
    p = Program(n_ranks, n_chunks=n_ranks)
    rank = np.arange(n_ranks)
    part = np.zeros(n_ranks, np.int64)  # where the part begins that a rank's ring works on
    stages: list[tuple[int, int, Ranks]] = []
    width, stride = n_ranks, 1
    for side in reversed(dims):
        width //= side
        stages.append((side, stride, part))
        part = part + rank // stride % side * width
        stride *= side
    for side, stride, part in stages:
        _ring(p, side, stride, part, reducing=True)
    for side, stride, part in reversed(stages):
        _ring(p, side, stride, part, reducing=False)
    return p.build()


def _over_all_links(n_ranks: int, dims: tuple[int, ...]) -> Schedule:
    """Let the parts of the vector take the dimensions in turn, each from another one or in another direction."""
    strides = np.cumprod([1, *reversed(dims)]).tolist()
    sides = list(zip(reversed(dims), strides, strict=False))
    p = Program(n_ranks, n_chunks=2 * len(sides) * n_ranks)
    rank = np.arange(n_ranks)
    ways: list[tuple[int, list[tuple[int, int, int, Ranks]]]] = []
    for first in range(len(sides)):
        for step in (1, -1):
            width, part, stages = n_ranks, np.full(n_ranks, len(ways) * n_ranks), []
            for side, stride in sides[first:] + sides[:first]:
                width //= side
                stages.append((side, stride, width, part))
                part = part + rank // stride % side * width
            ways.append((step, stages))
    for reducing, order in ((True, range(len(sides))), (False, reversed(range(len(sides))))):
        write = p.reduce if reducing else p.copy
        for k in order:
            for hop in range(max(dims) - 1):
                for step, stages in ways:
                    side, stride, width, part = stages[k]
                    if hop < side - 1:
                        place, at = rank // stride % side, step * (hop + reducing)
                        src, dst = (rank + ((place + n) % side - place) * stride for n in (at, at + step))
                        write(part + place * width, src=src, dst=dst, count=width)
    return p.build()


def _ring(p: Program, side: int, stride: int, part: Ranks, *, reducing: bool) -> None:
    """One pass round every ring of one dimension.

    The block that is at home at place x of a ring starts behind it to be reduced, and at it to be gathered. Along the
    last dimension blocks step round the whole vector, and along the first one peers step round all ranks: both are
    kept as one round. In between neither number wraps where the ring does.
    """
    n_ranks = p.n_ranks
    rank = np.arange(n_ranks)
    width = n_ranks // (stride * side)
    place = rank // stride % side
    write = p.reduce if reducing else p.copy
    behind = 1 if reducing else 0

    def along(n: int) -> Ranks:
        return rank + ((place + n) % side - place) * stride

    if stride == 1:
        with p.repeat(side - 1, chunk=-width):
            write((place - behind) % side * width, src=rank, dst=along(1), count=width)
    elif stride * side == n_ranks:
        with p.repeat(side - 1, src=stride, dst=stride):
            write(part + place * width, src=along(behind), dst=along(behind + 1), count=width)
    else:
        for hop in range(behind, behind + side - 1):
            write(part + place * width, src=along(hop), dst=along(hop + 1), count=width)
