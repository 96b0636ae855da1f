"""What ``commsim doctor`` says of MPI, and of networks of namespaces on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from commsim.real.testbed import places as requirements


def doctor_rows() -> list[tuple[str, str, str]]:
    """Return rows of what was looked for, what was found, and what it is for."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [
        _mpi(),
        ("root", "yes" if root else "no", "network namespaces"),
        ("ip", shutil.which("ip") or "no (package iproute2)", "network namespaces"),
        *_testbed(root),
    ]


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


def _testbed(root: bool) -> list[tuple[str, str, str]]:
    """Look for what networks of namespaces need; each feature is tried in a namespace that ends with the trial."""

    def tried(works: Callable[[], bool], program: str = "", package: str = "iproute2") -> str:
        if program and shutil.which(program) is None:
            return f"no (package {package})"
        if not (root and shutil.which("unshare")):
            return "unknown (needs root and unshare)"
        return "yes" if works() else "no"

    lacking = requirements.lacking()
    return [
        ("ethtool", shutil.which("ethtool") or "no (package ethtool)", "networks of namespaces"),
        ("nft", shutil.which("nft") or "no (package nftables)", "emulated loss, without netem"),
        ("veth", tried(requirements.has_veth), "networks of namespaces"),
        ("tc tbf", tried(requirements.has_buckets, "tc"), "the rates of their links"),
        ("tc netem", tried(requirements.has_netem, "tc"), "emulated delay and loss"),
        ("nft egress", tried(requirements.has_nftables, "nft", "nftables"), "emulated loss, without netem"),
        ("tc htb", tried(requirements.has_fair_queues, "tc"), "a queue for every pair of hosts at a testbed's ports"),
        ("testbed", f"no: {lacking}" if lacking else "yes", "commsim testbed: a network of namespaces"),
    ]
