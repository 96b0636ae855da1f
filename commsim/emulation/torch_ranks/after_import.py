"""Replaces ``init_process_group`` as soon as a rank's program imports torch.distributed, and nothing before."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULE = "torch.distributed"
__all__ = ["AfterImport"]


class AfterImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder that lets the others load torch.distributed, and then changes it; as a context only inside."""

    def __init__(self) -> None:
        self._loader: Any = None
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> AfterImport:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for undo in self._undo:
            undo()

    def install(self) -> None:
        """Change the module from now on; one that was imported before at once."""
        if MODULE in sys.modules:
            self._change()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Find the module by the other finders."""
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the module's own loader make it."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute it, and change it."""
        self._loader.exec_module(module)
        self._change()

    def _change(self) -> None:
        from .init import replace_init

        self._undo.append(replace_init())
