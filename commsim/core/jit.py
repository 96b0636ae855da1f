"""How kernels are compiled: one decorator, cached on disk, and one message the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

# `_nrt` is Numba's switch for code that owns no memory; calls are inlined since each would pass every array by value
BORROWING: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False, "forceinline": True}

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile with the project's options: disk cache, NumPy's division rules, no reordering of float sums."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))


def uncounted(function: F) -> F:
    """Compile as :func:`kernel` does, without counting references: for kernels that allocate nothing, not even slices.

    Counting costs an atomic operation for each array that is named, which is most of the time of a kernel that does
    little with many arrays: 9 tenths of the packet engine's.
    """
    return cast(F, numba.njit(**BORROWING)(function))


def announce(*kernels: Callable[..., Any]) -> None:
    """Say on standard error that kernels are about to be compiled, when the disk cache does not hold them yet."""
    if any(not _is_cached(k) for k in kernels):
        print("commsim: compiling kernels, once after installation (some 10 to 60 s) ...", file=sys.stderr, flush=True)


def _is_cached(function: Any) -> bool:
    if not hasattr(function, "stats"):
        return True  # NUMBA_DISABLE_JIT: nothing will be compiled
    name = function.py_func.__qualname__
    return bool(function.signatures) or any(Path(function.stats.cache_path).glob(f"*.{name}-*.nbi"))
