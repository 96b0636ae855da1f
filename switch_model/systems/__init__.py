"""The systems: one function each, named as its authors do, which returns one frozen :class:`System`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from commsim.core.registry import Entry, Registry
from switch_model.system import System

SYSTEMS: Registry[System] = Registry("switch system", __name__)
F = TypeVar("F", bound=Callable[..., System])
__all__ = ["SYSTEMS", "System", "SystemSpec", "parameters_of", "system"]


def system(build: F) -> F:
    """Register a function that returns a system, under its own name.

    A function with a parameter ``n_bytes`` may return another system for small tensors than for large ones.
    """
    SYSTEMS.add(build)
    return build


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A system with the parameters that were given.

    Parameters
    ----------
    entry : Entry
        Entry of the registry.
    arguments : mapping of str to value
        Arguments of the system's function; the rest are its own.
    """

    entry: Entry[System]
    arguments: Mapping[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _spec_named, (self.entry.name, dict(self.arguments))

    def at(self, n_bytes: float = float("inf")) -> System:
        """Return the system that serves tensors of this size."""
        more = {"n_bytes": n_bytes} if "n_bytes" in self.entry.parameters else {}
        return self.entry.build(**self.arguments, **more)


def _spec_named(name: str, arguments: Mapping[str, Any]) -> SystemSpec:
    """Return a system that comes out of a pickle, which has no functions."""
    return SystemSpec(SYSTEMS[name], arguments)


def parameters_of(entry: Entry[System]) -> tuple[str, ...]:
    """Parameters of a system that the user may give."""
    return tuple(name for name in entry.parameters if name != "n_bytes")
