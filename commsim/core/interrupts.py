"""Signals: Ctrl-C waits where an exception must not be raised."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HEARD = threading.Event()  # set by whatever handles one of them: where it stays unset, compiled code runs


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Handle signals that come meanwhile at the end; what Python does not handle ends the process at once, as ever."""
    if threading.current_thread() is not threading.main_thread():  # other threads never handle signals
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        HEARD.set()
        held.append((number, frame))

    asked = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in asked.items() if callable(handler)}
    for number in before:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first, frame in held[:1]:
            before[signal.Signals(first)](first, frame)
