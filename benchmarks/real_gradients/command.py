"""``make run``: real gradients, their all-reduce predicted on a datacenter network, then done by 2 to 4 processes."""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from commsim.core.errors import CommsimError
from commsim.core.files.npz import write_archive
from commsim.core.units import format_size
from commsim.real.mpi import find_mpiexec
from commsim.report.terminal import print_table
from commsim.sweep.executors import processors

NETWORK = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=16,bandwidth=100Gbps,oversubscription=2"
ALGORITHMS = (
    "ring_all_reduce",
    "double_tree_all_reduce",
    "halving_doubling_all_reduce",
    "hierarchical_all_reduce",
)
RUN_LIMIT_S = 600.0
ROOT = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str] | None = None) -> int:
    """Train, predict, run and compare; 0 when every sum is right."""
    parser = argparse.ArgumentParser(prog="benchmarks.real_gradients", description=__doc__)
    parser.add_argument(
        "--ranks", type=int, default=usual_ranks(), metavar="N",
        help="processes that really run (as many as cores, from 2 to 4: ranks that share a core wait for each other)",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, default=6, metavar="N", help="optimiser steps (6)")
    args = parser.parse_args(argv)
    if args.ranks < 2 or args.steps < 1:
        parser.error(f"needs at least 2 ranks and 1 step, got {args.ranks} and {args.steps}")
    try:
        return _run(args.ranks, args.steps)
    except CommsimError as error:
        print(f"benchmarks.real_gradients: error: {error}", file=sys.stderr)
        return 2


def usual_ranks() -> int:
    """Return as many ranks as this process may use cores, from 2 to 4."""
    return min(4, max(2, processors(None)))


def torch_build() -> str:
    """Say which torch is installed and how much disk it takes."""
    distribution = importlib.metadata.distribution("torch")
    paths = [Path(str(distribution.locate_file(f))) for f in distribution.files or ()]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    return f"torch {distribution.version}, {size / 1e6:.0f} MB on disk"


def _run(n_ranks: int, n_steps: int) -> int:
    mpiexec = find_mpiexec()
    from .small_transformer import train

    print(f"1. Train a small transformer here, on {n_ranks} batches side by side ({torch_build()}).", flush=True)
    began = time.perf_counter()
    losses, gradients = train(n_ranks, n_steps)
    n_bytes = gradients[0].nbytes
    took, lost = time.perf_counter() - began, f"the loss fell from {losses[0]:.2f} to {losses[-1]:.2f}"
    print(f"   {n_steps} steps took {took:.1f} s; {lost}. Each step has {format_size(n_bytes)} of gradients to sum.")
    print(
        "2. Predict how long 64 ranks would take to sum them, with four algorithms on a fabric with half the uplinks."
    )
    _predict(n_bytes)
    print(
        f"3. Sum them for real with {n_ranks} processes on this machine, with MPI and with torch's gloo.\n"
        "   `ours` runs the predicted schedule, `native` the library's own; `sums` compares with NumPy.",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gradients.npz")
        write_archive(path, "gradients", {"n_ranks": n_ranks}, {"gradients": gradients.ravel().astype(np.float32)})
        codes = [_run_ranks(mpiexec, n_ranks, backend, path) for backend in ("mpi", "gloo")]
    if not any(codes):
        print("All sums are right. Next: docs/tutorial.md, or `.venv/bin/commsim --help`.")
    return max(codes)


def _predict(n_bytes: int) -> None:
    from commsim.prediction.build import prepare

    rows = []
    for name in ALGORITHMS:
        result = prepare(name, NETWORK).predict(n_bytes)
        busiest = result.link_bytes.max()
        rows.append([name, f"{result.time * 1e6:.1f}", f"{result.busbw / 1e9:.3f}", f"{busiest / 1e6:.2f}"])
    columns = ["predicted, 64 ranks", "time(us)", "busbw(GB/s)", "busiest link(MB)"]
    print_table(columns, rows, f"{format_size(n_bytes)} all-reduce on {NETWORK}")


def _run_ranks(mpiexec: str, n_ranks: int, backend: str, path: Path) -> int:
    command = [
        mpiexec,
        "-n",
        str(n_ranks),
        sys.executable,
        "-m",
        "benchmarks.real_gradients.gradient_ranks",
        backend,
        str(path),
    ]
    sys.stdout.flush()
    try:
        return subprocess.run(command, cwd=ROOT, timeout=RUN_LIMIT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"benchmarks.real_gradients: error: {backend} took more than {RUN_LIMIT_S:.0f} s", file=sys.stderr)
        return 1
