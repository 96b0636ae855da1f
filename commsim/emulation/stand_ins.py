"""Modules that stand in for communication libraries in the ranks of an emulation, and nowhere else."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Module that a program imports, and the module of ours that it gets in its place.
STAND_INS: Mapping[str, str] = {
    "mpi4py": "commsim.emulation.mpi.package",
    "mpi4py.MPI": "commsim.emulation.mpi.module",
}  # fmt: skip
__all__ = ["StandIns"]


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder that comes before all others; as a context it is there only inside."""

    def __init__(self) -> None:
        self._before: dict[str, ModuleType] = {}

    def install(self) -> None:
        """Stand in from now on, whether or not the library was imported before."""
        self._before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "mpi4py"}
        sys.meta_path.insert(0, self)

    def __enter__(self) -> StandIns:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
        for name in STAND_INS:
            sys.modules.pop(name, None)
        sys.modules.update(self._before)

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Find one of ours; refuse other parts of the same libraries."""
        if name in STAND_INS:
            return importlib.util.spec_from_loader(name, self, is_package=name == "mpi4py")
        if name.startswith("mpi4py."):
            raise ModuleNotFoundError(f"commsim emulate has no {name}", name=name)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of ours, which keeps its own name."""
        ours = importlib.import_module(STAND_INS[spec.name])
        module = ModuleType(spec.name, ours.__doc__)
        vars(module).update(getattr(ours, "NAMES"))  # noqa: B009 - a module of ours is of any kind
        vars(module)["__getattr__"] = vars(ours)["__getattr__"]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: it was executed under its own name."""
