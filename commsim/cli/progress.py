"""A thread that watches over a command: it shows progress from the second second, and ends what Ctrl-C does not."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from time import monotonic, process_time  # bound here: an emulated program has a clock of its own
from types import FrameType
from typing import NoReturn

from commsim.core.compiling.notices import compiled_s, is_compiling
from commsim.core.interrupts import HEARD

SILENT = 2.0  # seconds before the first line
BETWEEN = 1.0  # seconds between two on a terminal
LONG = 10.0  # seconds of an estimate, or of processor time, that are printed where there is no terminal, too
AGAIN = 0.01  # seconds after which an ignored interruption is repeated: its callback has returned
PATIENCE = 2.0  # seconds that a signal may wait for Python: a kernel or a solver does not hear it


@contextlib.contextmanager
def progress_shown(verb: str) -> Iterator[None]:
    """Show what the command does, and for how long, unless it has a line or a bar of its own."""
    if (limits := sys.modules.get("commsim.core.limits")) is not None:  # of the command before, in the same process
        limits.EXPECTED.clear()
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(verb, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Ctrl-C within an import can leave Python's lock on that module held for ever, and the thread imports.
        thread.join(BETWEEN)


def _show(verb: str, over: threading.Event) -> None:
    began, used, compiled = monotonic(), process_time(), compiled_s()
    if over.wait(SILENT):  # short commands need none of what is imported below
        return
    from commsim.core.limits import EXPECTED, scheduled
    from commsim.report.terminal import show_step, tell

    ran, waited = scheduled()
    next_told, shown, wait = 0.0, False, 0.0
    while not over.wait(wait):
        wait = BETWEEN
        elapsed = monotonic() - began
        text = line(
            verb,
            elapsed,
            EXPECTED.what,
            EXPECTED.seconds,
            EXPECTED.part,
            compiled_s() - compiled,
            share_of_core(ran, waited),
            is_compiling(),
        )
        if EXPECTED.is_shown:
            continue
        if sys.stderr.isatty():
            show_step(text)
            shown = True
        elif elapsed >= next_told and (EXPECTED.part or max(EXPECTED.seconds, process_time() - used) >= LONG):
            next_told = 2 * elapsed  # after 2, 4, 8 seconds and so on
            tell(text)
    if shown and not EXPECTED.is_shown:
        show_step()


def share_of_core(ran: float, waited: float) -> float:
    """Return the share of the time since `ran` and `waited` in which the main thread got the core that it asked for."""
    from commsim.core.limits import scheduled

    now_ran, now_waited = scheduled()
    wanted = now_ran - ran + now_waited - waited
    return (now_ran - ran) / wanted if wanted > 0 else 1.0


def line(
    verb: str, elapsed: float, what: str, seconds: float, part: str = "", compiled: float = 0.0, share: float = 1.0,
    compiling: bool = False,
) -> str:  # fmt: skip
    """Write a line of progress.

    Parameters
    ----------
    verb : str
        Command.
    elapsed : float
        Seconds since it began.
    what, seconds : str, float
        Work that was declared, and its estimate; empty and 0 if none was.
    part : str
        Which of several parts of the command it is.
    compiled : float
        Seconds of `elapsed` in which kernels were compiled; the estimate is one of the work without them.
    share : float
        Share of a core that it gets beside other work; the estimate is one of processor time.
    compiling : bool
        Whether kernels are being compiled now, so that the work has not gone on to what is estimated.
    """
    from commsim.core.limits import about_share, duration

    so_far = f"{duration(elapsed)} so far" + (f", {duration(compiled)} of them compiling" if compiled >= 1 else "")
    so_far += about_share(share)

    begin = f"commsim {verb}: {'compiling kernels; ' if compiling else ''}"
    if part:
        declared = f", {what}, about {duration(seconds)}" if what else ""
        return f"{begin}{part}{declared}; {so_far}; Ctrl-C ends it"
    if not what:
        return f"{begin}{so_far}; Ctrl-C ends it"
    about = f"about {duration(seconds)}"
    if (elapsed - compiled) * share > seconds and not compiling:  # too short: it says nothing of what is left
        about = f"more than the {duration(seconds)} estimated"
    then = "then " if compiling else ""
    return f"{begin}{then}{what}, {about}; {so_far}; Ctrl-C ends it"


def end_on_signals() -> None:
    """End this process on Ctrl-C and SIGTERM even where Python cannot handle them, since compiled code runs.

    A handler of these sets ``HEARD``: all that follows is cleaning up, which may take its time. Where Python ignores
    the interruption, since it came within a callback of its own, the signal is sent again.
    """
    sys.unraisablehook = _again
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, _interrupt)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))  # signals of a worker are its own
    threading.Thread(target=_wait, args=(reader,), daemon=True).start()


def _again(ignored: sys.UnraisableHookArgs) -> None:
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    signal.signal(signal.SIGINT, _interrupt)  # also where further ones were to be ignored
    with contextlib.suppress(RuntimeError):  # no thread starts as Python exits: there it is over anyway
        main = threading.main_thread().ident or 0
        again = threading.Timer(AGAIN, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    HEARD.set()
    raise KeyboardInterrupt


def _wait(reader: int) -> None:
    while number := os.read(reader, 1):
        if number[0] in (signal.SIGINT, signal.SIGTERM) and not HEARD.wait(PATIENCE):
            os._exit(128 + number[0])
