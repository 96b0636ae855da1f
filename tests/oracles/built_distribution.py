"""The wheel or the sdist of a source tree, built as pip builds it."""

import subprocess
import sys
from pathlib import Path


def built(kind: str, tree: Path, out: Path) -> Path:
    """The `wheel` or `sdist` of a source tree, made in a process of its own by the backend of pyproject.toml."""
    out.mkdir()
    program = f"import setuptools.build_meta as backend; backend.build_{kind}({str(out)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tree)
    assert done.returncode == 0, done.stderr
    (made,) = out.iterdir()
    return made
