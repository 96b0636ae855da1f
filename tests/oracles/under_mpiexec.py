"""Run a program under mpiexec, as tests do."""

import os
import subprocess
import sys
from pathlib import Path

from commsim.real.mpi import WAIT_VARIABLE, find_mpiexec

ROOT = Path(__file__).resolve().parents[2]


def under_mpiexec(
    n_ranks: int, *command: str, timeout: float = 300.0, program: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python command`` with `n_ranks` ranks at the root of the repository, by default by the mpiexec found.

    Ranks sleep while they wait, since other tests run beside them: one that asks and yields gets a core again only
    after the time slices of all the others. Another `environment` has them wait as usual.
    """
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    return subprocess.run(
        [program or find_mpiexec(), "-n", str(n_ranks), sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, WAIT_VARIABLE: "sleep", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
