"""A registry: a name, the function of that name, and the metadata declared beside it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from commsim.extensions import found_at

from .errors import InputError, close_names, did_you_mean, meant_or_known

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered function with the metadata that its decorator declared, and its parameters by name."""

    name: str
    build: Callable[..., T]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, inspect.Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", inspect.signature(self.build).parameters)

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.build) or "").split("\n", 1)[0]

    @property
    def meanings(self) -> Mapping[str, str]:
        """What the docstring's section Parameters says of each, on one line."""
        section = re.search(
            r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(self.build) or "", re.DOTALL | re.MULTILINE
        )
        texts: dict[str, str] = {}
        names: list[str] = []
        for line in section[1].splitlines() if section else []:
            if not line.startswith(" "):
                names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            for name in names if line.startswith(" ") else []:
                texts[name] = f"{texts.get(name, '')} {line.strip()}".strip()
        return texts


class Registry(Generic[T]):
    """Functions by their own names, found by importing every module of one package on first use.

    Parameters
    ----------
    kind : str
        What an entry is, for messages: ``"topology"``.
    package : str or callable
        Package whose modules register themselves when they are imported, or a function that returns it.
    recursive : bool
        Whether the modules of its subpackages do, too.
    listed : str
        What prints all entries, for messages.
    """

    def __init__(
        self, kind: str, package: str | Callable[[], types.ModuleType], *, recursive: bool = False, listed: str = ""
    ) -> None:
        self.kind = kind
        self._package, self._listed = package, listed
        self._find = pkgutil.walk_packages if recursive else pkgutil.iter_modules
        self._entries: dict[str, Entry[T]] = {}
        self._complete = self._is_full = False
        self._afterwards: list[str] = []

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

    def when_complete(self, place: str) -> None:
        """Call a function, named as ``module:function``, once all modules are imported: it may add entries."""
        if self._is_full:
            found_at(place)()
        else:
            self._afterwards.append(place)

    def __getitem__(self, name: str) -> Entry[T]:
        if name not in self:
            raise self.unknown(name)
        return self._entries[name]

    def unknown(self, name: str, meant: Sequence[str] = (), listed: str = "") -> InputError:
        """Return the error of a name that is not registered.

        Parameters
        ----------
        name : str
            Unknown name.
        meant : sequence of str
            Names of another list that may be meant. Default: those of the registry that are like it.
        listed : str
            Command that prints that list. Default: the one that prints the registry.
        """
        if meant:
            return InputError(f"unknown {self.kind} {name!r}; {did_you_mean(meant)}({listed or self._listed})")
        names = list(self)
        told = meant_or_known(close_names(name, names), names, self._listed)
        return InputError(f"unknown {self.kind} {name!r}; {told}")

    def __iter__(self) -> Iterator[str]:
        self._import_all()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._import_all()
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        if name in self._entries or not str(name).isidentifier():  # others, such as files, name no function
            return name in self._entries
        if not self._complete:
            self._import_definition(str(name))
        if name not in self._entries:
            self._import_all()
        return name in self._entries

    def _imported(self) -> types.ModuleType:
        return importlib.import_module(self._package) if isinstance(self._package, str) else self._package()

    def _import_definition(self, name: str) -> None:
        """Import only the module that registers a name, since importing the whole package takes long."""
        package, texts = self._imported(), (f"def {name}(".encode(), f"\n{name} = ".encode())
        for module in self._find(package.__path__, f"{package.__name__}."):
            spec = module.module_finder.find_spec(module.name, None)
            if spec is None or spec.origin is None:
                continue
            content = Path(spec.origin).read_bytes()
            if any(text in content for text in texts):
                importlib.import_module(module.name)
                if name in self._entries:  # else the module has an unregistered function of that name
                    return

    def _import_all(self) -> None:
        if self._complete:
            return
        self._complete = True  # before the imports, since a module may ask the registry while it is imported
        try:
            package = self._imported()
            for module in self._find(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)
            self._is_full = True
            for place in self._afterwards:
                found_at(place)()
        except BaseException:
            self._complete = self._is_full = False  # else the next question would be answered with half of the names
            raise


def usual_spelling(text: str, names: Iterable[str]) -> str:
    """Return the one of `names` that `text` spells with other case, hyphens or underscores; `text` if there is none.

    MPI and nccl-tests write ``MPI_Allreduce`` and ``alltoall``, torch ``all_reduce`` and ``all-reduce``.
    """
    plain = text.lower().removeprefix("mpi_").replace("-", "").replace("_", "")
    plain = "broadcast" if plain == "bcast" else plain
    return next((one for one in names if one.lower().replace("-", "").replace("_", "") == plain), text)
