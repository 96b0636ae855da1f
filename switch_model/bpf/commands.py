"""The programs of the system that we call: clang, bpftool, tc and ip."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from commsim.core.errors import BackendError

SECONDS = 30.0
# Letters of a command that an error shows.
SHOWN = 120


def output_of(command: Sequence[str], stdin: str = "") -> str:
    """Run a program, give it a text to read, and return what it printed.

    Raises
    ------
    BackendError
        If it is missing, fails or does not end; the message has the line that says why.
    """
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise BackendError(f"no program {command[0]} here") from None
    except subprocess.TimeoutExpired:
        raise BackendError(f"{command[0]} did not end within {SECONDS:g} s") from None
    if done.returncode:
        raise BackendError(f"{_shown(command)} {_ended(done.returncode)}{_reason(done.stderr or done.stdout)}")
    return done.stdout


def records_of(command: Sequence[str]) -> list[dict[str, Any]]:
    """Run a program that prints JSON, and return its list of records; one record is a list of one."""
    rows = json.loads(output_of(command) or "[]")
    return rows if isinstance(rows, list) else [rows]


def _shown(command: Sequence[str]) -> str:
    """Return a command on one line, as one types it; of a long one, such as a compiler's, the beginning."""
    text = " ".join(shlex.join(command).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _ended(code: int) -> str:
    """Say how a program failed: one that a signal ended had no time to say why."""
    return f"failed with exit status {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line] or lines
    return f": {errors[0][:300]}" if errors else ", without a word"
