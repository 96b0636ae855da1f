"""Plugin of pytest: a test that takes two minutes of processor time ends the process, as a mutant that loops does."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

SECONDS = 120.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Let the kernel end the process by SIGPROF, which also ends compiled code that holds the interpreter's lock."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
