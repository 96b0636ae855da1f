"""Ranks as threads of one process, of which one runs at a time: cheap, and in an order that never changes.

There is always exactly one that runs. When it has to wait, it hands over to the next that may run.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .coordinator import Coordinator
from .failures import RankError, RankStopped, interrupted
from .thread_rank import ThreadRank

__all__ = ["ThreadRanks"]


class ThreadRanks:
    """All ranks as threads.

    Parameters
    ----------
    coordinator : Coordinator
        Their clocks and network.
    seconds_of_cpu : callable, optional
        Function that returns the processor time of the thread that calls it; None where computing takes no time.
    factor : float
        What it is multiplied by.
    """

    def __init__(
        self, coordinator: Coordinator, seconds_of_cpu: Callable[[], float] | None = None, factor: float = 1.0
    ) -> None:
        self.coordinator, self.seconds_of_cpu, self.factor = coordinator, seconds_of_cpu, factor
        self.ranks = [ThreadRank(self, number) for number in range(len(coordinator.clocks))]
        self._ready: deque[tuple[int, bool]] = deque((number, True) for number in range(len(self.ranks)))
        self._over = threading.Event()
        self._failure: tuple[int, BaseException] | None = None
        self._stops = False

    def run(self, program: Callable[[ThreadRank], Any], stack_bytes: int = 0) -> None:
        """Run the program once for each rank, until all have ended.

        Parameters
        ----------
        program : callable
            Function of the rank.
        stack_bytes : int
            Stack of each thread; 0 is the system's.

        Raises
        ------
        RankError
            If one raises; the others are stopped.
        ProgramError
            If they are deadlocked.
        """
        before = threading.stack_size(stack_bytes) if stack_bytes else 0
        try:
            threads = [
                threading.Thread(target=self._body, args=(rank, program), name=f"rank {rank.number}", daemon=True)
                for rank in self.ranks
            ]
            for thread in threads:
                thread.start()
        finally:
            if stack_bytes:
                threading.stack_size(before)
        try:
            self._next(None)
            while not self._over.wait(3600.0):
                pass
        except KeyboardInterrupt:
            stopped = interrupted(self.coordinator.clocks)
            self._stop(threads)
            raise stopped from None
        except BaseException:
            self._stop(threads)
            raise
        self._stop(threads)
        if self._failure is not None:
            number, error = self._failure
            if number < 0:
                raise error
            raise RankError(number, error) from error

    def hand_over(self, rank: ThreadRank) -> None:
        """Let the next rank run, and return when this one may."""
        if self._next(rank) and rank.main is not None:
            sys.modules["__main__"] = rank.main
        if self.seconds_of_cpu is not None:
            rank.begin_to_count()

    def _next(self, rank: ThreadRank | None) -> bool:
        """Let the next one run; wait for the turn of `rank` unless that is it, or there is none; return whether."""
        if self._stops:
            raise RankStopped
        ready = self._ready
        try:
            if not ready:
                ready.extend(self.coordinator.advance())
        except Exception as error:  # a deadlock, or an error of the network: nobody goes on
            self._fail(-1, error)
            raise RankStopped from None
        number, answer = ready.popleft()
        after = self.ranks[number]
        after.answer = answer
        if after is rank:
            return False
        after.turn.release()
        if rank is None:
            return False
        rank.turn.acquire()
        if self._stops:
            raise RankStopped
        return True

    def _body(self, rank: ThreadRank, program: Callable[[ThreadRank], Any]) -> None:
        rank.turn.acquire()
        if self._stops:
            return
        rank.begin_to_count()
        try:
            program(rank)
        except RankStopped:
            return
        except BaseException as error:
            self._fail(rank.number, error)
            return
        rank._count()
        self.coordinator.end(rank.number)
        if all(clock.has_ended for clock in self.coordinator.clocks):
            self._over.set()
            return
        try:
            self._next(None)
        except RankStopped:
            return

    def _fail(self, number: int, error: BaseException) -> None:
        if self._failure is None:
            self._failure = number, error
        self._stops = True
        self._over.set()

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        """End all threads that still wait for their turn."""
        self._stops = True
        for rank in self.ranks:
            if rank.turn.locked():
                rank.turn.release()
        for thread in threads:
            thread.join(timeout=5.0)
