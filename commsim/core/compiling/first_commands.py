"""The first commands after installation: kernels that were never compiled on this machine are interpreted more.

Without ``commsim warmup`` each command would be slow for ever if none compiled. A file in the folder of kernels
counts the processes that interpreted a new kernel.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from .kernel_cache import KernelCache, cache_folder, reached

# Processes that may interpret new kernels; later ones compile them.
MOST = 8
COUNT = "first_commands"  # file with one byte for each of them


def is_new(function: Callable[..., Any]) -> bool:
    """Whether a kernel may be interpreted since no machine code of it was ever kept here.

    Parameters
    ----------
    function : callable
        The kernel as plain Python.
    """
    return KernelCache(function, {}).name not in _known() and _counted()


@functools.cache
def _known() -> frozenset[str]:
    """Return the beginnings of the names of kept kernels: all but the stamp."""
    with contextlib.suppress(OSError):
        return frozenset(f"{path.name.rpartition('-')[0]}-" for path in cache_folder().iterdir())
    return frozenset()


@functools.cache
def _counted() -> bool:
    """Count this process, unless there were enough; whether it is one of the first."""
    path = cache_folder() / COUNT
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            if file.tell() >= MOST:
                return False
            file.write(b".")
    except OSError:  # nothing is kept there: each command would compile anew
        pass
    return True


def code_bytes(function: Callable[..., Any]) -> int:
    """Return the bytes of byte code of a kernel and of all that it can reach: its compilation takes in proportion.

    Parameters
    ----------
    function : callable
        The kernel as plain Python.
    """
    return sum(len(one.__code__.co_code) for one in reached(function))
