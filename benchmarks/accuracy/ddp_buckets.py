"""The bucket-size curves of PyTorch DDP's paper, 16 GPUs: published, and ours with costs calibrated once.

python -m benchmarks.accuracy.ddp_buckets --traces DIR [--json FILE]

DIR holds measured backward passes as CSV: ``netai20_resnet50.csv`` and ``espresso_bert_large.csv``. They give sizes
and the shape of the backward pass. What an iteration computes comes from the paper: the 25 MB cell of figure 7, of
which figure 6 (32 GPUs) says how much is forward and backward pass.

What a bucket costs is a fixed time and 2(n - 1)/n S/B. Two ways to know them, neither tuned to a cell of the curve:

- "one cost": both constants by least squares over the row ResNet50 with NCCL, and then used for BERT as they are.
- "figure 6": B from figure 6's share of communication, for each model and library; the fixed time from one cell per
  library, ResNet50 with a bucket per tensor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.results_file import write_results
from commsim.core.errors import CommsimError
from commsim.report.terminal import print_table
from commsim.training.backward_trace import BackwardTrace, read_backward_trace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting

SOURCE = "Li et al., VLDB 2020, figure 7; digitised, to 0.003 s"
N_GPUS, MIB = 16, 2**20
SIZES = (0, 5, 10, 25, 50, 100, 200)  # MiB
FILES = {"ResNet50": "netai20_resnet50.csv", "BERT": "espresso_bert_large.csv"}
PUBLISHED: dict[tuple[str, str], tuple[float, ...]] = {
    ("ResNet50", "NCCL"): (0.165, 0.126, 0.118, 0.117, 0.129),
    ("BERT", "NCCL"): (0.508, 0.47, 0.452, 0.44, 0.43, 0.437, 0.445),
    ("ResNet50", "Gloo"): (0.243, 0.159, 0.170, 0.175, 0.210),
    ("BERT", "Gloo"): (0.852, 0.765, 0.80, 0.858, 0.99, 0.844, 0.93),
}
SHARES = {  # figure 6: forward, backward, communication, and all with overlap; of all without overlap
    ("ResNet50", "NCCL"): (0.15, 0.395, 0.44, 0.62),
    ("BERT", "NCCL"): (0.09, 0.415, 0.48, 0.65),
    ("ResNet50", "Gloo"): (0.115, 0.28, 0.59, 0.73),
    ("BERT", "Gloo"): (0.06, 0.245, 0.675, 0.785),
}
ONE_COST = (0.31e-3, 2.2e9)  # s per bucket, bytes/s: the least squares, to two digits
FIXED = {"NCCL": 0.34e-3, "Gloo": 0.47e-3}  # s per bucket: what a bucket per tensor of ResNet50 asks for

Curve = tuple[str, str, str, list[float]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the curves."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.accuracy.ddp_buckets", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--traces", metavar="DIR", type=Path, required=True, help="the measured backward passes")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        table = curves(args.traces)
    except CommsimError as error:
        print(f"benchmarks.accuracy.ddp_buckets: error: {error}", file=sys.stderr)
        return 2
    print_table(
        ["model", "library", "how", *(f"{size} MiB" for size in SIZES), "minimum"],
        [[m, lib, how, *(f"{t:.3f}" for t in times), *("-",) * (len(SIZES) - len(times)), f"{minimum(times)} MiB"]
         for m, lib, how, times in table],
        f"seconds of an iteration, {N_GPUS} GPUs; published: {SOURCE}",
    )  # fmt: skip
    if args.json:
        rows = [{"model": m, "library": lib, "how": how, "iteration_s": times} for m, lib, how, times in table]
        write_results(args.json, {"source": SOURCE, "bucket_MiB": list(SIZES)}, rows)
    return 0


def minimum(times: Sequence[float]) -> int:
    """Bucket size, in MiB, of the fastest iteration."""
    return SIZES[int(np.argmin(times))]


def curves(traces: Path) -> list[Curve]:
    """Model, library, how it was found, and seconds of an iteration at each bucket size."""
    found: list[Curve] = []
    for (model, library), published in PUBLISHED.items():
        given = trace(traces, model, library)
        found.append((model, library, "published", list(published)))
        if library == "NCCL":
            found.append((model, library, "one cost", curve(given, *ONE_COST)))
        rate = bandwidth(given, model, library, FIXED[library])
        found.append((model, library, "figure 6", curve(given, FIXED[library], rate)))
    return found


def trace(traces: Path, model: str, library: str) -> BackwardTrace:
    """Read the backward pass, stretched to what the paper's took; the forward pass is one span."""
    read = read_backward_trace(traces / FILES[model])
    forward, backward, _, overlapped = SHARES[model, library]
    whole = PUBLISHED[model, library][SIZES.index(25)] / overlapped
    slowed = read.slowed(backward * whole / read.backward_time)
    return slowed.with_compute_time((forward + backward) * whole)


def curve(given: BackwardTrace, fixed: float, rate: float) -> list[float]:
    """Seconds of an iteration at each bucket size; `fixed` is per bucket, `rate` that of the ring."""
    setting = TrainingSetting(given, N_GPUS, closed_form_costs(fixed / (2 * (N_GPUS - 1)), rate))
    first = {0: "0B"}
    policies = (f"ddp:bucket={size}MiB,first_bucket={first.get(size, '1MiB')}" for size in SIZES)
    return [train(policy, setting).iteration_time for policy in policies]


def bandwidth(given: BackwardTrace, model: str, library: str, fixed: float) -> float:
    """Rate of the ring with which buckets of 25 MiB take as long as figure 6 says, without overlap."""
    *_, communication, overlapped = SHARES[model, library]
    seconds = communication * PUBLISHED[model, library][SIZES.index(25)] / overlapped
    graph = train("ddp", TrainingSetting(given, N_GPUS, closed_form_costs(0.0, 1e9))).timeline.graph
    n_buckets = sum(task.operation == "all_reduce" for task in graph.tasks)
    return 2 * (N_GPUS - 1) / N_GPUS * float(given.n_bytes.sum()) / (seconds - n_buckets * fixed)


if __name__ == "__main__":
    sys.exit(main())
