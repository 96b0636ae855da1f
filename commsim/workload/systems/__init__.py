"""Published training systems as functions of their parameters: ``commsim workload systems NAME --key value``.

To add one, write ``commsim/workload/systems/NAME.py`` with a function decorated by :func:`training_system`, and its
test. Its keyword arguments are the flags; what it returns is printed: numbers by name (``_s`` seconds, ``_B`` bytes),
lists of rows as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commsim.core.registry import Registry
from commsim.core.spec import read_arguments

Answer = dict[str, Any]
SYSTEMS: Registry[Answer] = Registry("training system", __name__)


def training_system(paper: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Register a system under its function's name, with the paper that it comes from."""

    def register(build: Callable[..., Answer]) -> Callable[..., Answer]:
        SYSTEMS.add(build, paper=paper)
        return build

    return register


def run_system(name: str, raw: dict[str, str]) -> Answer:
    """Run a system with parameters given as text.

    Raises
    ------
    InputError
        If the system or a parameter is unknown, or a value is wrong.
    """
    build = SYSTEMS[name].build
    return build(**read_arguments(build, raw))
