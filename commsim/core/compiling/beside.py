"""A second process compiles what the first one needs later: the kernels within a large one from its end, or an engine.

Only the first process knows for which types a kernel is compiled. The second one takes them from annotations, and from
the tables of the large kernel: what it takes wrongly nobody reads. An engine's own function has it simulate something
small. Each process finds on the disk what the other has compiled.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

from commsim.core.jit import Kernel

from .kernel_cache import cache_folder, describe, why_unwritable
from .notices import RANK_VARIABLES

# Kernels within one from which on a second process is worth its start, which takes as long as some 40 of them.
MANY = 100
COMMAND = "import sys; sys.path[:] = {path!r}; from {module} import {name}; {name}()"
_helpers: dict[FunctionType | str, subprocess.Popen[bytes] | None] = {}


def start_beside(function: FunctionType, signature: Any) -> None:
    """Start a process that compiles what is needed later, if that is much and a processor is there for it.

    Parameters
    ----------
    function : callable
        The kernel as plain Python, which this process begins to compile.
    signature : tuple of Type
        Types of its arguments.
    """
    if _helpers:
        return
    needed, is_large = Kernel.needed_soon, len(from_end(function)) >= MANY
    if not (needed or is_large) or not _has_room():
        return
    with contextlib.suppress(Exception):  # types that cannot be pickled, or no process: this one compiles all
        if is_large:
            _start(function, compile_from_end.__name__, (function.__module__, function.__qualname__, signature, needed))
            Kernel.needed_soon = ""  # which that process compiles, too
        else:
            _start(needed, compile_needed.__name__, needed)


def _start(what: FunctionType | str, name: str, content: Any) -> None:
    """Start a process that calls a function of this module, and send it what it reads."""
    sent = zlib.compress(import_module("numba.core.serialize").dumps(content))  # fits into any pipe at once
    code = COMMAND.format(path=sys.path, module=__name__, name=name)
    command, quiet = [sys.executable, "-c", code], subprocess.DEVNULL
    # its input stays open until this process ends, however it does
    helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)
    _helpers[what] = helper
    atexit.register(end_beside, what)
    os.write(helper.stdin.fileno(), len(sent).to_bytes(8, "little") + sent)  # type: ignore[union-attr]


def end_beside(what: FunctionType | str) -> None:
    """End the process that was started for a kernel, which is compiled, or for an engine."""
    if (helper := _helpers.pop(what, None)) is not None:
        helper.kill()
        helper.communicate()


def _has_room() -> bool:
    """Whether this process is alone with several processors, and would find what another one has compiled."""
    affinity = getattr(os, "sched_getaffinity", None)
    n_processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    is_one_of_many = multiprocessing.parent_process() is not None or any(name in os.environ for name in RANK_VARIABLES)
    can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
    return n_processors > 1 and not is_one_of_many and can_start and not why_unwritable(cache_folder())


def from_end(function: FunctionType) -> list[FunctionType]:
    """List the functions that a kernel reaches without itself, the last called first, each after those it calls."""
    found: dict[FunctionType, None] = {}
    waiting, seen = [(function, iter(reversed(describe(function)[1])))], {function}
    while waiting:
        at, called = waiting[-1]
        for other in called:
            if other not in seen:
                seen.add(other)
                waiting.append((other, iter(reversed(describe(other)[1]))))
                break
        else:
            waiting.pop()
            found[at] = None
    return list(found)[:-1]


def compile_from_end() -> None:
    """Compile what another process asks for on standard input, and then what it calls soon, until that one ends."""
    module, name, signature, needed = _received()
    function = vars(import_module(module))[name].py_func
    _helpers[function] = None  # so that this process starts none
    known = dict(_types_within(function.__code__.co_varnames, signature))
    for one in from_end(function):
        kernel: Any = vars(sys.modules[one.__module__]).get(one.__name__)
        annotations = [(argument, str(kind)) for argument, kind in one.__annotations__.items() if argument != "return"]
        kinds = [known.get(kind, known.get(argument)) for argument, kind in annotations]
        if hasattr(kernel, "linked") and None not in kinds:
            with contextlib.suppress(Exception):  # it is called with other types than these
                kernel.linked.compile(tuple(kinds))
    if needed:
        _call(needed)


def compile_needed() -> None:
    """Call the function that another process names on standard input, which compiles what that one needs soon."""
    place = _received()
    _helpers[place] = None  # so that this process starts none
    _call(place)


def _call(place: str) -> None:
    module, _, name = place.partition(":")
    vars(import_module(module))[name]()


def _received() -> Any:
    """Read what another process has sent; end this one when that one ends."""
    given = sys.stdin.buffer
    content = zlib.decompress(given.read(int.from_bytes(given.read(8), "little")))
    threading.Thread(target=lambda: (os.read(given.fileno(), 1), os._exit(0)), daemon=True).start()
    return pickle.loads(content)


def _types_within(names: Any, kinds: Any) -> Iterator[tuple[str, Any]]:
    """List types by names of arguments and fields, tables by names of classes; an array of records is named for one."""
    types = import_module("numba").types
    yield from (("int", types.int64), ("float", types.float64), ("bool", types.boolean))
    for name, kind in zip(names, kinds, strict=False):
        if hasattr(kind, "cls"):
            yield kind.cls.__name__, kind
            yield from _types_within(kind.fields, kind.kinds)
        record = getattr(kind, "dtype", None)
        yield name, record if isinstance(record, types.Record) else kind
