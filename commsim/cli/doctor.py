"""``commsim doctor``: say what this machine can do, and what is missing for what."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from .table import print_table, write_results

PACKAGES = {
    "numpy": "everything",
    "numba": "everything",
    "rich": "tables on a terminal",
    "scipy": "bisection bandwidth (extra opt)",
    "mpi4py": "running for real with MPI (extra mpi or mpich)",
    "torch": "running for real with torch.distributed (extra torch)",
    "scapy": "packets (extra packets)",
    "matplotlib": "pictures as PNG (extra plot)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Look and print; never fails because something is missing."""
    rows = [*_machine(), *(_package(name, purpose) for name, purpose in PACKAGES.items()), _mpi(), *_kernel()]
    print_table(["what", "found", "for"], [list(row) for row in rows])
    if args.json:
        write_results(args.json, {}, [{"what": a, "found": b, "for": c} for a, b, c in rows])
    return 0


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
    from commsim.core.routes.routing_kernel import walk_routes

    stats = getattr(walk_routes, "stats", None)
    if stats is None:
        return "off (NUMBA_DISABLE_JIT)"
    place = Path(stats.cache_path)
    n = len(list(place.glob("*.nbi"))) if place.is_dir() else 0
    return f"{n} kernels beside {walk_routes.__name__}" if n else "empty, kernels are compiled on first use"


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
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "MPI", "does not answer", "running for real with MPI"
    if found.returncode:
        return "MPI", "no library (pip install mpich, or an MPI of your system)", "running for real with MPI"
    version = " ".join(found.stdout.split()[:3]).strip()
    return "MPI", f"{version}, {'mpiexec found' if launcher else 'no mpiexec on PATH'}", "running for real with MPI"


def _kernel() -> list[tuple[str, str, str]]:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [
        ("root", "yes" if root else "no", "network namespaces"),
        ("ip", shutil.which("ip") or "no (package iproute2)", "network namespaces"),
        ("tc netem", _netem(root), "emulated delay and loss"),
        *_programmable(),
    ]


def _programmable() -> list[tuple[str, str, str]]:
    """Look for what the switch in the kernel needs; the last line really compiles and loads its program."""
    from switch_model.bpf import requirements

    purpose = "a switch in the kernel"
    return [
        ("clang", shutil.which("clang") or "no (package clang)", purpose),
        ("bpftool", shutil.which("bpftool") or "no (package bpftool)", purpose),
        ("namespaces", _said(requirements.lacking_namespaces()), "hosts with links between them on this machine"),
        ("tc clsact", _said(requirements.lacking_hook()), purpose),
        ("bpf", _said(requirements.lacking_program()), "commsim switch serve --dataplane bpf"),
    ]


def _said(lacking: str) -> str:
    return f"no: {lacking}" if lacking else "yes"


def _netem(root: bool) -> str:
    """Try netem on the loopback device of a network namespace of our own, which ends with the process."""
    unshare, tc = shutil.which("unshare"), shutil.which("tc")
    if not (root and unshare and tc):
        return "unknown (needs root, unshare and tc)"
    command = [unshare, "--net", tc, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return "yes" if done.returncode == 0 else "no"
