"""Which modules to hide so that an extension is not there; ``python tests/oracles/hidden_extensions.py``: all."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from benchmarks.house.slices import HALVES  # noqa: E402
from commsim.extensions import EXTENSIONS  # noqa: E402


def modules(names):
    """Return what extensions have in `commsim` and beside it; the model of switches goes with its verb."""
    halves = [half for half, name in HALVES.items() if {"switch_model": "switches"}.get(name, name) in names]
    return [*(f"commsim.{name}" for name in names), *halves]


def environment(names):
    """Return the environment of a process that has none of these extensions."""
    path = os.pathsep.join([str(ROOT / "tests" / "without"), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "COMMSIM_HIDE": ",".join(modules(names))}


if __name__ == "__main__":
    print(",".join(modules(EXTENSIONS)))
