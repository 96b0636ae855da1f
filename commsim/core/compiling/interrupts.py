"""Ctrl-C while LLVM runs: its callbacks into Python swallow the exception, and the program would go on."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Handle signals that come meanwhile at the end; what Python does not handle ends the process at once, as ever."""
    if threading.current_thread() is not threading.main_thread():  # others never handle signals
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = {number: handler for number, handler in before.items() if callable(handler)}
    for number in handled:
        signal.signal(number, lambda *of_signal: came.append(of_signal))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        for first, frame in came[:1]:
            handled[signal.Signals(first)](first, frame)
