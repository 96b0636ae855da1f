"""Services that packages above offer to packages below, by name; :mod:`commsim.registrations` registers them.

Imports go one way, and a module named by a string is an import too. What a lower package needs of a higher one it asks
for here: a reader of a file of another tool, the picture of a value in a notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_SERVICES: dict[str, Callable[..., Any]] = {}
__all__ = ["offer", "service"]


def offer(name: str, service: Callable[..., Any]) -> None:
    """Register a service; one of the same name is replaced."""
    _SERVICES[name] = service


def service(name: str) -> Callable[..., Any]:
    """Return a service.

    Raises
    ------
    LookupError
        If nothing is registered under the name.
    """
    if not _SERVICES:
        sys.modules[__name__.partition(".")[0]].register_services()  # the root package registers all
    if name not in _SERVICES:
        raise LookupError(f"no service {name!r} is registered; known: {', '.join(sorted(_SERVICES))}")
    return _SERVICES[name]
