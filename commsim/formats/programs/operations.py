"""One operation of a rank, and the programs of all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from commsim.core.errors import InputError

SEND, RECV, CALC = 1, 2, 3
ANY = 2**32 - 1
"""The peer or tag of a receive that takes whatever comes, as GOAL stores it."""


@dataclass(frozen=True, slots=True)
class Op:
    """A send, a receive or a computation of one rank.

    Parameters
    ----------
    kind : int
        SEND, RECV or CALC.
    size : int, bytes or ns
        Of the message; of a computation how long it takes.
    peer, tag : int
        With whom, and which message; 0 for a computation. ANY in a receive takes whatever comes.
    cpu, nic : int
        Which of the rank's.
    after : tuple of int
        Operations of the same rank, by index, that must have finished.
    after_start : tuple of int
        Operations of the same rank that must have started.
    stage : int
        Of a computation of no time: number of the stage that begins with it, if it stands for a fence; else 0.
    """

    kind: int
    size: int
    peer: int = 0
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    after: tuple[int, ...] = ()
    after_start: tuple[int, ...] = ()
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Programs:
    """What every rank does.

    Parameters
    ----------
    ranks : tuple of tuple of Op
        One program per rank; the order of its operations says nothing.
    """

    ranks: tuple[tuple[Op, ...], ...]

    @property
    def n_ops(self) -> int:
        """Operations of all ranks."""
        return sum(len(ops) for ops in self.ranks)

    def every(self) -> Iterator[tuple[int, int, Op]]:
        """Yield (rank, index, operation)."""
        for rank, ops in enumerate(self.ranks):
            for i, op in enumerate(ops):
                yield rank, i, op


def seated(programs: Programs, seats: tuple[int, ...], n_seats: int) -> Programs:
    """Renumber the programs by where they sit; seats that nobody takes get an empty program.

    Parameters
    ----------
    programs : Programs
        Of as many ranks as there are `seats`.
    seats : tuple of int
        Where each rank sits, 0 up to `n_seats`; no two on one.
    n_seats : int
        Such as the hosts of a network.

    Raises
    ------
    InputError
        If two sit on one seat, or one on none.
    """
    if len(set(seats)) != len(programs.ranks) or not all(0 <= seat < n_seats for seat in seats):
        raise InputError(f"{len(programs.ranks)} ranks need as many different seats 0..{n_seats - 1}, got {seats}")
    out: list[tuple[Op, ...]] = [()] * n_seats
    for seat, ops in zip(seats, programs.ranks, strict=True):
        out[seat] = tuple(op if op.kind == CALC or op.peer == ANY else replace(op, peer=seats[op.peer]) for op in ops)
    return Programs(tuple(out))
