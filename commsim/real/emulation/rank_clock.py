"""The clock of one rank, and what it waits for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .clock import Ticks
from .rank_calls import Operation

__all__ = ["RankClock"]


@dataclass(slots=True, eq=False)
class RankClock:
    """One rank.

    Parameters
    ----------
    now, computed : int, ticks
        Its virtual time, and the part of it in which it computed.
    waits : sequence of Operation, optional
        What it waits for; None while it runs.
    every : bool
        Whether it waits for all of them.
    polls : bool
        Whether it only asks.
    idle_polls : int
        How often it has asked in vain, and done nothing else.
    has_ended : bool
        Whether its program has ended.
    n_calls, n_met : int, dict
        Calls so far, and collectives of each group and context.
    """

    now: Ticks = 0
    computed: Ticks = 0
    waits: Sequence[Operation] | None = None
    every: bool = True
    polls: bool = False
    idle_polls: int = 0
    has_ended: bool = False
    n_calls: int = 0
    n_met: dict[Hashable, int] = field(default_factory=dict)

    @property
    def satisfied(self) -> bool:
        """Whether what it waits for is there."""
        waits = self.waits or ()
        ready = (operation.end is not None for operation in waits)
        return all(ready) if self.every or not waits else any(ready)
