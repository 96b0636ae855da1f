"""What may be under way: a collective that ranks meet in, and on the network a collective or a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commsim.prediction.plans.dense import Plan

from .clock import Ticks
from .rank_calls import Collective, PendingCall

__all__ = ["Flowing", "PendingCollective", "PendingMessage", "RankGroup"]


@dataclass(slots=True, eq=False)
class Flowing:
    """A collective under way.

    Parameters
    ----------
    plan : Plan
        Its plan, of its size.
    key : tuple
        What it is, the same for all that are alike.
    n_bytes : float, bytes
        Size, as nccl-tests counts it.
    starts, ends : list of int, ticks
        When each rank entered, and left; None before.
    n_left, n_entered : int
        Ranks that have left, and that have entered.
    """

    plan: Plan
    key: tuple[Any, ...]
    n_bytes: float
    starts: list[Ticks | None]
    ends: list[Ticks | None]
    n_left: int = 0
    n_entered: int = 0

    def relative(self, begin: Ticks) -> Any:
        """When its ranks entered, after `begin`: one number where all did at once."""
        first = self.starts[0]
        if first is not None and self.starts.count(first) == len(self.starts):
            return first - begin
        return tuple(None if start is None else start - begin for start in self.starts)


@dataclass(slots=True, eq=False)
class PendingMessage:
    """A message under way: from one rank to another; messages of one chain wait for each other at the sender.

    Parameters
    ----------
    src, dst : int
        World ranks.
    n_bytes : float, bytes
        Payload.
    start, sent, done : int, ticks
        When it begins, has left, and has arrived; None before.
    chain : int
        Number among the chains of the two ranks.
    carries : object
        What the caller keeps with it.
    """

    src: int
    dst: int
    n_bytes: float
    start: Ticks
    chain: int = 0
    sent: Ticks | None = None
    done: Ticks | None = None
    carries: Any = None


@dataclass(slots=True, eq=False)
class PendingCollective:
    """One collective of all members: the n-th of their group and context."""

    call: Collective
    operations: list[PendingCall | None]
    flowing: Flowing | None = None
    n_results: int = -1
    n_entered: int = 0
    results: Sequence[Any] = ()
    spec: str = ""
    n_left: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RankGroup:
    """A group: its number, and the place of each of its world ranks."""

    number: int
    places: dict[int, int]
