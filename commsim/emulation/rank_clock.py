"""The clock of one rank, and what it waits for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .clock import Ticks
from .rank_calls import PendingCall

__all__ = ["RankClock"]


@dataclass(slots=True, eq=False)
class RankClock:
    """One rank.

    Parameters
    ----------
    now, computed, exposed : int, ticks
        Its virtual time, the part of it in which it computed, and that in which it waited for the network.
    waits : sequence of PendingCall, optional
        What it waits for; None while it runs.
    every : bool
        Whether it waits for all of them.
    polls : bool
        Whether it only asks.
    idle_polls : int
        How often it has asked in vain, and done nothing else.
    has_ended : bool
        Whether its program has ended.
    steps : list of (int, int), ticks
        Time, and exposed time so far, at the end of each step of its optimiser.
    n_calls, n_met : int, dict
        Calls so far, and collectives of each group and context.
    """

    now: Ticks = 0
    computed: Ticks = 0
    exposed: Ticks = 0
    waits: Sequence[PendingCall] | None = None
    every: bool = True
    polls: bool = False
    idle_polls: int = 0
    has_ended: bool = False
    steps: list[tuple[Ticks, Ticks]] = field(default_factory=list)
    n_calls: int = 0
    n_met: dict[Hashable, int] = field(default_factory=dict)

    @property
    def satisfied(self) -> bool:
        """Whether what it waits for is there."""
        waits, every = self.waits, self.every
        if not waits:
            return True
        if len(waits) == 1:
            return waits[0].end is not None
        for operation in waits:
            if (operation.end is not None) != every:
                return not every
        return every

    def end_step(self) -> None:
        """Keep the time at the end of a step."""
        self.steps.append((self.now, self.exposed))

    def pass_until(self, at: Ticks) -> Ticks:
        """Wait until a time; return for how long."""
        waited = max(0, at - self.now)
        self.now += waited
        self.exposed += waited
        return waited

    def leave(self) -> None:
        """Wait until what it waits for has ended, and count that for what ends the wait."""
        if not self.waits:
            return
        last = self.waits[0]
        if len(self.waits) > 1:
            ended = [(operation.end, k) for k, operation in enumerate(self.waits) if operation.end is not None]
            last = self.waits[(max(ended) if self.every else min(ended))[1]] if ended else last
        end = last.end
        if end is not None and end > self.now:
            waited = end - self.now
            self.now = end
            self.exposed += waited
            if last.entry is not None:
                last.entry.exposed += waited
