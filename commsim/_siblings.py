"""Guard: the three packages beside commsim are ours, and not another file or folder of the same name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("collectives", "topologies", "switch_model")


def check() -> None:
    """Raise unless the packages beside commsim are found where commsim is.

    Raises
    ------
    ImportError
        If a file or folder of the same name hides one of them; names both.
    """
    root = Path(__file__).resolve().parent.parent
    for name in SIBLINGS:
        ours = root / name / "__init__.py"
        spec = find_spec(name)
        found = spec.origin if spec is not None else None
        if found is None or Path(found).resolve() != ours:
            raise ImportError(f"commsim needs its own package {name} ({ours}), but Python finds {found or 'none'}")
