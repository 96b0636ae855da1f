"""The clocks of :mod:`time` as an emulated program reads them: those of its rank, which show virtual time.

Python's own modules, torch and the emulation wait for real threads and processes: they read the clocks of this machine.
``time.sleep`` of the program lets the rank's clock go on, and takes no time here; libraries really sleep.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLOCK = "COMMSIM_EMULATE_CLOCK"
CLOCKS = ("virtual", "wall")
# Packages that read the clocks of this machine.
OURS = ("torch", "numba", "llvmlite")
# How often a clock that stands may be read before a program is taken to wait for it.
MOST_READ = 1_000_000
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
STANDS = (
    "the virtual clock stands until the program communicates or sleeps, and it was read {} times: "
    "--compute measured counts processor time, --clock wall shows this machine's clock"
)
_HERE = (str(Path(__file__).resolve().parents[1]) + os.sep, str(Path(os.__file__).parent) + os.sep, "<frozen")
__all__ = ["CLOCK", "CLOCKS", "ProgramClock", "Readings", "rank_clock"]


class Readings:
    """How often a clock was read since it last went on."""

    def __init__(self) -> None:
        self._last, self._n = -1.0, 0

    def add(self, now: float) -> float:
        """Return what is read.

        Raises
        ------
        RuntimeError
            If the program seems to wait for a clock that stands.
        """
        self._n = self._n + 1 if now == self._last else 0
        self._last = now
        if self._n >= MOST_READ:
            raise RuntimeError(STANDS.format(self._n))
        return now


class ProgramClock:
    """What the functions of :mod:`time` show; as a context, only inside.

    Parameters
    ----------
    now : callable
        Function that returns the virtual time of what calls it, s; None where that is no rank.
    sleep : callable, optional
        Function of the seconds for which a rank sleeps, which returns whether it is one; by default all really sleep.
    """

    def __init__(self, now: Callable[[], float | None], sleep: Callable[[float], bool] | None = None) -> None:
        self._now, self._sleep = now, sleep
        self._begun = time.time()
        self._before: dict[str, Callable[..., Any]] = {}
        self._readings = Readings()

    def __enter__(self) -> ProgramClock:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def install(self) -> None:
        """Show virtual time from now on, but not in processes that are forked from this one."""
        for name, begun in (("time", self._begun), ("perf_counter", 0.0), ("monotonic", 0.0)):
            self._put(name, self._clock(getattr(time, name), begun))
            self._put(f"{name}_ns", self._clock(getattr(time, f"{name}_ns"), begun, in_ns=True))
        if self._sleep is not None:
            self._put("sleep", self._sleeping(time.sleep, self._sleep))
        os.register_at_fork(after_in_child=self.remove)

    def remove(self) -> None:
        """Show the clocks of this machine again."""
        for name, function in self._before.items():
            setattr(time, name, function)
        self._before = {}

    def _put(self, name: str, function: Callable[..., Any]) -> None:
        self._before[name] = getattr(time, name)
        setattr(time, name, function)

    def _clock(self, real: Callable[[], Any], begun: float, *, in_ns: bool = False) -> Callable[[], Any]:
        @functools.wraps(real)
        def clock() -> Any:
            if not self._before or _kind(sys._getframe(1).f_code.co_filename) == "ours":
                return real()
            now = self._now()
            if now is None:
                return real()
            self._readings.add(now)
            return round((begun + now) * 1e9) if in_ns else begun + now

        return clock

    def _sleeping(self, real: Callable[[float], None], virtual: Callable[[float], bool]) -> Callable[[float], None]:
        @functools.wraps(real)
        def sleep(seconds: float, /) -> None:
            sleeps = self._before and _kind(sys._getframe(1).f_code.co_filename) == "program" and seconds >= 0
            if not sleeps or not virtual(seconds):
                real(seconds)

        return sleep


@functools.cache
def _kind(file: str) -> str:
    """Whether a file belongs to the `program`, to a `library` that it brings, or is `ours`: waits for real time."""
    for packages in PACKAGES:
        if packages in file:
            name = file.rpartition(packages)[2].partition(os.sep)[0]
            return "ours" if name in OURS or file.startswith(_HERE[0]) else "library"
    return "ours" if file.startswith(_HERE) else "program"


def rank_clock() -> ProgramClock:
    """Return the clock of the ranks of this process: of each thread, or of the process."""
    from .current import rank_or_none

    def now() -> float | None:
        rank = rank_or_none()
        return None if rank is None else rank.now()

    def sleep(seconds: float) -> bool:
        rank = rank_or_none()
        return rank is not None and rank.sleep(seconds)

    return ProgramClock(now, sleep)
