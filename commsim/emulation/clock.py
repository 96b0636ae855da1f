"""Virtual time as whole attoseconds, so that a moment does not depend on how long the program has run before it."""

from __future__ import annotations

TICKS = 10**18
Ticks = int
__all__ = ["TICKS", "Ticks", "seconds_of", "ticks_of"]


def ticks_of(seconds: float) -> Ticks:
    """Return a time in seconds as whole ticks."""
    return round(seconds * TICKS)


def seconds_of(ticks: Ticks) -> float:
    """Return ticks as seconds."""
    return ticks / TICKS
