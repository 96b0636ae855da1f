"""``commsim doctor``: print what this machine supports, and what each missing package would add."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform

from commsim.extensions import house
from commsim.prediction import self_check
from commsim.report.answer import Answer, Table

from .flags import Verb, WithJson, switched

EXAMPLES = {
    "doctor": """
        commsim doctor
        commsim doctor --json machine.json
        commsim doctor --csv machine.csv
        NUMBA_CACHE_DIR=kernels commsim doctor
        mpirun -n 2 commsim doctor""",
}

PROFILER = "commsim.profile_mpi"
PACKAGES = {
    "numpy": "everything",
    "numba": "everything",
    "rich": "tables on a terminal",
    "scipy": "topo show, fit, bound, synthesize (extra opt)",
    "mpi4py": f"calibrate, validate, python -m {PROFILER}: running for real with MPI (extra mpi or mpich)",
    "mpich": "mpirun, where the system has no MPI (extra mpich)",
    "torch": "workload profile, validate torch: torch.distributed (extra torch)",
    "scapy": "switch pcap --packets (extra packets)",
    "vl-convert-python": "report, run --report: pages (extra report)",
    "matplotlib": "plot, charts, pictures as PNG (extra plot)",
    "pyroute2": "testbed: networks of namespaces (extra testbed)",
    "fastapi": "place serve (extra serve)",
    "fastapi-offline": "place serve: /docs (extra serve)",
    "uvicorn": "place serve (extra serve)",
    "prometheus-client": "place serve: /metrics (extra serve)",
    "pyyaml": "place import, export: Slurm, Kubernetes (extra yaml)",
    "pyarrow": "sweep cheapest, pages and files .parquet of sweeps (extra data)",
    "duckdb": "sweep sql (extra data)",
    "distributed": "sweep --executor dask (extra dask)",
    "ray": "sweep --executor ray (extra ray)",
    "networkx": "topo show: bisection; topo import, export: GraphML (extra graph or opt)",
    "protobuf": "schedule, workload import, export: Chakra traces (extra chakra)",
    "perfetto": "trace FILE.pftrace (extra perfetto)",
    "pandas": "data frames in Python (extra frames)",
    "argcomplete": 'completion: eval "$(register-python-argcomplete commsim)" (extra complete)',
}


class DoctorConfig(WithJson):
    """All flags of ``commsim doctor``."""

    deep: bool = switched(
        help="also test predictions whose answers are known, the kernels without compilation, and the kernel cache"
    )


def run(config: DoctorConfig) -> Answer:
    """Look; fails only where ``--deep`` finds something wrong, never because something is missing."""
    rows = [*_machine(), *(_package(name, purpose) for name, purpose in PACKAGES.items())]
    rows += [row for name in house().doctor for row in house().doctor[name]()]
    checks = list(self_check.rows()) if config.deep else []
    rows += checks
    code = 1 if any(found.startswith("no") for _, found, _ in checks) else 0
    results = [{"what": a, "found": b, "for": c} for a, b, c in rows]
    return Answer([Table(["what", "found", "for"], rows, is_read=True)], results, {}, code=code)


def _machine() -> list[tuple[str, str, str]]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        ("python", platform.python_version(), "everything"),
        ("cores", str(cores), "ranks beyond them are oversubscribed"),
        ("kernel cache", _cache(), "compiled kernels"),
    ]


def _cache() -> str:
    if importlib.util.find_spec("numba") is None:
        return "no numba"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        return "off (NUMBA_DISABLE_JIT)"
    from commsim.core.compiling.kernel_cache import cache_folder, why_unwritable

    folder = cache_folder()
    if why := why_unwritable(folder):
        return f"{folder} {why}: NUMBA_CACHE_DIR may name another folder"
    n = sum(1 for _ in folder.glob("*.nbc"))
    return f"{n} entries in {folder}" if n else f"{folder} is empty, kernels are compiled on first use"


def _package(name: str, purpose: str) -> tuple[str, str, str]:
    try:
        return name, importlib.metadata.version(name), purpose
    except importlib.metadata.PackageNotFoundError:
        return name, "no", purpose


COMMANDS = {"doctor": Verb(DoctorConfig, run)}
