"""Compiled kernels on disk, each under a stamp of all that its machine code depends on.

Numba's own cache looks at the file of the outer kernel only, so that an edit of a helper kernel in another file goes
unseen and old machine code answers. Here the stamp is of the byte code of every kernel that can be reached, and of the
values of the constants that they read. Byte code is what is compiled; the text of a file may have been edited since it
was imported. It needs no file to be read, and two checkouts whose kernels are equal share their machine code.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import platform
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from enum import Enum
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from commsim.core.interrupts import signals_held

from .notices import begin_compiling, end_compiling, not_kept

# Modules whose version identifies their content.
LIBRARIES = ("numpy", "numba", "llvmlite", "builtins", "math")
# Numba's settings that change what the compiler makes of a kernel.
CODE_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
# Modules here by which machine code is made: what another version of them made does not fit to what these make.
COMPILERS = ("array_items", "faster_numba", "fetching", "kernel_compiler", "kernel_libraries", "tables_type")
# Entries that are kept of one kernel, over all stamps and signatures, the most recently used; and for how many seconds.
MAX_ENTRIES, MAX_AGE = 32, 30 * 24 * 3600.0
# What must fit into the folder for it to count as writable: about one compiled kernel.
PROBE_BYTES = 1 << 18
DIGEST_BYTES = 32


class KernelCache:
    """The machine code of one kernel on disk, one file per stamp and signature; what Numba asks of a cache.

    Parameters
    ----------
    function : callable
        The kernel as plain Python.
    options : dict
        Options of the compiler.
    quiet : bool
        Whether nothing is printed when the kernel has to be compiled.
    """

    is_called = True  # by Python

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], quiet: bool = False) -> None:
        self.function, self.options, self.quiet = function, options, quiet

    @functools.cached_property
    def cache_path(self) -> Path:
        """The folder."""
        return cache_folder()

    @property
    def name(self) -> str:
        """How the names of all its files begin."""
        safe = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        return safe[-150:] + "-"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Read the machine code for a signature; None, and a notice, if it has to be compiled."""
        key = self._key(signature, target_context.codegen())
        path = self._path(key)
        try:
            content = path.read_bytes()
            # Numba's list of what it can compile takes 0.3 s to load, and machine code needs the memory functions only
            import_module("numba.core.runtime").rtsys.initialize(target_context)
            stored, reduced = pickle.loads(_unsealed(content, key))
            if stored != signature:
                raise ValueError("it is of another signature")
            with signals_held():  # LLVM calls Python, where an exception would be swallowed
                overload = self._rebuild(target_context, reduced)
        except (FileNotFoundError, NotADirectoryError):
            return self._compiling(key, "once for this kind of question; commsim warmup: for all", signature)
        except Exception as error:  # whatever an entry of others holds: compiling anew is always right
            return self._compiling(key, f"{path} cannot be used ({line_of(error)})", signature)
        with contextlib.suppress(OSError):
            os.utime(path)  # the last use, by which old entries are found
        return overload

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write machine code, and delete old entries; a notice if it cannot be kept."""
        key = self._key(signature, compiled.library.codegen)
        end_compiling(key)
        if self.is_called:
            import_module("commsim.core.compiling.beside").end_beside(self.function)
        if compiled.library.has_dynamic_globals:
            return
        try:
            payload = import_module("numba.core.serialize").dumps((signature, compiled._reduce()))
            _write(self._path(key), _sealed(payload, key))
            self._delete_old()
        except Exception as error:  # a full or read-only folder, or values that cannot be pickled
            if not self.quiet:
                not_kept(line_of(error))

    def flush(self) -> None:
        """Delete all entries of this kernel."""
        for path in self._entries():
            path.unlink(missing_ok=True)

    def _rebuild(self, target_context: Any, reduced: tuple[Any, ...]) -> Any:
        return import_module("numba.core.compiler").CompileResult._rebuild(target_context, *reduced)

    def _key(self, signature: Any, codegen: Any) -> bytes:
        settings = (stamp(self.function, self.options), environment(), str(signature), codegen.magic_tuple())
        return _digest(repr(settings).encode())

    def _path(self, key: bytes) -> Path:
        return self.cache_path / f"{self.name}{key.hex()[:40]}.nbc"

    def _entries(self) -> list[Path]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self.cache_path) as them:  # a glob takes thrice as long
            return [Path(one) for one in them if one.name.startswith(self.name)]
        return []

    def _delete_old(self) -> None:
        used = {}
        for path in self._entries():
            with contextlib.suppress(OSError):  # another process may have deleted it
                used[path] = path.stat().st_mtime
        for i, path in enumerate(sorted(used, key=lambda path: -used[path])):
            if i >= MAX_ENTRIES or used[path] < time.time() - MAX_AGE:
                path.unlink(missing_ok=True)

    def _compiling(self, key: bytes, why: str, signature: Any) -> None:
        if not self.quiet:
            problem = why_unwritable(self.cache_path)
            each = f"each time: {self.cache_path} {problem}; NUMBA_CACHE_DIR may name another folder"
            begin_compiling(key, each if problem else why)
            if self.is_called and not problem:
                import_module("commsim.core.compiling.beside").start_beside(self.function, signature)


class LinkedCache(KernelCache):
    """The LLVM code of a kernel that is linked into others, on disk."""

    is_called = False

    @property
    def name(self) -> str:
        """How the names of all its files begin."""
        return "linked." + super().name

    def _rebuild(self, target_context: Any, reduced: tuple[Any, ...]) -> Any:
        return import_module("commsim.core.compiling.kernel_compiler").rebuild_linked(target_context, *reduced)


def cache_folder() -> Path:
    """Return where compiled kernels are kept: ``NUMBA_CACHE_DIR``, or in the user's cache folder."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute()
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(user).expanduser().absolute() / "commsim" / "kernels"
    except RuntimeError:  # no home directory
        return Path(os.devnull) / "commsim"  # which cannot be a folder


def why_unwritable(folder: Path) -> str:
    """Return why no compiled kernel can be written into a folder, which is made; empty if one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return f"cannot be written ({line_of(error)})"
    return ""


@functools.cache
def environment() -> tuple[str, ...]:
    """List what machine code depends on besides its source: versions, our own compilers, and the settings of Numba."""
    config = import_module("numba").config
    names = [f"{__package__}.{name}" for name in COMPILERS]
    ours = _digest("".join(line for name in names for line in _code(_module_code(name))).encode()).hex()
    versions = [import_module(name).__version__ for name in ("numba", "llvmlite", "numpy")]
    return (sys.version, platform.machine(), ours, *versions, *(repr(getattr(config, name)) for name in CODE_SETTINGS))


def _module_code(name: str) -> CodeType:
    """Return the byte code of a module that need not be imported."""
    return find_spec(name).loader.get_code(name)  # type: ignore[union-attr, no-any-return]


def stamp(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """Hash the sources of a kernel: its byte code and constants, and those of all kernels that it can reach.

    Parameters
    ----------
    function : callable
        The kernel as plain Python.
    options : dict
        Options of the compiler.

    Returns
    -------
    str
        Hexadecimal digits; equal in all processes and checkouts whose kernels are equal.
    """
    whole = blake2b(digest_size=DIGEST_BYTES)
    whole.update(repr(sorted(options.items())).encode())
    for one in reached(function):
        whole.update(describe(one)[0])
    return whole.hexdigest()


def reached(function: Callable[..., Any]) -> Iterator[Any]:
    """Go through a function and all that it can call."""
    seen, waiting = {function}, [function]
    while waiting:
        yield (one := waiting.pop())
        waiting += (new := [other for other in describe(one)[1] if other not in seen])
        seen.update(new)


@functools.cache
def describe(function: FunctionType) -> tuple[bytes, tuple[FunctionType, ...]]:
    """Hash one function without others, and list the functions that it can call."""
    called: dict[FunctionType, None] = {}
    lines = [_name(function), *_code(function.__code__)]
    for label, value in _values(function):
        lines.append(f"{label} = {_content(value, called)}")
    return _digest("\n".join(lines).encode()), tuple(called)


def _code(code: CodeType) -> Iterator[str]:
    """Write byte code without the places that it was read from, so that a comment changes nothing."""
    yield repr((code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars))
    yield repr((code.co_cellvars, code.co_argcount, code.co_kwonlyargcount, code.co_flags))
    for value in code.co_consts:
        yield from _code(value) if isinstance(value, CodeType) else [_content(value, {})]


def _values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """List what a function can read from outside, by name: defaults, closure, globals, and attributes of modules."""
    yield "defaults", (function.__defaults__, function.__kwdefaults__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    names = _names(function.__code__)
    within = [("", function.__globals__)]
    seen = set()
    while within:
        prefix, namespace = within.pop()
        for name in names:  # attributes of arrays are among them: a name too many is harmless
            value = namespace.get(name, namespace)
            if value is namespace:
                continue
            yield prefix + name, value
            if isinstance(value, ModuleType) and not _is_library(value.__name__) and value not in seen:
                seen.add(value)
                within.append((f"{prefix}{name}.", vars(value)))


def _names(code: CodeType) -> tuple[str, ...]:
    inner = [name for c in code.co_consts if isinstance(c, CodeType) for name in _names(c)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _content(value: Any, called: dict[FunctionType, None]) -> str:
    """Write a value in full, or a function by name, which is added to those that can be called."""
    kind = type(value).__qualname__
    if hasattr(value, "py_func"):  # a kernel, ours or Numba's
        options = getattr(value, "options", None)
        kind += repr(sorted((value.targetoptions if options is None else options).items()))
        value = value.py_func
    if isinstance(value, FunctionType):
        if not _is_library(value.__module__):
            called[value] = None
        return f"{kind} {_name(value)}"
    if isinstance(value, type):
        members = [(m.name, m.value) for m in value] if issubclass(value, Enum) else getattr(value, "_fields", ())
        return f"{kind} {_name(value)} {members!r}"
    if isinstance(value, np.ndarray):
        return f"{kind} {value.dtype!r} {value.shape} {value.flags.writeable} {value.tolist()!r}"
    if isinstance(value, frozenset):
        return f"{kind} {sorted(_content(v, called) for v in value)}"
    if isinstance(value, tuple | list):
        return f"{kind} {[_content(v, called) for v in value]}"
    if isinstance(value, dict):
        return f"{kind} {[(repr(k), _content(v, called)) for k, v in value.items()]}"
    if isinstance(value, Enum):
        return f"{kind} {value.name} {value.value!r}"
    if isinstance(value, ModuleType):
        return f"{kind} {value.__name__}"
    if value is None or value is ... or isinstance(value, int | float | complex | str | bytes | np.generic | np.dtype):
        return f"{kind} {value!r}"
    if _is_library(type(value).__module__):
        return f"{kind} {value}" if type(value).__module__.startswith("numba") else f"{kind} {_name(value)}"
    return kind  # nothing that Numba could take for a constant


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _is_library(module: str | None) -> bool:
    return str(module).split(".", 1)[0] in LIBRARIES


def _digest(content: bytes, key: bytes = b"") -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES, key=key).digest()


def _sealed(payload: bytes, key: bytes) -> bytes:
    """Put a checksum before content, which holds for this stamp, version and processor only."""
    return _digest(payload, key) + payload


def _unsealed(content: bytes, key: bytes) -> bytes:
    payload = content[DIGEST_BYTES:]
    if content[:DIGEST_BYTES] != _digest(payload, key):
        raise ValueError("its checksum is wrong")
    return payload


def _write(path: Path, content: bytes) -> None:
    """Write a file at once: whoever reads it meanwhile finds all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def line_of(error: Exception) -> str:
    """Return the message of an error on one line of bounded length."""
    text = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
    return " ".join(text.split())[:200]
