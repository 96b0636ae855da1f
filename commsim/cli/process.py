"""The process of one command: it tunes what a library must leave alone, so that short commands take little time."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from commsim.core.interrupts import HEARD
from commsim.core.limits import keep_freed_memory
from commsim.extensions import house

from . import WITHOUT_NUMPY, main
from .completion import ASKED, complete
from .progress import end_on_signals, progress_shown

# New objects between two collections of garbage: importing Numba makes more, and they all stay.
MAX_NEW_OBJECTS = 50_000
# How many threads OpenBLAS starts when NumPy is imported; else one for each core.
THREADS = "OPENBLAS_NUM_THREADS"
# Verbs that end soon, and whose networks may be large.
KEEPING = {"run"}
__all__ = ["run"]


def run() -> None:
    """Run the command of this process, and exit with its status."""
    _open_what_is_closed()
    if ASKED in os.environ:
        complete()
    gc.set_threshold(MAX_NEW_OBJECTS)
    atexit.register(_skip_collection)
    terminated: list[int] = []
    process = os.getpid()

    def unwind(number: int, _: FrameType | None) -> None:
        """End as Ctrl-C does, so that temporary files and workers go; a child that was forked just ends."""
        if os.getpid() != process:
            os._exit(128 + number)
        terminated.append(number)
        HEARD.set()
        raise KeyboardInterrupt

    try:
        signal.signal(signal.SIGTERM, unwind)
        end_on_signals()
        verb = sys.argv[1] if len(sys.argv) > 1 else ""
        if house().summaries.get(verb) and verb not in (*WITHOUT_NUMPY, *house().programs):
            _import_numpy(sys.argv[2:])
        if verb in KEEPING:
            keep_freed_memory()
        with progress_shown(verb):
            status = main()
    except KeyboardInterrupt:
        status = 130
    except Exception:
        if not HEARD.is_set():  # else a library was interrupted in the middle, and made another error of it
            raise
        status = 130
    sys.exit(128 + terminated[0] if terminated else status)


def _skip_collection() -> None:
    """Omit the last collection, which takes 0.3 s: the process returns all its memory at once."""
    if "duckdb" not in sys.modules:  # it counts what is left, and complains
        gc.freeze()


def _open_what_is_closed() -> None:
    """Give streams that were closed when we were started, as by ``>&-``, a reader that throws away."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _import_numpy(words: Sequence[str]) -> None:
    """Import NumPy without threads of OpenBLAS, which take 15 ms each to start, unless only help is asked for.

    No model multiplies large matrices. Programs that a command starts have the variable as the user set it.
    """
    if THREADS in os.environ or not {"-h", "--help"}.isdisjoint(words):
        return
    os.environ[THREADS] = "1"
    import numpy  # noqa: F401

    del os.environ[THREADS]
