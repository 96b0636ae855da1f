"""Run a program under mpiexec, as tests do."""

import os
import subprocess
import sys
from pathlib import Path

from commsim.real.mpi import find_mpiexec

ROOT = Path(__file__).resolve().parents[2]


def under_mpiexec(
    n_ranks: int, *command: str, timeout: float = 120.0, program: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python command`` with `n_ranks` ranks at the root of the repository, by default by the mpiexec found."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    return subprocess.run(
        [program or find_mpiexec(), "-n", str(n_ranks), sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
