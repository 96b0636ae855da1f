"""Print the version of this tree; it must be the same everywhere that names it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Files that name the version, with the pattern of its place.
PLACES = {
    "commsim/version.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "packaging/conda/meta.yaml": r'^{% set version = "(.*)" %}$',
    "packaging/spack/package.py": r'^    version\("(.*)"\)$',
    "CHANGES.md": r"^## (\d+\.\d+\.\d+)",
}


def versions() -> dict[str, str]:
    """Return the version that each file names."""
    found = {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    }
    for name, pattern in PLACES.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else ""
    return found


if __name__ == "__main__":
    every = versions()
    if len(set(every.values())) > 1:
        sys.exit(f"versions differ: {every}")
    print(every["pyproject.toml"])
