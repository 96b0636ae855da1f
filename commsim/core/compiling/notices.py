"""Lines on standard error about the compiler: when it takes long, and when its work is lost."""

from __future__ import annotations

import gc
import os
import sys
import threading
from time import monotonic  # bound here: an emulated program has a clock of its own

LONG = 1.0  # seconds of compiling before a line says so
# What launchers set in each rank: only the first says anything.
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK")
# New objects, and collections of younger ones, after which cycles are looked for while kernels are compiled: the
# compiler makes millions of objects, few of them in cycles, and looking for these was a tenth of its time.
SELDOM = (200_000, 50, 100)
_lock = threading.Lock()
_open: set[object] = set()  # what is being compiled
_told: set[str] = set()
_timer: threading.Timer | None = None
_usual = gc.get_threshold()
_began, _spent = 0.0, 0.0  # when the outermost kernel began to compile, and seconds of those before it


def is_first_rank() -> bool:
    """Whether no launcher started this process, or started it as its first rank."""
    return all(os.environ.get(name, "0") == "0" for name in RANK_VARIABLES)


def notify(text: str) -> None:
    """Print one line on standard error, in the first of the ranks that a launcher started."""
    if is_first_rank():
        print(f"commsim: {text}", file=sys.stderr, flush=True)


def begin_compiling(what: object, why: str) -> None:
    """Note that a kernel is being compiled; if it takes long, print so once in this process.

    Parameters
    ----------
    what : object
        The kernel and its signature.
    why : str
        Reason, for the line.
    """
    global _timer, _began, _usual
    with _lock:
        if not _open:
            _began, _usual = monotonic(), gc.get_threshold()
            gc.set_threshold(*SELDOM)
        _open.add(what)
        if not _told and _timer is None and LONG > 0:
            _timer = threading.Timer(LONG, _tell, (why,))
            _timer.daemon = True
            _timer.start()
    if LONG <= 0:
        _tell(why)


def end_compiling(what: object) -> None:
    """Note that a kernel is compiled, with all kernels within it if it was the outermost."""
    global _timer, _spent
    with _lock:
        if what in _open and len(_open) == 1:
            _spent += monotonic() - _began
            gc.set_threshold(*_usual)
        _open.discard(what)
        if not _open and _timer is not None:
            _timer.cancel()
            _timer = None


def compiled_s() -> float:
    """Return the seconds that this process has spent compiling kernels so far."""
    with _lock:
        return _spent + (monotonic() - _began if _open else 0.0)


def is_compiling() -> bool:
    """Whether this process compiles a kernel now."""
    return bool(_open)


def not_kept(why: str) -> None:
    """Print once that compiled kernels could not be written, unless that was foreseen."""
    if not _told & {"each time", "not kept"}:
        notify(f"compiled kernels are not kept: {why}")
        _told.add("not kept")


def _tell(why: str) -> None:
    """Print that kernels are compiled, which takes a while, and why."""
    with _lock:
        if not _open or _told:
            return
        _told.add("each time" if why.startswith("each time") else "once")
    notify(f"compiling kernels, {why} (some 10 to 60 s) ...")
