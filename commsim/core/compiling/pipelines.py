"""Which compilers kernels get: ours, or Numba's own where its private classes are not as ours expect."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from .kernel_cache import KernelCache, LinkedCache, line_of
from .notices import notify

OURS, FASTER = "commsim.core.compiling.kernel_compiler", "commsim.core.compiling.faster_numba"
LONG_LOOPS, FROM_FRONT = "long_loops", "from_front"  # our own options among those of `njit`
VALUES = 4  # that the two kernels of the check add


class _Factors(NamedTuple):
    """What one kernel of the check reads by its address."""

    first: int
    of: Any


class Pipelines(NamedTuple):
    """How the two kinds of kernels are compiled.

    Parameters
    ----------
    called, linked : dict
        Options of ``njit`` for kernels that Python calls, and for those within others.
    long_loops : dict
        Options of ``njit`` for kernels that Python calls and whose loops are long.
    from_front : dict
        Options of ``njit`` for kernels within others that have no negative index.
    linked_cache : type
        Cache of kernels within others.
    widened : callable
        Map from the types of arguments to those that a kernel within others is compiled for.
    """

    called: dict[str, Any]
    linked: dict[str, Any]
    long_loops: dict[str, Any]
    from_front: dict[str, Any]
    linked_cache: type[KernelCache]
    widened: Callable[[Any], Any]

    def call(self, function: Callable[..., Any], options: dict[str, Any], quiet: bool = False) -> Any:
        """Return Numba's object for a kernel that Python calls."""
        called = self.long_loops if options.get(LONG_LOOPS) else self.called
        dispatcher = importlib.import_module("numba").njit(**called, **_of_numba(options))(function)
        dispatcher._cache = KernelCache(function, options, quiet)
        return dispatcher

    def link(self, function: Callable[..., Any], options: dict[str, Any], quiet: bool = False) -> Any:
        """Return Numba's object for a kernel within others."""
        linked = self.from_front if options.get(FROM_FRONT) else self.linked
        dispatcher = importlib.import_module("numba").njit(**linked, **_of_numba(options))(function)
        dispatcher._cache = self.linked_cache(function, options, quiet)
        compile_one = dispatcher.compile
        dispatcher.compile = lambda kinds: compile_one(self.widened(kinds))
        return dispatcher


def _of_numba(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that Numba knows."""
    return {name: value for name, value in options.items() if name not in (LONG_LOOPS, FROM_FRONT)}


PLAIN = Pipelines({}, {}, {}, {}, KernelCache, lambda kinds: kinds)


@functools.cache
def pipelines() -> Pipelines:
    """Return our compilers if two small kernels come out right, else Numba's, with a line on standard error."""
    try:
        found = _own_pipelines()
        _check(found)
    except Exception as error:  # a private class may be missing, take other arguments or do something else
        if (faster := sys.modules.get(FASTER)) is not None:  # a package that it patches may be the cause
            faster.remove()
        version = importlib.import_module("numba").__version__
        notify(f"numba {version} is not as expected ({line_of(error)}): "
               "kernels are compiled by plain njit, which takes twice as long")  # fmt: skip
        return PLAIN
    return found


def _own_pipelines() -> Pipelines:
    ours = importlib.import_module(OURS)
    importlib.import_module(FASTER).install()
    kinds = ours.CalledCompiler, ours.LinkedCompiler, ours.LongLoopsCompiler, ours.FromFrontCompiler
    called, linked, long_loops, from_front = ({"pipeline_class": kind} for kind in kinds)
    return Pipelines(called, linked, long_loops, from_front, LinkedCache, ours.widened)


def _check(found: Pipelines) -> None:
    """Compile a kernel within another one, or read them from the disk, and compare with plain Python.

    Raises
    ------
    Exception
        Any error of compiling or running, and a wrong result.
    """
    within = found.link(_share, {}, quiet=True)

    def total(factors: _Factors) -> float:
        sum_of = 0.0
        for i in range(factors.first, len(factors.of)):
            sum_of += within(factors, i, i + 0.1)
        return sum_of

    factors = _Factors(1, importlib.import_module("numpy").arange(VALUES))
    right = sum(_share(factors, i, i + 0.1) for i in range(factors.first, VALUES))
    result = found.call(total, {}, quiet=True)(factors)
    if result != right:
        raise ValueError(f"a sum is {result}, not {right}")


def _share(factors: _Factors, i: int, x: float) -> float:
    if x < 0:
        raise ValueError("no share of ", x)
    return float(factors.of[i] * x / (i + 3))
