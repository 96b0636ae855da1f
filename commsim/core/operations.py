"""The operations of the field: what ranks hold at the start, what they must hold at the end, the bus-bandwidth factor.

A chunk's home is the rank whose block it lies in: with ``k`` chunks a rank, chunk ``c`` is at home on ``c // k``.

References
----------
nccl-tests, doc/PERFORMANCE.md: the factors, and why the size of all-gather, reduce-scatter and all-to-all is that of
the whole array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .errors import InputError, ScheduleError, alike, did_you_mean
from .layouts import (
    Layout,
    LayoutKind,
    Moves,
    from_every_rank,
    from_every_rank_v,
    from_experts,
    from_neighbours,
    from_the_previous_rank,
    n_blocks,
    to_experts,
)
from .units import format_size

Holder = Literal["all", "root", "home", "blocks"]


@dataclass(frozen=True, slots=True)
class Operation:
    """The precondition and the postcondition of an operation.

    Parameters
    ----------
    name : str
        MPI's name in lower case with underscores.
    starts, ends : {"all", "root", "home", "blocks"}
        Ranks that hold a chunk before and after: every rank, the root, the chunk's home, or ("blocks") every rank holds
        the blocks that it sends to, or received from, each rank. Out of place (with `moves`) "all" hold chunks of their
        own.
    reduces : bool
        Whether an ending chunk is the sum over all ranks that started with it, or of the chunks of `moves`.
    busbw_factor : callable
        Function from the number of ranks to busbw / algbw.
    moves : callable, optional
        Function that says which chunk goes where, for an operation that is out of place. With `reduces` a chunk may
        have several rows, and is their sum.
    layout : {"none", "ranks", "pairs", "grid", "runs"}
        What must be known about the blocks besides their number.
    signals : bool
        Whether it only counts that messages arrive: they may be empty, and how often a rank is heard is the same.

    Attributes
    ----------
    in_place : bool
        Whether input and output are the same memory.
    has_root : bool
        Whether one rank is the source or the sink.
    needs_equal_blocks : bool
        Whether the number of chunks must be a multiple of the number of ranks.
    """

    name: str
    starts: Holder
    ends: Holder
    reduces: bool
    busbw_factor: Callable[[int], float]
    moves: Moves | None = None
    layout: LayoutKind = "none"
    signals: bool = False
    in_place: bool = field(init=False)
    has_root: bool = field(init=False)
    needs_equal_blocks: bool = field(init=False)

    def __post_init__(self) -> None:
        ends = {self.starts, self.ends}
        object.__setattr__(self, "in_place", self.moves is None)
        object.__setattr__(self, "has_root", "root" in ends)
        object.__setattr__(self, "needs_equal_blocks", bool(ends & {"home", "blocks"}) and self.layout == "none")

    def least_chunks(self, n_ranks: int, layout: Layout = ()) -> int:
        """Return the number that a schedule's number of chunks must be a multiple of; nccl-tests counts one's elements.

        Raises
        ------
        InputError
            If the layout is none of this operation.
        """
        blocks = 1 if (self.layout, layout) == ("none", ()) else n_blocks(self.layout, n_ranks, layout)
        return blocks * (n_ranks if self.needs_equal_blocks else 1)

    def check_layout(self, schedule: str, n_ranks: int, n_chunks: int, layout: Layout) -> None:
        """Raise unless blocks are whole numbers of chunks, and of exactly one where they are unequal.

        Parameters
        ----------
        schedule : str
            Name of the schedule.
        n_ranks, n_chunks : int
            Its ranks and chunks.
        layout : tuple of int
            How its blocks lie.

        Raises
        ------
        ScheduleError
            If they are not, or the layout is none of this operation.
        """
        try:
            least = self.least_chunks(n_ranks, layout)
        except InputError as error:
            raise ScheduleError(f"{schedule}: {error}") from None
        if self.layout in ("ranks", "pairs", "runs") and n_chunks != least:
            raise ScheduleError(f"{schedule}: the blocks of this layout make {least} chunks, got n_chunks={n_chunks}")
        if n_chunks % least:
            raise ScheduleError(f"{schedule}: {self.name} needs a multiple of {least} chunks, got {n_chunks}")


def _share(n_ranks: int) -> float:
    return (n_ranks - 1) / n_ranks


def _twice_share(n_ranks: int) -> float:
    return 2 * (n_ranks - 1) / n_ranks


def _factor_one(n_ranks: int) -> float:  # noqa: ARG001 - the factor of one-to-all and all-to-one does not depend on it
    return 1.0


def _factor_zero(n_ranks: int) -> float:  # noqa: ARG001 - a barrier moves no data, so it has no bandwidth
    return 0.0


OPERATIONS = {
    op.name: op
    for op in (
        Operation("all_reduce", "all", "all", True, _twice_share),
        Operation("reduce_scatter", "all", "home", True, _share),
        Operation("all_gather", "home", "all", False, _share),
        Operation("broadcast", "root", "all", False, _factor_one),
        Operation("reduce", "all", "root", True, _factor_one),
        Operation("all_to_all", "blocks", "blocks", False, _share, from_every_rank),
        Operation("gather", "home", "root", False, _share),
        Operation("scatter", "root", "home", False, _share),
        Operation("barrier", "all", "all", True, _factor_zero, signals=True),
        Operation("send_recv", "all", "all", False, _factor_one, from_the_previous_rank),
        Operation("neighbour_exchange", "all", "all", False, _factor_one, from_neighbours, "grid"),
        Operation("all_gather_v", "home", "all", False, _share, layout="ranks"),
        Operation("all_to_all_v", "all", "all", False, _share, from_every_rank_v, "pairs"),
        Operation("ep_dispatch", "all", "all", False, _share, to_experts, "runs"),
        Operation("ep_combine", "all", "all", True, _share, from_experts, "runs"),
    )
}


def operation(name: str) -> Operation:
    """Look up an operation by name.

    Raises
    ------
    InputError
        If it has none; a factor is never guessed.
    """
    if name not in OPERATIONS:
        hint = did_you_mean(alike(name, OPERATIONS))
        raise InputError(f"unknown operation {name!r}; {hint}known: {', '.join(sorted(OPERATIONS))}")
    return OPERATIONS[name]


def meaning_of_size(name: str, n_ranks: int, sizes: Sequence[float]) -> str:
    """Describe, after a comma, what a size is of where a rank has only a part of it; empty for other operations."""
    op = OPERATIONS.get(name)
    if op is None or op.layout != "none":
        return ""
    part = format_size(sizes[0] / n_ranks) if len(sizes) == 1 else f"1/{n_ranks}"
    if op.starts == "blocks":
        return f", size of a rank's array ({part} to each rank)"
    if op.starts == "home":
        return f", size of all ranks together ({part} a rank)"
    return f", size of the whole array ({part} to each rank)" if op.ends == "home" else ""


def no_bytes(name: str) -> str:
    """Say that sizes change nothing for an operation that only signals."""
    return f"sizes have no effect, a {name} carries no bytes"
