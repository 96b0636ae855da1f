"""How kernels are run: compiled and cached on disk, with one message the first time; interpreted where work is little.

Numba itself is imported when the first kernel is to be compiled. Loading it costs half a second and compiling some ten
seconds, so that a kernel that touches a few thousand numbers is done sooner as plain Python: that is what
:func:`expected_work` allows. A kernel that was never compiled on this machine is interpreted for as long as
its compilation takes, so that the first commands after installation wait for the compiler only where that pays.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

# Packages with kernels: their named tuples go to kernels, which never make, return or take one apart.
PACKAGES = {"commsim"}
# `nogil`: a thread shows progress meanwhile, and ends the process on Ctrl-C
KERNEL: dict[str, Any] = {"error_model": "numpy", "nogil": True}
# `_nrt` is Numba's switch for code that owns no memory; calls are inlined since each would pass every array by value
BORROWING: dict[str, Any] = {**KERNEL, "_nrt": False, "forceinline": True}
CALLED: dict[str, Any] = {**KERNEL, "_nrt": False}

# Packages whose kernels that count no references have no negative index: they add themselves.
COUNT_FROM_FRONT: set[str] = set()

# Steps that a process interprets in all before it compiles: about as long as loading Numba takes.
MAX_INTERPRETED = 500_000
# The same for each kernel that was never compiled here, and for each byte of byte code that the compiler reads: as long
# either way. A kernel of one line takes it 0.25 s, a byte 0.2 ms; a step takes STEP seconds.
STEPS_PER_KERNEL, STEPS_PER_BYTE = 100_000, 80
STEP = 2.5e-6
# The most for such a kernel: the largest ones are compiled by two processes. And for one that was never called, so that
# nobody knows how much of the declared work it does: some 2 s for all kernels of that work together.
MAX_NEW, MAX_UNTRIED = 3_000_000, 1_000_000

F = TypeVar("F", bound=Callable[..., Any])
# A structured array. As an array of np.void its fields would be arrays of Any, for which mypy tries every overload of
# every operator: 141 s in place of 87 for the whole tree.
Records = Any
# Work that is declared, and how often it is done.
_declared: ContextVar[_Work | None] = ContextVar("declared", default=None)
_times: ContextVar[int] = ContextVar("times", default=1)


class _Work(NamedTuple):
    """Declared work, and which new kernels are interpreted within it, or that every kernel is."""

    steps: float
    every: bool
    chosen: dict[Kernel, bool]


class Kernel:
    """A function of arrays and scalars, compiled when it is first called outside of little work.

    Parameters
    ----------
    function : callable
        What it does, as plain Python.
    options : dict
        Options of the compiler.
    """

    steps_left, most_new, most_untried = MAX_INTERPRETED, MAX_NEW, MAX_UNTRIED
    # ``module:function`` that compiles what this process will call, for a second process to call if this one compiles.
    needed_soon: ClassVar[str] = ""
    # What :func:`call_at` calls in plain Python; no global, whose value would be part of what kernels are kept under.
    functions: ClassVar[dict[int, Callable[[Any], None]]] = {}

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self.declared = self.interpreted = 0.0  # steps as a new kernel: those declared, and those that it took

    def __call__(self, *args: Any) -> Any:
        """Run it, as plain Python within little work."""
        work = _declared.get()
        if work is None:
            return self.compiled(*args)
        if work.every:
            return self.py_func(*args)
        return self._interpreted(*args) if self.waits(work) else self.compiled(*args)

    def waits(self, work: _Work) -> bool:
        """Whether it is new, and is interpreted within this work and its repetitions sooner than it is compiled."""
        if self not in work.chosen:  # declared is the work of all kernels together; what this one took says its part
            part = _times.get() * self.interpreted / self.declared if self.declared else 1.0
            needed = self.interpreted + work.steps * part
            may_wait = needed <= self.most_new and self.is_new
            tried = self.declared or needed > self.most_untried
            work.chosen[self] = may_wait and (not tried or needed <= self.patience)
            if work.chosen[self]:
                self.declared += max(1.0, work.steps)
        return work.chosen[self]

    def _interpreted(self, *args: Any) -> Any:
        """Run a new kernel as plain Python, with all kernels within it."""
        token, begin = _declared.set(_Work(0.0, True, {})), time.thread_time()
        try:
            return self.py_func(*args)
        finally:
            _declared.reset(token)
            self.interpreted += (time.thread_time() - begin) / STEP

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copies, documentation and Numba ask for
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @functools.cached_property
    def is_new(self) -> bool:
        """Whether it is on no disk, and the first commands after installation are not over."""
        from commsim.core.compiling.first_commands import is_new

        return "compiled" not in self.__dict__ and is_new(self.py_func)

    @functools.cached_property
    def patience(self) -> float:
        """Steps that take as long as compiling it, with all kernels within it."""
        from commsim.core.compiling.first_commands import code_bytes

        return STEPS_PER_KERNEL + STEPS_PER_BYTE * code_bytes(self.py_func)

    @functools.cached_property
    def compiled(self) -> Any:
        """The kernel as Numba's own, which Python calls."""
        Kernel.steps_left = 0
        self.interpreted = math.inf
        return _pipelines().call(self.py_func, self.options)

    @functools.cached_property
    def linked(self) -> Any:
        """The kernel as Numba's own, which other kernels call."""
        return _pipelines().link(self.py_func, self.options)


def kernel(function: F) -> F:
    """Compile with the project's options: disk cache, NumPy's division rules, no reordering of float sums.

    Copy by a loop in a kernel: ``a[:] = b`` has Numba compile the text of a message about shapes, which takes 3 s.
    """
    return cast(F, _kernel(function, KERNEL))


def njit_norefcount(function: F) -> F:
    """Compile as :func:`kernel` does, without counting references: for kernels that allocate nothing, not even slices.

    Counting costs an atomic operation for each array that is named, which is most of the time of a kernel that does
    little with many arrays: 9 tenths of the packet engine's.

    In packages of :data:`COUNT_FROM_FRONT` no index is negative, as in ``a[-1]``: compiled, it is memory before the
    array. Looking for such indices took a tenth to a fifth of an engine's time. The same holds for :func:`njit_called`.
    """
    return cast(F, _kernel(function, _borrowing(function, BORROWING)))


def njit_called(function: F) -> F:
    """Compile as :func:`njit_norefcount` does a function that is called from many places: by a call, not by copies."""
    return cast(F, _kernel(function, _borrowing(function, CALLED)))


def _borrowing(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with one more where no index is negative."""
    package = ".".join(function.__module__.split(".")[:2])
    return {**options, "from_front": True} if package in COUNT_FROM_FRONT else options


def long_loops(compiled: F) -> F:
    """Have the loops of a kernel that Python calls unrolled and vectorized, with those of the kernels within it.

    That is a third of LLVM's work. Most kernels walk along graphs and are no faster; what a measurement shows to be
    slower without it is marked.
    """
    if isinstance(compiled, Kernel):
        compiled.options = {**compiled.options, "long_loops": True}
    return compiled


def fetch(table: Any, row: int) -> None:
    """Ask for the beginning of a table's row, which is needed soon, without waiting for it: any number will do."""


def call_at(address: int, row: Any) -> None:
    """Call a function of one row by its address; without the compiler, the one that was kept under that number.

    So a kernel calls a function that was not there when it was compiled, at the price of a call that is not inlined.
    """
    Kernel.functions[address](row)


def _kernel(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    if _is_disabled():
        _ignore_overflow()
        return function
    package, dot, _ = function.__module__.partition(".")
    if dot:
        PACKAGES.add(package)
    return Kernel(function, options)


@functools.cache
def _ignore_overflow() -> None:
    """Have NumPy say nothing when an integer wraps around: compiled kernels, which hash and draw, do not either."""
    importlib.import_module("numpy").seterr(all="ignore")


@contextlib.contextmanager
def expected_work(steps: float, *, first: bool = False) -> Iterator[None]:
    """Declare how much the kernels called within have to do, so that little of it need not wait for the compiler.

    They are interpreted as long as this process has compiled nothing and has interpreted little: results are the same
    to the last bit. Each kernel that was never compiled here is interpreted until that takes longer than compiling it.

    Parameters
    ----------
    steps : float
        How often all innermost loops together are gone through, or more.
    first : bool
        Whether only kernels that were never compiled here may be interpreted.
    """
    import numpy as np

    work = _declared.get() if first else None
    if work is None or not work.every:
        work = _Work(steps, steps <= Kernel.steps_left and not first, {})
        if work.every:
            Kernel.steps_left -= int(steps)
    token = _declared.set(work)
    try:
        with np.errstate(all="ignore"):  # compiled code does not warn
            yield
    finally:
        _declared.reset(token)


@contextlib.contextmanager
def expected_times(n: int) -> Iterator[None]:
    """Declare how often the work within is done: a kernel that would be compiled at a later time is so at the first.

    Parameters
    ----------
    n : int
        How often, or more.
    """
    token = _times.set(n)
    try:
        yield
    finally:
        _times.reset(token)


def is_interpreted(function: Callable[..., Any]) -> bool:
    """Whether a kernel that is called now is interpreted."""
    work = _declared.get()
    return not isinstance(function, Kernel) or (work is not None and (work.every or function.waits(work)))


def compile_all() -> None:
    """Interpret nothing in this process from now on: for processes that run many small cases, or measure."""
    Kernel.steps_left = Kernel.most_new = Kernel.most_untried = 0


def _is_disabled() -> bool:
    """Whether Numba's own variable asks for plain functions throughout."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _pipelines() -> Any:
    """How kernels are compiled."""
    from commsim.core.limits import check_room_for_libraries

    check_room_for_libraries()
    _register()
    return importlib.import_module("commsim.core.compiling.pipelines").pipelines()


@functools.cache
def _register() -> None:
    """Have Numba take a kernel inside of a kernel for the function that it compiled."""
    typeof = importlib.import_module("numba.extending").typeof_impl
    typeof.register(Kernel)(lambda value, context: typeof(value.linked, context))
    importlib.import_module("commsim.core.compiling.fetching")
    importlib.import_module("commsim.core.compiling.array_items")
