"""Which modules are to be hidden so that an extension is not there; ``python tests/oracles/hidden_extensions.py``: all.

An extension that the contract "the core never imports an extension" still excepts is never hidden.
"""

import os
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from benchmarks.house.slices import HALVES, slice_of  # noqa: E402
from commsim.extensions import EXTENSIONS  # noqa: E402

CONTRACT = "the core never imports an extension"


def still_needed():
    """Return the extensions that the core imports, by the exceptions of the contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (exceptions,) = [one.get("ignore_imports", []) for one in contracts if one["name"] == CONTRACT]
    return {slice_of(re.split(r"\s*->\s*", edge)[1]) for edge in exceptions}


def hideable():
    return [name for name in EXTENSIONS if name not in still_needed()]


def modules(names):
    """Return what extensions have in `commsim` and beside it; the model of switches goes with its verb."""
    halves = [half for half, name in HALVES.items() if {"switch_model": "switches"}.get(name, name) in names]
    return [*(f"commsim.{name}" for name in names), *halves]


def environment(names):
    """Return the environment of a process that has none of these extensions."""
    path = os.pathsep.join([str(ROOT / "tests" / "without"), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "COMMSIM_HIDE": ",".join(modules(names))}


if __name__ == "__main__":
    print(",".join(modules(hideable())))
