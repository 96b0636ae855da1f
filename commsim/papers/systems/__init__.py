"""Published training systems as functions of their parameters: ``commsim workload systems NAME --key value``.

To add one, write ``commsim/papers/systems/NAME.py`` with a function decorated by :func:`training_system`, and its
test. Its keyword arguments are the flags; what it returns is printed: numbers by name (``_s`` seconds, ``_B`` bytes),
lists of rows as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commsim.core.errors import InputError
from commsim.core.registry import Registry
from commsim.core.spec import read_arguments

MAX_COUNT = 2**20  # of ranks, layers, iterations and the like
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
    arguments = read_arguments(build, raw)
    for key, value in arguments.items():
        if isinstance(value, int) and abs(value) > MAX_COUNT:
            raise InputError(f"{name}: {key} is at most {MAX_COUNT}, got {value}")
        if key == "seed" and value < 0:
            raise InputError(f"{name}: a seed is 0 or more, got {value}")
    return build(**arguments)
