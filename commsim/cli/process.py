"""The process of one command: it tunes what a library must leave alone, so that short commands take little time."""

from __future__ import annotations

import atexit
import gc
import sys

from . import main

MAX_UNSEEN = 50_000
"""Objects made between two looks for rubbish: importing Numba makes more, all of which stay."""


def run() -> None:
    """Run the command of this process, and exit with its status."""
    gc.set_threshold(MAX_UNSEEN)
    atexit.register(_leave_rubbish)
    sys.exit(main())


def _leave_rubbish() -> None:
    """At the end all memory goes back at once; looking through it takes 0.3 s."""
    if "duckdb" not in sys.modules:  # it counts what is left, and complains
        gc.freeze()


__all__ = ["run"]
