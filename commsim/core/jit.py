"""How kernels are compiled: one decorator, cached on disk, and one message the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile with the project's options: disk cache, NumPy's division rules, no reordering of float sums."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))


def announce(*kernels: Callable[..., Any]) -> None:
    """Say on standard error that kernels are about to be compiled, when the disk cache does not hold them yet."""
    if any(not _is_cached(k) for k in kernels):
        print("commsim: compiling kernels, once after installation (some 10 to 60 s) ...", file=sys.stderr, flush=True)


def _is_cached(function: Any) -> bool:
    if not hasattr(function, "stats"):
        return True  # NUMBA_DISABLE_JIT: nothing will be compiled
    name = function.py_func.__qualname__
    return bool(function.signatures) or any(Path(function.stats.cache_path).glob(f"*.{name}-*.nbi"))
