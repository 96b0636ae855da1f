"""Finder of the packages beside commsim: by their place, whatever else of the same name is found first.

A script may have a ``topologies.py`` or a folder ``collectives`` of its own, which comes first on the path. Until a
module of commsim is imported (``import commsim`` by itself imports none), a name means what Python finds. From then on
it means ours: a module of that name that is loaded already is taken out of ``sys.modules``, and goes on serving those
who imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

SIBLINGS = ("collectives", "topologies", "switch_model")
ROOT = Path(__file__).resolve().parent.parent


class Finder:
    """Entry of ``sys.meta_path``: a sibling is looked for beside commsim only, all else is left to the next finder."""

    def __init__(self) -> None:
        self._ours_only = False

    def take_over(self) -> None:
        """From now on the names mean ours."""
        if not self._ours_only:
            self._ours_only = True
            _set_others_aside()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a sibling is; None for every other name.

        Raises
        ------
        ImportError
            If a sibling is not beside commsim; names the file.
        """
        del path, target
        if name.startswith("commsim."):
            self.take_over()
        if name not in SIBLINGS or not self._ours_only:
            return None
        file = ROOT / name / "__init__.py"
        if not file.is_file():
            raise ImportError(f"commsim needs its own package {name}, and {file} is not there: install commsim again")
        return spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)])


def _set_others_aside() -> None:
    """Take modules out of ``sys.modules`` that have the name of a sibling and are not ours, with their submodules."""
    for sibling in SIBLINGS:
        loaded = sys.modules.get(sibling)
        origin = getattr(loaded, "__file__", None)
        if loaded is None or (origin is not None and Path(origin).resolve() == ROOT / sibling / "__init__.py"):
            continue
        for name in [name for name in sys.modules if name == sibling or name.startswith(f"{sibling}.")]:
            del sys.modules[name]


FINDER = Finder()
sys.meta_path.insert(0, FINDER)
