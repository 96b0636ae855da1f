"""Programmable switches that exist: one function each, which returns one frozen :class:`Hardware`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from commsim.core.registry import Registry
from switch_model.budget.chip import Hardware

HARDWARE: Registry[Hardware] = Registry("switch hardware", __name__)
F = TypeVar("F", bound=Callable[..., Hardware])
__all__ = ["HARDWARE", "Hardware", "hardware"]


def hardware(build: F) -> F:
    """Register a function that returns a switch, under its own name."""
    HARDWARE.add(build)
    return build
