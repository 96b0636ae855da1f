"""What may be under way: a collective that ranks meet in, and on the network a collective or a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from commsim.emulation.clock import Ticks
from commsim.emulation.rank_calls import Collective, PendingCall
from commsim.prediction.plans.dense import Plan

# Tuples whose groups are kept: those of processes come anew with each call.
MAX_KEPT = 1024
__all__ = ["Flowing", "PendingCollective", "PendingMessage", "RankGroup", "RankGroups"]


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
        Number among the chains of the two ranks, since the network was idle.
    number : int
        Number among all messages.
    path : int
        Number of the path that its chain takes; messages between the same ranks on one path take the same time.
    carries : object
        What the caller keeps with it.
    """

    src: int
    dst: int
    n_bytes: float
    start: Ticks
    chain: int = 0
    number: int = 0
    path: int = 0
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


@dataclass(slots=True)
class RankGroups:
    """All groups that have met, by their members."""

    _by_members: dict[tuple[int, ...], RankGroup] = field(default_factory=dict)
    _kept: dict[int, tuple[tuple[int, ...], RankGroup]] = field(default_factory=dict)  # by id, with what has the id

    def of(self, members: tuple[int, ...]) -> RankGroup:
        """Return the group of some world ranks; a long tuple is hashed once."""
        kept = self._kept.get(id(members))
        if kept is None:
            group = self._by_members.get(members)
            if group is None:
                places = {rank: place for place, rank in enumerate(members)}
                group = self._by_members[members] = RankGroup(len(self._by_members), places)
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            kept = self._kept[id(members)] = members, group
        return kept[1]
