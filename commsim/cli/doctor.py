"""``commsim doctor``: print what this machine supports, and what each missing package would add."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from commsim.prediction import self_check
from commsim.report.answer import Answer, Table

from .flags import Verb, WithJson, switched

PROFILER = "commsim.profile_mpi"
PACKAGES = {
    "numpy": "everything",
    "numba": "everything",
    "rich": "tables on a terminal",
    "scipy": "topo show, fit, bound, synthesize (extra opt)",
    "mpi4py": f"calibrate, validate, python -m {PROFILER}: running for real with MPI (extra mpi or mpich)",
    "mpich": "mpirun, where the system has no MPI (extra mpich)",
    "torch": "profile, validate torch: torch.distributed (extra torch)",
    "scapy": "switch pcap --packets (extra packets)",
    "vl-convert-python": "report, run --report: pages (extra report)",
    "matplotlib": "plot, charts, pictures as PNG (extra plot)",
    "pyroute2": "testbed: networks of namespaces (extra testbed)",
    "fastapi": "place serve (extra serve)",
    "fastapi-offline": "place serve: /docs (extra serve)",
    "uvicorn": "place serve (extra serve)",
    "prometheus-client": "place serve: /metrics (extra serve)",
    "pyyaml": "place import, export: Slurm, Kubernetes (extra yaml)",
    "pyarrow": "sweep (extra data)",
    "duckdb": "sweep sql (extra data)",
    "distributed": "sweep --executor dask (extra dask)",
    "ray": "sweep --executor ray (extra ray)",
    "networkx": "topo show: bisection; topo import, export: GraphML (extra graph or opt)",
    "protobuf": "convert: Chakra traces (extra chakra)",
    "perfetto": "trace FILE.pftrace (extra perfetto)",
    "pandas": "data frames in Python (extra frames)",
    "argcomplete": "completion in bash, zsh and fish (extra complete)",
}


class DoctorConfig(WithJson):
    """All flags of ``commsim doctor``."""

    deep: bool = switched(
        help="also test predictions whose answers are known, the kernels without compilation, and the kernel cache"
    )


def run(config: DoctorConfig) -> Answer:
    """Look; fails only where ``--deep`` finds something wrong, never because something is missing."""
    rows = [*_machine(), *(_package(name, purpose) for name, purpose in PACKAGES.items()), _mpi(), *_kernel()]
    checks = list(self_check.rows()) if config.deep else []
    rows += checks
    code = 1 if any(found.startswith("no") for _, found, _ in checks) else 0
    results = [{"what": a, "found": b, "for": c} for a, b, c in rows]
    return Answer([Table(["what", "found", "for"], rows)], results, {}, code=code)


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


def _mpi() -> tuple[str, str, str]:
    """Find which MPI library mpi4py loads, in a process of its own: loading it is not harmless everywhere."""
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    program = "from mpi4py import rc; rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "MPI", "does not answer", "running for real with MPI"
    if done.returncode:
        return "MPI", "no library (pip install mpich, or an MPI of your system)", "running for real with MPI"
    version = " ".join(done.stdout.split()[:3]).strip()
    return "MPI", f"{version}, {'mpiexec found' if launcher else 'no mpiexec on PATH'}", "running for real with MPI"


def _kernel() -> list[tuple[str, str, str]]:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [
        ("root", "yes" if root else "no", "network namespaces"),
        ("ip", shutil.which("ip") or "no (package iproute2)", "network namespaces"),
        *_testbed(root),
        *_programmable(),
    ]


def _testbed(root: bool) -> list[tuple[str, str, str]]:
    """Look for what networks of namespaces need; each feature is tried in a namespace that ends with the trial."""
    from commsim.real.testbed import places as requirements

    def tried(works: Callable[[], bool]) -> str:
        if not (root and shutil.which("unshare")):
            return "unknown (needs root and unshare)"
        return "yes" if works() else "no"

    return [
        ("ethtool", shutil.which("ethtool") or "no (package ethtool)", "networks of namespaces"),
        ("nft", shutil.which("nft") or "no (package nftables)", "emulated loss, without netem"),
        ("veth", tried(requirements.has_veth), "networks of namespaces"),
        ("tc tbf", tried(requirements.has_buckets), "the rates of their links"),
        ("tc netem", tried(requirements.has_netem), "emulated delay and loss"),
        ("nft egress", tried(requirements.has_nftables), "emulated loss, without netem"),
        ("tc htb", tried(requirements.has_fair_queues), "a queue for every pair of hosts at a testbed's ports"),
        ("testbed", _lacking_text(requirements.lacking()), "commsim testbed: a network of namespaces"),
    ]


def _programmable() -> list[tuple[str, str, str]]:
    """Look for what the switch in the kernel needs; the last line really compiles and loads its program."""
    from switch_model.bpf import requirements

    purpose = "a switch in the kernel"
    return [
        ("clang", shutil.which("clang") or "no (package clang)", purpose),
        ("bpftool", shutil.which("bpftool") or "no (package bpftool)", purpose),
        (
            "namespaces",
            _lacking_text(requirements.lacking_namespaces()),
            "hosts with links between them on this machine",
        ),
        ("tc clsact", _lacking_text(requirements.lacking_hook()), purpose),
        ("bpf", _lacking_text(requirements.lacking_program()), "commsim switch serve --dataplane bpf"),
    ]


def _lacking_text(lacking: str) -> str:
    return f"no: {lacking}" if lacking else "yes"


COMMANDS = {"doctor": Verb(DoctorConfig, run)}
