"""A user's own collective or topology: one Python file named on the command line, executed, and used like ours.

This module has the only ``exec`` of a file that text names, and it asks for text of the type ``OwnFile``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from commsim.core.errors import InputError, printable, shorten
from commsim.core.files.opening import read_regular
from commsim.core.registry import Entry, Registry, T
from commsim.core.spec import OWN_FILE, OwnFile, is_own_file, split_spec

# Of a user's own file of Python.
MAX_OWN_BYTES = 2**24
ONLY_CODE = "--only-code="
# First words of a program's command that are no program of the user's.
INTERPRETERS = ("python", "python3", sys.executable)
ALLOWED_BY = "is executed with --allow-code FILE.py"
Code: TypeAlias = Sequence[str | Path]


def files_in(text: str) -> list[Path]:
    """Files that loading `text` would execute: its own, or that of the fabric in ``MACHINE@FABRIC``."""
    parts = text.split("@")
    tails = ("@".join(parts[i:]) for i in range(len(parts)))
    return [Path(match[1]) for tail in tails if is_own_file(tail) and (match := OWN_FILE.fullmatch(tail))]


def only_code(texts: Iterable[object]) -> str:
    """Return the first word of a ``commsim`` command of another process, which is to execute the code of texts only.

    Without it the flags of a command are what its user wrote, and may name any code.
    """
    paths = dict.fromkeys(str(path) for text in texts if isinstance(text, OwnFile) for path in files_in(text))
    return f"{ONLY_CODE}{os.pathsep.join(paths)}"


def read_only_code(word: str) -> list[str]:
    """Return the files of that word."""
    return [path for path in word.removeprefix(ONLY_CODE).split(os.pathsep) if path]


def allowed(text: str, code: Code) -> str:
    """Return a text of data as one that may be executed, if each file that it names is one of `code`."""
    paths = {path.resolve() for path in files_in(text)}
    return OwnFile(text) if paths and paths <= {Path(path).resolve() for path in code} else text


def resolve(registry: Registry[T], text: str) -> tuple[Entry[T], dict[str, str]]:
    """Look up ``name:key=value,...``, or execute ``FILE.py:function:key=value,...``; the arguments stay text.

    Raises
    ------
    InputError
        If the name is unknown, or the file registers no such function.
    """
    if is_own_file(text):
        return own_entry(registry, text)
    name, raw = split_spec(text)
    return registry[name], raw


def own_entry(registry: Registry[T], text: str) -> tuple[Entry[T], dict[str, str]]:
    """Execute a file and return what it registered, and the raw arguments given with it.

    Parameters
    ----------
    registry : Registry
        Registry that the file's decorated functions register in. What they raise becomes an ``InputError`` that names
        the file and the line.
    text : str
        What the user wrote; the function must be named when the file registers several.

    Raises
    ------
    InputError
        If the text may not be executed, or the file cannot be read, raises, registers nothing, not what is asked for,
        or a function whose parameters are not annotated.
    """
    match = OWN_FILE.fullmatch(text)
    if match is None:
        raise InputError(f"expected FILE.py:function:key=value, got {text!r}")
    if not isinstance(text, OwnFile):
        raise InputError(
            f"{printable(shorten(match[1]))}: a data file cannot execute code: name the file with a flag, or in "
            f'Python as cs.OwnFile("{printable(shorten(text))}")'
        )
    path, (name, rest) = Path(match[1]), _split(match[2] or "")
    raw = split_spec(f"{name or path.stem}:{rest}")[1]
    names = _load(registry, path)
    if not names:
        raise InputError(
            f"{path}: registers no {registry.kind}; decorate a function with @{registry.kind.replace(' ', '_')}"
        )
    if name is None and len(names) > 1:
        raise InputError(f"{path}: registers several; name one: {', '.join(f'{path}:{known}' for known in names)}")
    if name is not None and name not in names:
        raise InputError(f"{path}: registers no {registry.kind} {name!r}; known: {', '.join(names)}")
    return registry[name or names[0]], raw


def guarded(build: Callable[..., T], path: Path) -> Callable[..., T]:
    """Return a function that does the same, but whose errors name the file and the line."""

    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> T:
        with blamed(path):
            return build(*args, **kwargs)

    return call


def allowed_command(command: str, code: Code) -> OwnFile:
    """Return the command of a program that may be run: ``python FILE.py``, or a file by itself, that is in `code`.

    Raises
    ------
    InputError
        If it is another one, or no command.
    """
    words = words_of(command)
    run = words[1:] if words[0] in INTERPRETERS else words
    if not run or Path(run[0]).resolve() not in {Path(path).resolve() for path in code}:
        raise InputError(f"{command!r} must be `python FILE.py`, which {ALLOWED_BY}")
    return OwnFile(command)


def words_of(command: str) -> list[str]:
    """Return the words of a command.

    Raises
    ------
    InputError
        If there are none.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"must be a command of a shell: {error}, got {command!r}") from None
    if not words:
        raise InputError("must be a command, such as 'python train.py'")
    return words


@contextlib.contextmanager
def blamed(path: Path) -> Iterator[None]:
    """Turn whatever is raised inside into one line about the file.

    Raises
    ------
    InputError
        Naming the last line of the file that was being executed.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError) and str(error).startswith(str(path)):
            raise  # inside of another one
        line = error.lineno if isinstance(error, SyntaxError) else _line(error, path)
        text = (str(error) or "no message").splitlines()[0]
        if isinstance(error, SyntaxError):
            text = error.msg
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        has = _attributes(error.obj) if isinstance(error, AttributeError) else ""
        raise InputError(f"{path}{f', line {line}' if line else ''}: {kind}{text}{has}") from None


def _attributes(of: object) -> str:
    """Return what a value of ours has, for an own file that asks for something else."""
    if not type(of).__module__.startswith("commsim."):
        return ""
    return f"; it has {', '.join(name for name in dir(of) if not name.startswith('_'))}"


def _split(rest: str) -> tuple[str | None, str]:
    """Split ``function:key=value,...`` where either may be missing."""
    first, colon, arguments = rest.partition(":")
    return (None, rest) if not first or (not colon and "=" in first) else (first.strip(), arguments)


def _load(registry: Registry[T], path: Path) -> list[str]:
    """Execute the file, and return the names that it registered."""
    len(registry)  # so that a name which is already taken is noticed while the file is executed
    module = types.ModuleType(f"own file {path.resolve()}")
    module.__file__ = str(path)
    source = read_regular(path, MAX_OWN_BYTES)
    sys.modules[module.__name__] = module  # where dataclasses look for the module of a class
    with blamed(path):
        exec(compile(source, str(path), "exec"), module.__dict__)
    names = [name for name in registry if registry[name].build.__module__ == module.__name__ and name in vars(module)]
    for name in names:
        entry = registry[name]
        _require_annotations(registry, entry, path)
        metadata = {key: guarded(fact, path) if callable(fact) else fact for key, fact in entry.metadata.items()}
        registry.add(guarded(entry.build, path), **metadata)
    return names


def _require_annotations(registry: Registry[T], entry: Entry[T], path: Path) -> None:
    with blamed(path):
        typing.get_type_hints(entry.build, include_extras=True)
    for key, parameter in entry.parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            others = (registry[name].parameters.get(key, parameter).annotation for name in registry)
            known = next((one for one in others if one is not inspect.Parameter.empty), None)
            such = known if known is None or isinstance(known, str) else inspect.formatannotation(known)
            hint = f", such as {key}: {such}" if such else ""
            raise InputError(f"{path}: {entry.name}: parameter {key} needs an annotation{hint}")


def _line(error: BaseException, path: Path) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
