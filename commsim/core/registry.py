"""A registry: a name, the function of that name, and the metadata declared beside it.

A user's own collective or topology: one Python file named on the command line, executed, and used like ours.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ..opening import read_regular
from .errors import InputError
from .spec import split_spec

T = TypeVar("T")

# Names of which a wrong one is a part that a message offers.
MAX_HINTS = 4
MAX_NAMES = 12  # that a message lists in full
# Of a user's own file of Python.
MAX_OWN_BYTES = 2**24


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered function with the metadata that its decorator declared."""

    name: str
    build: Callable[..., T]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.build) or "").split("\n", 1)[0]

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the function, by name."""
        return inspect.signature(self.build).parameters

    @property
    def meanings(self) -> Mapping[str, str]:
        """What the docstring's section Parameters says of each, on one line."""
        section = re.search(
            r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(self.build) or "", re.DOTALL | re.MULTILINE
        )
        found: dict[str, str] = {}
        names: list[str] = []
        for line in section[1].splitlines() if section else []:
            if not line.startswith(" "):
                names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            for name in names if line.startswith(" ") else []:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
        return found


class Registry(Generic[T]):
    """Functions by their own names, found by importing every module of one package on first use.

    Parameters
    ----------
    kind : str
        What an entry is, for messages: ``"topology"``.
    package : str
        The package whose modules register themselves when they are imported.
    recursive : bool
        Whether the modules of its subpackages do, too.
    listed : str
        What prints all entries, for messages.
    """

    def __init__(self, kind: str, package: str, *, recursive: bool = False, listed: str = "") -> None:
        self.kind = kind
        self._package, self._listed = package, listed
        self._find = pkgutil.walk_packages if recursive else pkgutil.iter_modules
        self._entries: dict[str, Entry[T]] = {}
        self._complete = False
        self._afterwards: list[Callable[[], None]] = []

    def add(self, build: Callable[..., T], **metadata: Any) -> None:
        """Register `build` under its own name.

        Raises
        ------
        InputError
            If another function has taken that name.
        """
        name = build.__name__
        known = self._entries.get(name)
        if known is not None and (known.build.__module__, known.build.__qualname__) != (
            build.__module__,
            build.__qualname__,
        ):
            raise InputError(f"two functions are registered as {self.kind} {name!r}")
        self._entries[name] = Entry(name, build, MappingProxyType(metadata))

    def when_complete(self, call: Callable[[], None]) -> None:
        """Call a function once all modules are imported, at the latest before the first answer: it may add entries."""
        if self._complete:
            call()
        else:
            self._afterwards.append(call)

    def __getitem__(self, name: str) -> Entry[T]:
        if name not in self:
            # a part of a name, such as ring, is the usual slip: difflib finds it too unlike the whole name
            parts = [known for known in self._entries if name and name.lower() in known]
            parts.sort(key=lambda known: (not known.startswith(name.lower()), known))
            close = difflib.get_close_matches(name, self._entries, n=1) or parts[:MAX_HINTS]
            hint = f"did you mean {' or '.join(close)}? " if close else ""
            raise InputError(f"unknown {self.kind} {name!r}; {hint}{self._known(hint)}")
        return self._entries[name]

    def _known(self, hint: str) -> str:
        """Say what there is; of many names the first few, and none where one is meant."""
        names = list(self)
        if len(names) <= MAX_NAMES:
            return f"known: {', '.join(names)}"
        few = "" if hint else f": {', '.join(names[:MAX_HINTS])}, ..."
        return f"{len(names)} are known{few}{f' ({self._listed})' if self._listed else ''}"

    def __iter__(self) -> Iterator[str]:
        self._import_all()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._import_all()
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        if not self._complete and name not in self._entries:
            self._import_definition(f"def {name}(".encode(), f"\n{name} = ".encode())
        if name not in self._entries:
            self._import_all()
        return name in self._entries

    def _import_definition(self, *texts: bytes) -> None:
        """Import only the modules with such a definition: all of a package take long, of which a command needs one."""
        package = importlib.import_module(self._package)
        for module in self._find(package.__path__, f"{self._package}."):
            spec = module.module_finder.find_spec(module.name, None)
            if spec is None or spec.origin is None:
                continue
            found = Path(spec.origin).read_bytes()
            if any(text in found for text in texts):
                importlib.import_module(module.name)

    def _import_all(self) -> None:
        if self._complete:
            return
        self._complete = True  # before the imports, since a module may ask the registry while it is imported
        try:
            package = importlib.import_module(self._package)
            for module in self._find(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
            for call in self._afterwards:
                call()
        except BaseException:
            self._complete = False  # else the next question would be answered with half of the names
            raise


_FILE = re.compile(r"(.*?\.py)(?::(.*))?", re.DOTALL)


def is_own_file(text: str) -> bool:
    """Whether `text` is ``FILE.py``, ``FILE.py:key=value,...`` or ``FILE.py:function:key=value,...``."""
    match = _FILE.fullmatch(text)
    return match is not None and ("@" not in match[1] or Path(match[1]).exists())


def names_own_file(text: str) -> bool:
    """Whether loading `text` executes a file: its own, or that of the fabric in ``MACHINE@FABRIC``."""
    parts = text.split("@")
    return any(is_own_file("@".join(parts[i:])) for i in range(len(parts)))


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
        Where the file's decorated functions register themselves. What they raise becomes an ``InputError`` that names
        the file and the line.
    text : str
        What the user wrote; the function must be named when the file registers several.

    Raises
    ------
    InputError
        If the file cannot be read, raises, registers nothing, not what is asked for, or a function whose parameters
        are not annotated.
    """
    match = _FILE.fullmatch(text)
    if match is None:
        raise InputError(f"expected FILE.py:function:key=value, got {text!r}")
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
        said = (str(error) or "no message").splitlines()[0]
        if isinstance(error, SyntaxError):
            said = error.msg
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise InputError(f"{path}{f', line {line}' if line else ''}: {kind}{said}") from None


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
        _require_annotations(entry, path)
        metadata = {key: guarded(fact, path) if callable(fact) else fact for key, fact in entry.metadata.items()}
        registry.add(guarded(entry.build, path), **metadata)
    return names


def _require_annotations(entry: Entry[T], path: Path) -> None:
    with blamed(path):
        typing.get_type_hints(entry.build, include_extras=True)
    for key, parameter in entry.parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            raise InputError(f"{path}: {entry.name}: parameter {key} needs an annotation, such as {key}: int")


def _line(error: BaseException, path: Path) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
