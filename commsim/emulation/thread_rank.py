"""The rank of a thread, as its program sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

from .clock import seconds_of, ticks_of
from .coordinator import Coordinator
from .rank_calls import Call, PendingCall

__all__ = ["ThreadRank"]


class Turns(Protocol):
    """What lets ranks run, one at a time: :class:`commsim.emulation.thread_ranks.ThreadRanks`."""

    coordinator: Coordinator
    seconds_of_cpu: Callable[[], float] | None
    factor: float

    def hand_over(self, rank: ThreadRank) -> None:
        """Let the next rank run, and return when this one may."""


class ThreadRank:
    """One rank, as its program sees it; the methods are those of :class:`commsim.emulation.rank.Rank`."""

    def __init__(self, ranks: Turns, number: int) -> None:
        self.number, self.n_ranks = number, len(ranks.coordinator.clocks)
        self._ranks, self._coordinator = ranks, ranks.coordinator
        self._measures = ranks.seconds_of_cpu is not None
        self._clock = ranks.coordinator.clocks[number]
        self.cache: dict[Any, Any] = {}
        self.turn = threading.Lock()
        self.turn.acquire()
        self.answer = True
        self.cpu = 0.0
        self.main: ModuleType | None = None

    def now(self) -> float:
        """Return the virtual time of the rank, s."""
        self._count()
        return seconds_of(self._clock.now)

    def compute(self, seconds: float) -> None:
        """Let the rank's clock go on."""
        self._coordinator.compute(self.number, ticks_of(max(seconds, 0.0)))

    def sleep(self, seconds: float) -> bool:
        """Let the rank's clock go on without computing."""
        self._count()
        self._coordinator.sleep(self.number, ticks_of(seconds))
        return True

    def post(self, call: Call) -> PendingCall:
        """Begin a call; returns at once."""
        if self._measures:
            self._count()
        return self._coordinator.post(self.number, call)

    def wait(self, operations: Sequence[PendingCall], *, every: bool = True) -> None:
        """Wait until all, or with ``every=False`` one, of some operations are complete."""
        if self._measures:
            self._count()
        if not self._coordinator.wait(self.number, operations, every=every):
            self._ranks.hand_over(self)

    def test(self, operations: Sequence[PendingCall], *, every: bool = True) -> bool:
        """Whether all, or one, of some operations are complete now; asked again in vain, when something has ended."""
        self._count()
        if self._coordinator.wait(self.number, operations, every=every, polls=True):
            return True
        self._ranks.hand_over(self)
        return self.answer

    def cancel(self, operation: PendingCall) -> None:
        """Take back a receive that has no message yet."""
        self._coordinator.cancel(operation)

    def _count(self) -> None:
        """Add the processor time since the rank was last looked at, where computing takes time."""
        if self._ranks.seconds_of_cpu is not None:
            cpu = self._ranks.seconds_of_cpu()
            self.compute((cpu - self.cpu) * self._ranks.factor)
            self.cpu = self._ranks.seconds_of_cpu()

    def begin_to_count(self) -> None:
        """Count processor time from now on."""
        if self._ranks.seconds_of_cpu is not None:
            self.cpu = self._ranks.seconds_of_cpu()
