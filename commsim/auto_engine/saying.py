"""Numbers of a case in words, for messages."""

from __future__ import annotations

from collections.abc import Callable

from commsim.core.units import format_bandwidth, format_size

WORDS: dict[str, Callable[[str], str]] = {
    "oversubscription": lambda x: f"oversubscription {x}",
    "unevenness": lambda x: f"fastest link {x} times the slowest",
    "near": lambda x: f"{x} ranks near each other",
    "ranks": lambda x: f"{x} ranks",
    "size": lambda x: x,
    "rate": lambda x: f"links of {x}",
    "product": lambda x: f"links that hold {x} (rate times latency)",
}


def say_number(name: str, value: float) -> str:
    """Say one number of a case, such as ``links of 100 Gb/s``."""
    return WORDS[name](_value(name, value))


def say_range(name: str, low: float, high: float) -> str:
    """Say between what it was compared."""
    return WORDS[name](" to ".join(dict.fromkeys((_value(name, low), _value(name, high)))))


def _value(name: str, value: float) -> str:
    if name in ("size", "product"):
        return format_size(value)
    return format_bandwidth(value).partition(" (")[0] if name == "rate" else f"{value:.4g}"
