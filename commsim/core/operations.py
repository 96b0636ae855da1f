"""The operations of the field: who starts with what, who must end with what, and the bus-bandwidth factor.

A chunk's home is the rank whose block it lies in: with ``k`` chunks a rank, chunk ``c`` is at home on ``c // k``.

References
----------
nccl-tests, doc/PERFORMANCE.md: the factors, and why the size of all-gather, reduce-scatter and all-to-all is that of
the whole array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .errors import InputError

Holder = Literal["all", "root", "home", "blocks"]


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation promises.

    Parameters
    ----------
    name : str
        MPI's name in lower case with underscores.
    starts, ends : {"all", "root", "home", "blocks"}
        Which ranks hold a chunk before and after: every rank, the root, the chunk's home, or ("blocks") every rank
        holds the blocks that it sends to, or received from, each rank.
    reduces : bool
        Whether an ending chunk is the sum over all ranks that started with it.
    busbw_factor : callable
        From the number of ranks to busbw / algbw.
    """

    name: str
    starts: Holder
    ends: Holder
    reduces: bool
    busbw_factor: Callable[[int], float]

    @property
    def in_place(self) -> bool:
        """Whether input and output are the same memory (all but all-to-all)."""
        return self.starts != "blocks"

    @property
    def has_root(self) -> bool:
        """Whether one rank is the source or the sink."""
        return "root" in (self.starts, self.ends)

    @property
    def needs_equal_blocks(self) -> bool:
        """Whether the number of chunks must be a multiple of the number of ranks."""
        return self.starts in ("home", "blocks") or self.ends in ("home", "blocks")


def _share(n_ranks: int) -> float:
    return (n_ranks - 1) / n_ranks


def _twice_share(n_ranks: int) -> float:
    return 2 * (n_ranks - 1) / n_ranks


def _one(n_ranks: int) -> float:  # noqa: ARG001 - the factor of one-to-all and all-to-one does not depend on it
    return 1.0


OPERATIONS = {
    op.name: op
    for op in (
        Operation("all_reduce", "all", "all", True, _twice_share),
        Operation("reduce_scatter", "all", "home", True, _share),
        Operation("all_gather", "home", "all", False, _share),
        Operation("broadcast", "root", "all", False, _one),
        Operation("reduce", "all", "root", True, _one),
        Operation("all_to_all", "blocks", "blocks", False, _share),
        Operation("gather", "home", "root", False, _share),
        Operation("scatter", "root", "home", False, _share),
    )
}


def operation(name: str) -> Operation:
    """Look up an operation by name.

    Raises
    ------
    InputError
        If there is none; a factor is never guessed.
    """
    if name not in OPERATIONS:
        raise InputError(f"unknown operation {name!r}; known: {', '.join(sorted(OPERATIONS))}")
    return OPERATIONS[name]
