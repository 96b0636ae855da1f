"""Programs as processes: what one took, several taken in turns, and on what kind of machine that was."""

from __future__ import annotations

import json
import math
import os
import platform
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from commsim.core.errors import BackendError


@dataclass(frozen=True, slots=True)
class Run:
    """One process.

    Parameters
    ----------
    cpu : float, s
        Processor time of all of it, start to end, in user and kernel mode.
    said : mapping of str to number or str
        Its last line, JSON.
    """

    cpu: float
    said: Mapping[str, float | str]

    def number(self, name: str) -> float:
        """Return a number that the process printed."""
        return float(self.said[name])


def run(command: Sequence[str], limit: float = 600.0, memory: float = math.inf) -> Run:
    """Run a program to its end.

    Parameters
    ----------
    command : sequence of str
        Its last line of output is a JSON object.
    limit : float, s
        Of its processor time; the kernel ends it then.
    memory : float, bytes
        Of what it can allocate, whether it uses it or not.

    Raises
    ------
    BackendError
        If it fails; the message has the last line that it wrote on standard error.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        most = [f"--data={memory:.0f}"] if memory < math.inf else []
        limited = ["prlimit", f"--cpu={math.ceil(limit)}", *most, "--", *command]
        child = subprocess.Popen(limited, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        lines, said = (_lines(file) for file in (out, err))
        if child.returncode or not lines:
            why = f"more than {limit:.0f} s of processor time" if child.returncode == -signal.SIGKILL else "no message"
            raise BackendError(f"{Path(command[0]).name} ended with {child.returncode}: {(said or [why])[-1] or why}")
    return Run(usage.ru_utime + usage.ru_stime, json.loads(lines[-1]))


def in_turns(commands: Sequence[Sequence[str]], times: int) -> Iterator[tuple[Run, ...]]:
    """Run the commands one after the other, again and again, every second time in reverse order.

    Yields
    ------
    tuple of Run
        One for each command, in the order given.
    """
    for i in range(times):
        order = list(range(len(commands)))[:: -1 if i % 2 else 1]
        done = {at: run(commands[at]) for at in order}
        yield tuple(done[at] for at in range(len(commands)))


def peak_mb() -> float:
    """Largest resident size of this process so far in MB.

    Not from ``getrusage``: on Linux a child starts with the largest size that its parent had before it.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


def machine_kind() -> str:
    """Say on what kind of machine this is: the processor, and how many of them; no name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{model or platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"


def _lines(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode(errors="replace").splitlines()
