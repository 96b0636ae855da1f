"""Run a program under mpiexec, as tests do."""

import os
import subprocess
import sys
from pathlib import Path

from commsim.real.mpi import WAIT_VARIABLE, find_mpiexec

ROOT = Path(__file__).resolve().parents[2]


def under_mpiexec(
    n_ranks: int, *command: str, timeout: float = 120.0, program: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python command`` with `n_ranks` ranks at the root of the repository, by default by the mpiexec found.

    More ranks than cores sleep while they wait: one that asks and yields waits a time slice of all others each time.
    """
    waits = {WAIT_VARIABLE: "sleep"} if n_ranks > (os.cpu_count() or 1) else {}
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    return subprocess.run(
        [program or find_mpiexec(), "-n", str(n_ranks), sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **waits, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
