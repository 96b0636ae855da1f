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
    area: str, numbers: range, trial: Callable[[int], str], batch: int = BATCH, limit_s: float = LIMIT_S
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
    batch : int
        Trials of a process.
    limit_s : float, s
        Processor time for one of them.
    """
    at = numbers.start
    while at < numbers.stop:
        print(f"{area}: {at:,} of {numbers.stop:,}", file=sys.stderr, flush=True)
        reader, child = _forked(trial, range(at, min(at + batch, numbers.stop)))
        rest, begun, moved = b"", 0.0, time.monotonic()
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while True:
                ready = select.select([pipe], [], [], 0.5)[0]
                data = pipe.read(65536) if ready else b""
                if ready and not data:
                    break
                used = cpu_s(child)
                if data:
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        at, problem = json.loads(line)
                        if problem:
                            yield Defect(area, at, problem)
                        at += 1
                    begun = used = cpu_s(child)
                if data or used > begun + 0.01 * (time.monotonic() - moved):
                    moved = time.monotonic()
                if used - begun > limit_s or time.monotonic() - moved > IDLE_S:
                    os.kill(child, signal.SIGKILL)
                    yield Defect(area, at, f"no end within {used - begun:.0f} s of processor time")
                    at += 1
                    break
        status = os.waitpid(child, 0)[1]
        if status and not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            yield Defect(area, at, f"the process ended with status {status}")
            at += 1


def _forked(trial: Callable[[int], str], numbers: range) -> tuple[int, int]:
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return reader, child
    os.close(reader)
    status = 1
    try:
        for number in numbers:
            os.write(writer, json.dumps([number, trial(number)]).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)
