"""Communicators as programs see them: made of others, of groups, and on grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from commsim.emulation.current import current_rank

from .constants import (
    CART,
    CONGRUENT,
    IDENT,
    KEY_OF_TAG_UB,
    PROC_NULL,
    SIMILAR,
    TAG_UB,
    UNDEFINED,
    UNEQUAL,
    MPIError,
)  # fmt: skip
from .object_collectives import ObjectCollectives
from .refusals import Refusing

__all__ = ["COMM_NULL", "Cartcomm", "Comm", "Group", "Intracomm", "compute_dims"]


class Group(metaclass=Refusing):
    """A set of ranks.

    Parameters
    ----------
    members : tuple of int
        World ranks.
    """

    def __init__(self, members: Sequence[int] = ()) -> None:
        self.members = tuple(members)

    def Get_size(self) -> int:  # noqa: N802
        """Return the number of ranks."""
        return len(self.members)

    def Get_rank(self) -> int:  # noqa: N802
        """Return the number of this rank, or ``UNDEFINED``."""
        number = current_rank().number
        return self.members.index(number) if number in self.members else UNDEFINED

    size, rank = property(Get_size), property(Get_rank)

    def Incl(self, ranks: Sequence[int]) -> Group:  # noqa: N802
        """Return some of the ranks, in this order."""
        return Group([self.members[rank] for rank in ranks])

    def Excl(self, ranks: Sequence[int]) -> Group:  # noqa: N802
        """Return the other ranks."""
        out = {self.members[rank] for rank in ranks}
        return Group([member for member in self.members if member not in out])

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:  # noqa: N802
        """Return the ranks of (first, last, step) ranges, in this order."""
        return self.Incl([rank for one in ranks for rank in _of_range(*one)])

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:  # noqa: N802
        """Return the ranks outside of (first, last, step) ranges."""
        return self.Excl([rank for one in ranks for rank in _of_range(*one)])

    def Translate_ranks(self, ranks: Sequence[int] | None = None, group: Group | None = None) -> list[int]:  # noqa: N802
        """Return the numbers of ranks in another group."""
        there = (group or Group()).members
        given = range(len(self.members)) if ranks is None else ranks
        return [there.index(self.members[k]) if self.members[k] in there else UNDEFINED for k in given]

    @classmethod
    def Union(cls, group: Group, other: Group) -> Group:  # noqa: N802
        """Return the ranks of either."""
        return cls([*group.members, *(member for member in other.members if member not in group.members)])

    @classmethod
    def Intersection(cls, group: Group, other: Group) -> Group:  # noqa: N802
        """Return the ranks of both."""
        return cls([member for member in group.members if member in other.members])

    @classmethod
    def Difference(cls, group: Group, other: Group) -> Group:  # noqa: N802
        """Return the ranks of the first only."""
        return cls([member for member in group.members if member not in other.members])

    def Free(self) -> None:  # noqa: N802
        """Do nothing: memory is Python's."""


def _of_range(first: int, last: int, step: int) -> range:
    return range(first, last + (1 if step > 0 else -1), step)


class Comm(ObjectCollectives, metaclass=Refusing):
    """Any communicator."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comm) and (self.members, self.key) == (other.members, other.key)

    def __hash__(self) -> int:
        return hash((self.members, self.key))

    def __bool__(self) -> bool:
        return bool(self.members)

    def Get_name(self) -> str:  # noqa: N802
        """Return the name."""
        return self.name

    def Set_name(self, name: str) -> None:  # noqa: N802
        """Give it a name."""
        self.name = name

    def Free(self) -> None:  # noqa: N802
        """Do nothing: memory is Python's."""

    Disconnect = Free

    def Set_errhandler(self, handler: Any) -> None:  # noqa: N802
        """Do nothing: errors are raised."""

    def Is_inter(self) -> bool:  # noqa: N802
        """Whether it has two groups."""
        return False

    def Is_intra(self) -> bool:  # noqa: N802
        """Whether it has one group."""
        return True

    is_inter, is_intra = False, True

    def Get_attr(self, keyval: int) -> Any:  # noqa: N802
        """Return an attribute that every communicator has: the largest tag; None for others."""
        return TAG_UB if keyval == KEY_OF_TAG_UB else None

    def Get_group(self) -> Group:  # noqa: N802
        """Return its ranks."""
        return Group(self.members)

    group = property(Get_group)

    def Get_topology(self) -> int:  # noqa: N802
        """Return the kind of its topology."""
        return UNDEFINED

    topology = property(lambda self: self.Get_topology())

    def Abort(self, errorcode: int = 0) -> None:  # noqa: N802
        """End all ranks."""
        raise SystemExit(f"MPI_Abort({errorcode})")

    @classmethod
    def Compare(cls, comm: Comm, other: Comm) -> int:  # noqa: N802
        """Compare two communicators."""
        if comm == other:
            return IDENT
        if comm.members == other.members:
            return CONGRUENT
        return SIMILAR if set(comm.members) == set(other.members) else UNEQUAL

    def _next_key(self, what: object) -> tuple[Any, ...]:
        """Return the key of a communicator that all ranks make of this one, the same in all."""
        kept = current_rank().cache
        kept[self.key] = kept.get(self.key, 0) + 1
        return (self.key, kept[self.key], what)


class Intracomm(Comm):
    """A communicator of one group."""

    def Dup(self, info: Any = None) -> Intracomm:  # noqa: ARG002, N802
        """Return the same with messages of its own; all ranks wait for each other."""
        self.Barrier()
        return self._like(self.members, self._next_key("dup"))

    Clone = Dup

    def _like(self, members: tuple[int, ...], key: Any) -> Intracomm:
        return Intracomm(members, key)

    def Split(self, color: int = 0, key: int = 0) -> Comm:  # noqa: N802
        """Return the communicator of all ranks with this color, ordered by key; an all-gather of both."""
        every = self._done("all_gather", 8 * self.size, (color, key))
        made = self._next_key(color)
        if color == UNDEFINED:
            return COMM_NULL
        chosen = sorted((key, rank) for rank, (its, key) in enumerate(every) if its == color)
        return Intracomm(tuple(self.members[rank] for _, rank in chosen), made)

    def Split_type(self, split_type: int, key: int = 0, info: Any = None) -> Comm:  # noqa: ARG002, N802
        """Return the communicator of this rank: no two ranks share memory."""
        return self.Split(self.rank if split_type != UNDEFINED else UNDEFINED, key)

    def Create(self, group: Group) -> Comm:  # noqa: N802
        """Return the communicator of a group; all ranks of this one call it."""
        self.Barrier()
        key = self._next_key(group.members)
        return Intracomm(group.members, key) if current_rank().number in group.members else COMM_NULL

    def Create_group(self, group: Group, tag: int = 0) -> Comm:  # noqa: N802
        """Return the communicator of a group; only its ranks call it."""
        comm = Intracomm(group.members, (self.key, "group", tag, group.members))
        comm.Barrier()
        return comm

    def Create_cart(self, dims: Sequence[int], periods: Any = None, reorder: bool = False) -> Comm:  # noqa: ARG002, N802
        """Return a communicator on a grid, the last dimension fastest."""
        sides = tuple(int(side) for side in dims)
        given = [periods] * len(sides) if isinstance(periods, (bool, int)) else list(periods or [False] * len(sides))
        n = math.prod(sides)
        if n > self.size:
            raise MPIError(11, f"a grid of {'x'.join(map(str, sides))} needs {n} ranks, got {self.size}")
        self.Barrier()
        key = self._next_key(sides)
        members = self.members[:n]
        return Cartcomm(members, key, sides, tuple(map(bool, given))) if current_rank().number in members else COMM_NULL


class Cartcomm(Intracomm):
    """A communicator whose ranks lie on a grid.

    Parameters
    ----------
    dims, periods : tuple
        Sides, and whether each is closed to a ring.
    """

    def __init__(self, members: tuple[int, ...], key: Any, dims: tuple[int, ...], periods: tuple[bool, ...]) -> None:
        super().__init__(members, key)
        self.dims, self.periods = list(dims), list(map(int, periods))

    def _like(self, members: tuple[int, ...], key: Any) -> Cartcomm:
        return Cartcomm(members, key, tuple(self.dims), tuple(map(bool, self.periods)))

    def Get_topology(self) -> int:  # noqa: N802
        """Return the kind of its topology."""
        return CART

    def Get_dim(self) -> int:  # noqa: N802
        """Return the number of dimensions."""
        return len(self.dims)

    dim = ndim = property(Get_dim)

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:  # noqa: N802
        """Return sides, whether they are rings, and where this rank is."""
        return self.dims, self.periods, self.Get_coords(self.rank)

    topo = property(Get_topo)

    def Get_coords(self, rank: int) -> list[int]:  # noqa: N802
        """Return where a rank is."""
        where = []
        for side in reversed(self.dims):
            rank, at = divmod(rank, side)
            where.append(at)
        return where[::-1]

    coords = property(lambda self: self.Get_coords(self.rank))

    def Get_cart_rank(self, coords: Sequence[int]) -> int:  # noqa: N802
        """Return the rank at a place."""
        rank = 0
        for at, side, is_ring in zip(coords, self.dims, self.periods, strict=True):
            if not is_ring and not 0 <= at < side:
                raise MPIError(13, f"the place {list(coords)} is not on the grid")
            rank = rank * side + at % side
        return rank

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:  # noqa: N802
        """Return the ranks from which and to which a shift along a dimension goes."""
        here = self.Get_coords(self.rank)

        def moved(by: int) -> int:
            at = here[direction] + by
            if not self.periods[direction] and not 0 <= at < self.dims[direction]:
                return PROC_NULL
            return self.Get_cart_rank([*here[:direction], at, *here[direction + 1 :]])

        return moved(-disp), moved(disp)

    def Sub(self, remain_dims: Sequence[bool]) -> Comm:  # noqa: N802
        """Return the part of the grid with this rank along some dimensions."""
        here = self.Get_coords(self.rank)
        color = 0
        for at, side, stays in zip(here, self.dims, remain_dims, strict=True):
            color = color if stays else color * side + at
        part = self.Split(color, self.rank)
        kept = [k for k, stays in enumerate(remain_dims) if stays]
        return Cartcomm(
            part.members, part.key, tuple(self.dims[k] for k in kept), tuple(bool(self.periods[k]) for k in kept)
        )


COMM_NULL = Comm((), "null")


def compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Return sides of a grid of so many nodes, as equal as they can be; sides that are given stay.

    Raises
    ------
    MPIError
        If the given sides do not divide the number of nodes.
    """
    sides = [0] * dims if isinstance(dims, int) else list(dims)
    left = nnodes
    for side in sides:
        if side:
            if left % side:
                raise MPIError(13, f"dims {sides} do not divide {nnodes} nodes")
            left //= side
    free = [k for k, side in enumerate(sides) if not side]
    found = [1] * len(free)
    factors, factor = [], 2
    while left > 1 and free:
        while left % factor == 0:
            factors.append(factor)
            left //= factor
        factor += 1
    for one in sorted(factors, reverse=True):
        found[found.index(min(found))] *= one
    for k, side in zip(free, sorted(found, reverse=True), strict=True):
        sides[k] = side
    return sides
