"""Numbers with their units, as people read them."""

from __future__ import annotations

from commsim.core.units import format_bandwidth, format_size, format_time


def format_value(value: float, unit: str) -> str:
    """Write a number of bytes, seconds, bytes per second or nothing."""
    if unit == "B":
        return format_size(value)
    if unit == "s":
        return format_time(value).replace("us", "µs")
    return format_bandwidth(value).rpartition("(")[2].removesuffix(")") if unit == "B/s" else f"{value:.10g}"
