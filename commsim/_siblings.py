"""Finder of the packages beside commsim: by their place, whatever else of the same name is found first.

A script may have a ``topologies.py`` or a folder ``collectives`` of its own, which comes first on the path. Until a
module of commsim is imported (``import commsim`` by itself imports none), a name means what Python finds. From then on
it means ours: a module of that name that is loaded already is taken out of ``sys.modules``, and goes on serving those
who imported it.
"""

from __future__ import annotations

# As little as possible is imported before `commsim/__main__.py` catches Ctrl-C.
# ruff: noqa: PTH113, PTH118, PTH120
import os.path
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

SIBLINGS = ("collectives", "topologies", "switch_model")
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


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
        from importlib.util import spec_from_file_location

        file = _file_of(name)
        if not os.path.isfile(file):
            raise ImportError(f"commsim needs its own package {name}, and {file} is not there: install commsim again")
        return spec_from_file_location(name, file, submodule_search_locations=[os.path.dirname(file)])


def _file_of(sibling: str) -> str:
    return os.path.join(ROOT, sibling, "__init__.py")


def _set_others_aside() -> None:
    """Take modules out of ``sys.modules`` that have the name of a sibling and are not ours, with their submodules."""
    for sibling in SIBLINGS:
        loaded = sys.modules.get(sibling)
        origin = getattr(loaded, "__file__", None)
        if loaded is None or (origin is not None and os.path.realpath(origin) == _file_of(sibling)):
            continue
        for name in [name for name in sys.modules if name == sibling or name.startswith(f"{sibling}.")]:
            del sys.modules[name]


FINDER = Finder()
sys.meta_path.insert(0, FINDER)
