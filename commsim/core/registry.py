"""A registry: a name, the function of that name, and the facts declared beside it."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from .errors import InputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered function with the facts that its decorator declared."""

    name: str
    build: Callable[..., T]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.build) or "").split("\n", 1)[0]

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the function, by name."""
        return inspect.signature(self.build).parameters


class Registry(Generic[T]):
    """Functions by their own names, found by importing every module of one package on first use.

    Parameters
    ----------
    kind : str
        What an entry is, for messages: ``"topology"``.
    package : str
        The package whose modules register themselves when they are imported.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, Entry[T]] = {}
        self._complete = False

    def add(self, build: Callable[..., T], **facts: Any) -> None:
        """Register `build` under its own name.

        Raises
        ------
        InputError
            If another function has taken that name.
        """
        name = build.__name__
        known = self._entries.get(name)
        if known is not None and (known.build.__module__, known.build.__qualname__) != (
            build.__module__,
            build.__qualname__,
        ):
            raise InputError(f"two functions are registered as {self.kind} {name!r}")
        self._entries[name] = Entry(name, build, MappingProxyType(facts))

    def __getitem__(self, name: str) -> Entry[T]:
        self._import_all()
        if name not in self._entries:
            close = difflib.get_close_matches(name, self._entries, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"unknown {self.kind} {name!r}; {hint}known: {', '.join(self)}")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._import_all()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._import_all()
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        self._import_all()
        return name in self._entries

    def _import_all(self) -> None:
        if self._complete:
            return
        self._complete = True  # before the imports, since a module may ask the registry while it is imported
        try:
            for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
                importlib.import_module(f"{self._package}.{module.name}")
        except BaseException:
            self._complete = False  # else the next question would be answered with half of the names
            raise
