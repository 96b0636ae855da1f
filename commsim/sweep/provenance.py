"""Where results come from: version, commit, configuration, seed and kind of machine, but nobody's name."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .config import Config


def provenance(config: Config, host: bool = False) -> dict[str, Any]:
    """Return what makes a sweep repeatable.

    Parameters
    ----------
    config : Config
        The sweep.
    host : bool
        Whether to name this machine.
    """
    from commsim import __version__

    machine = {
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }
    if host:
        machine["host"] = platform.node()
    return {"commsim": __version__, "commit": commit(), "config_hash": config.hash, "seed": config.seed,
            "machine": machine}  # fmt: skip


def commit() -> str | None:
    """Commit of the source tree that this package runs from, with a + when files differ from it; None outside one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        said = [_git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--untracked-files=no")]
    except (OSError, subprocess.SubprocessError):
        return None
    return said[0].strip() + ("+" if said[1].strip() else "")


def _git(root: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(root), "--no-optional-locks", *command], capture_output=True, text=True,
                          timeout=10, check=True)  # fmt: skip
    return done.stdout
