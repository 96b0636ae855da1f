"""Trials in forked processes: one that hangs, crashes or takes memory costs itself only, and is found by its number."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from commsim.core.interrupts import SIGNALS, signals_held

# Processor time that a trial may take, and time that it may take none, s: the machine may be busy with others.
LIMIT_S, IDLE_S = 20.0, 120.0
# Trials of one process: memory that they leave behind goes with it.
BATCH = 400
# Growth that is reported, bytes: libraries of 200 MB are loaded before.
MAX_GROWTH = 300e6


@dataclass(frozen=True, slots=True)
class Defect:
    """What went wrong in one trial.

    Parameters
    ----------
    area : str
        Kind of attack.
    number : int
        Number of the trial; with the seed it says all of the attack.
    problem : str
        What went wrong.
    what : str
        What was tried, where the number does not say enough.
    """

    area: str
    number: int
    problem: str
    what: str = ""


def resident(field: str = "VmRSS") -> float:
    """Memory of this process, bytes: what it has now, or ``VmHWM``, the most since :func:`forget_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def forget_peak() -> None:
    """Begin to count the largest memory of this process anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def cpu_s(process: int) -> float:
    """Processor time that a process has had, s; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(trial: Callable[[], str], measured: bool = True) -> str:
    """Return what is wrong with a trial: what it says, what it raises, or how much memory it takes."""
    before = 0.0
    if measured:
        forget_peak()
        before = resident()
    try:
        problem = trial()
    except Exception:  # all that a trial lets through is a defect
        problem = "".join(traceback.format_exc()[-1500:])
    grown = resident("VmHWM") - before if measured else 0.0
    return problem or (f"takes {grown / 1e6:.0f} MB more" if grown > MAX_GROWTH else "")


def in_processes(
    area: str, numbers: range, trial: Callable[[int], str], jobs: int = 1, batch: int = BATCH, limit_s: float = LIMIT_S
) -> Iterator[Defect]:
    """Make trials, each process some of them, and yield the defects.

    Parameters
    ----------
    area : str
        Kind of attack.
    numbers : range
        Numbers of the trials.
    trial : callable
        Takes a number, and returns what went wrong, or nothing.
    jobs : int
        Processes at a time.
    batch : int
        Trials of a process.
    limit_s : float, s
        Processor time for one of them.
    """
    waiting = [range(at, min(at + batch, numbers.stop)) for at in range(numbers.start, numbers.stop, batch)][::-1]
    running: dict[int, _Batch] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                with signals_held():  # one that ends us before it is listed would leave the process
                    one = _Batch(area, waiting.pop(), trial)
                    running[one.pipe] = one
                print(f"{area}: {one.at:,} of {numbers.stop:,}", file=sys.stderr, flush=True)
            ready = select.select(list(running), [], [], 0.5)[0]
            for pipe, one in list(running.items()):
                yield from one.heard() if pipe in ready else one.overdue(limit_s)
                if one.is_over:
                    del running[pipe]
                    if one.at < one.stop:
                        waiting.append(range(one.at, one.stop))
    finally:
        for one in running.values():
            one.stopped()


class _Batch:
    """A process that makes some trials, one after the other, and says after each what went wrong."""

    def __init__(self, area: str, numbers: range, trial: Callable[[int], str]) -> None:
        self.at, self.stop, self.is_over = numbers.start, numbers.stop, False
        self._area, self._rest, self._begun, self._moved = area, b"", 0.0, time.monotonic()
        self._used, self._worked = 0.0, self._moved
        self.pipe, self._process = _forked(trial, numbers)

    def heard(self) -> Iterator[Defect]:
        """Read what it says; at the end of that it is over."""
        data = os.read(self.pipe, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            number, problem = json.loads(line)
            if problem:
                yield Defect(self._area, number, problem)
            self.at = number + 1
        self._begun, self._moved, self._used = cpu_s(self._process), time.monotonic(), 0.0
        if not data:
            yield from self._end("")

    def overdue(self, limit_s: float) -> Iterator[Defect]:
        """End it if its trial has had too much processor time, or none at all for long."""
        used, now = cpu_s(self._process) - self._begun, time.monotonic()
        if used > self._used + 0.001 * IDLE_S:
            self._used, self._worked = used, now
        if used > limit_s or now > max(self._moved, self._worked) + IDLE_S:
            os.kill(self._process, signal.SIGKILL)
            yield from self._end(f"no end within {used:.1f} s of processor time, {now - self._moved:.0f} s in all")

    def stopped(self) -> None:
        """End it with all that is left to try."""
        if not self.is_over:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)

    def _end(self, problem: str) -> Iterator[Defect]:
        os.close(self.pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self.is_over = True
        problem = problem or (f"the process ended with status {status}" if status else "")
        if problem:
            yield Defect(self._area, self.at, problem)
            self.at += 1


def _forked(trial: Callable[[int], str], numbers: range) -> tuple[int, int]:
    """Fork a process for trials; return the pipe through which it says what came of them, and its number."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return reader, child
    status = 1
    try:
        for held in SIGNALS:  # the parent holds them
            signal.signal(held, signal.SIG_DFL)
        os.close(reader)
        for number in numbers:
            os.write(writer, json.dumps([number, trial(number)]).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)
