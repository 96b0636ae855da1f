"""Searches wait for each other in one thread; more than can be answered in time are refused, with when to ask again."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .guard import Refusal
from .limits import MAX_WAIT_S, MAX_WAITING

T = TypeVar("T")
_FIRST_GUESS_S, _NEWEST = 0.1, 0.2  # of a search; and the part of the newest in the mean


class SearchQueue:
    """One thread, and how long it will be busy."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "search")
        self._n_waiting, self._mean_s = 0, _FIRST_GUESS_S

    def close(self) -> None:
        """End the thread; what waits for it is forgotten."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, search: Callable[[], T]) -> T:
        """Do a search after those before it.

        Raises
        ------
        Refusal
            If too many wait, or they would take too long (503, with Retry-After).
        """
        wait_s = self._n_waiting * self._mean_s
        if self._n_waiting >= MAX_WAITING or wait_s > MAX_WAIT_S:
            text = f"{self._n_waiting} searches are waiting, which take about {wait_s:.0f} s; try again"
            raise Refusal(503, text, retry_after=max(1, math.ceil(wait_s / 2)))
        self._n_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._timed, search)
        finally:
            self._n_waiting -= 1

    def _timed(self, search: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            return search()
        finally:
            self._mean_s += _NEWEST * (time.perf_counter() - start - self._mean_s)
