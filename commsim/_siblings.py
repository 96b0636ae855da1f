"""The three packages beside commsim are ours, whatever of the same name lies beside a user's script."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

SIBLINGS = ("collectives", "topologies", "switch_model")


def claim() -> None:
    """Load our own package where a user's file or folder of the same name comes first, and warn.

    Python keeps one module of each name. A module of the user's that was imported before stays with those who have it;
    imports from now on get ours.
    """
    for name in SIBLINGS:
        ours = Path(__file__).resolve().parent.parent / name / "__init__.py"
        found = _found(name)
        if found is not None and found.resolve() == ours:
            continue
        if found is not None:
            warnings.warn(
                f"{found} has the name of a package of commsim, and `import {name}` gives commsim's from now on; "
                "rename yours, or import it before commsim",
                stacklevel=2,
            )
        _load(name, ours)


def _found(name: str) -> Path | None:
    """File of the module that has, or would get, a name; None for nothing, and for a folder without __init__.py."""
    module = sys.modules.get(name)
    source = importlib.util.find_spec(name) if module is None else module.__spec__
    origin = None if source is None else source.origin
    return None if origin is None else Path(origin)


def _load(name: str, ours: Path) -> None:
    """Load a package from its file, in place of what has its name, parts included."""
    for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[known]
    spec = importlib.util.spec_from_file_location(name, ours, submodule_search_locations=[str(ours.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
