"""The systems: one function each, named as its authors do, which returns one frozen :class:`System`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from commsim.core.registry import Registry
from switch_model.system import System

SYSTEMS: Registry[System] = Registry("switch system", __name__)
F = TypeVar("F", bound=Callable[..., System])


def system(build: F) -> F:
    """Register a function that returns a system, under its own name."""
    SYSTEMS.add(build)
    return build


__all__ = ["SYSTEMS", "System", "system"]
