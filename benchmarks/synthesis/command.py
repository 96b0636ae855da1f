"""Synthesized schedules beside the exact optimum and what other synthesizers publish; and how long synthesis takes.

python -m benchmarks.synthesis [--json FILE] [--rows PATTERN] [--scale]

Fractions and rates are of ``examples/synthesis``. Published: TE-CCL's files ``output_provided`` (its
algorithm bandwidth and Gurobi's seconds), TACOS' regression tests ``tests/test_tacos_*.cpp``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.jit import compile_all
from commsim.prediction.inputs import load_network
from commsim.ranking.synthesis.made_schedules import Maker
from commsim.ranking.synthesis.synthesize import synthesize
from commsim.ranking.synthesis.trees.forest import Grower
from commsim.ranking.synthesis.trees.whole_rates import whole_network

from .networks import FOLDER, boxes

SIZE = 4 << 30


@dataclass(frozen=True, slots=True)
class Row:
    """One case.

    Parameters
    ----------
    network : str
        File in ``examples/synthesis``.
    operation : str
        Which.
    fraction : str
        Exact optimum in s/GB: of size / n_ranks, or of the size for all-reduce.
    size : int, bytes
        At which it is simulated.
    published : float, s
        Best published time of another synthesizer; 0 without one.
    by : str
        Whose.
    """

    network: str
    operation: str
    fraction: str
    size: int = SIZE
    published: float = 0.0
    by: str = ""


GATHER = {
    "a100_x1": "7/300", "a100_x2": "3/65", "a100_x4": "3/25", "a100_x8": "7/25", "mi250_x1": "7/150",
    "mi250_x2": "15/166", "dgx1v": "7/150", "h100_x1": "7/450", "h100_x2": "3/100", "h100_x4": "31/500",
    "h100_x16": "3/10", "ring8": "7/100", "ring16": "3/20", "torus_4x4": "3/40", "torus_4x4x4": "21/100",
    "mesh_5x5": "6/25", "fat_tree_k4": "3/5", "leaf_spine_4x16": "63/100", "two_leaves": "7/100",
}  # fmt: skip
REDUCE = {
    "star8": "7/400", "star8_half": "1/50", "star8_quarter": "1/25", "ring8": "7/400", "dgx1v": "7/600",
    "two_leaves": "7/400", "two_leaves_slow": "1/25", "a100_x2": "3/520",
}  # fmt: skip
ROWS = (
    *(Row(name, "all_gather", fraction) for name, fraction in GATHER.items()),
    *(Row(name, "all_reduce", fraction) for name, fraction in REDUCE.items()),
    Row("ndv2_x2", "all_gather", "16/25", 10**9, 1 / 22.857, "TE-CCL"),
    Row("dgx2_x2", "all_gather", "31/125", 10**9, 1 / 129.032, "TE-CCL"),
    Row("ndv2_x2", "all_gather", "16/25", 10**6, 1e-3 / 20.51, "TE-CCL"),
    Row("dgx2_x2", "all_gather", "31/125", 10**6, 1e-3 / 93.02, "TE-CCL"),
    Row("tacos_mesh_5x5", "all_gather", "", 1 << 30, 9_606.0e-6, "TACOS"),
    Row("tacos_mesh_10x10", "all_gather", "", 1 << 30, 5_049.0e-6, "TACOS"),
    Row("tacos_torus_3x3x3", "all_gather", "", 1 << 30, 3_706.20e-6, "TACOS"),
    Row("tacos_torus_4x2x3", "all_gather", "", 3 << 30, 11_673.67e-6, "TACOS"),
    Row("tacos_mesh_5x5_uneven", "all_gather", "", 1 << 30, 8_005.0e-6, "TACOS"),
)


def measure(row: Row) -> dict[str, Any]:
    """Synthesize a row; the seconds are of certificate and trees, without simulation."""
    network = load_network(str(FOLDER / f"{row.network}.toml"))
    nodes = network.endpoints.astype(np.int32)
    begin = time.perf_counter()
    maker = Maker(row.operation, network, nodes, 0, 3_000_000, None)
    assert maker.grower is not None
    forest = maker.grower.optimal()
    seconds = time.perf_counter() - begin
    found = synthesize(row.operation, network, [row.size], textbook=False)
    best, bound, proof = found.best(row.size), found.bounds[row.size], found.certificate
    assert proof is not None
    return {
        "network": row.network, "operation": row.operation, "size_B": row.size, "fraction": str(proof.fraction),
        "expected": row.fraction, "equal": not row.fraction or Fraction(row.fraction) == proof.fraction,
        "proved": proof.proved, "k": proof.k, "height": forest.height, "synthesis_s": seconds,
        "chosen": best.method, "pieces": best.pieces, "time_s": best.time, "bound_s": bound,
        "times_bound": best.time / bound, "published_s": row.published, "by": row.by,
    }  # fmt: skip


def results(pattern: str = "*") -> Iterator[dict[str, Any]]:
    """Measure the rows whose network matches."""
    compile_all()
    first = next(row for row in ROWS if row.network == "star8")
    measure(first)  # loads or compiles the kernels
    for row in ROWS:
        if fnmatch.fnmatch(row.network, pattern):
            yield measure(row)


def at_scale(n_boxes: int) -> dict[str, Any]:
    """Find the certificate and the trees of all-gather on DGX-H100 boxes on rails; nothing is simulated."""
    network = boxes(f"h100_x{n_boxes}", n_boxes, 450.0, 50.0, 8)
    whole = whole_network(network, network.endpoints.astype(np.int32))
    begin, processor = time.perf_counter(), time.process_time()
    grower = Grower(whole, "all_gather")
    forest = grower.optimal()
    return {
        "n_gpus": 8 * n_boxes, "fraction": str(grower.certificate.fraction), "proved": grower.certificate.proved,
        "k": grower.certificate.k, "height": forest.height, "n_arcs": forest.n_arcs,
        "wall_s": time.perf_counter() - begin, "cpu_s": time.process_time() - processor,
        "memory_B": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip


def main() -> None:
    """Print the rows as a table in Markdown, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rows", metavar="PATTERN", default="*", help="networks, such as a100*")
    parser.add_argument("--scale", action="store_true", help="256 and 1,024 GPUs instead: certificate and trees")
    args = parser.parse_args()
    if args.scale:
        compile_all()
        at_scale(2)  # loads or compiles the kernels
        for n_boxes in (8, 32, 128):
            print(json.dumps(at_scale(n_boxes)), flush=True)
        return
    columns = ("network", "operation", "size_B", "fraction", "equal", "k", "height", "synthesis_s", "chosen", "pieces")
    print("|".join(("", *columns, "times_bound", "of published", "")))
    print("|---" * (len(columns) + 2) + "|")
    rows = []
    for row in results(args.rows):
        rows.append(row)
        cells = [f"{row[c]:.3f}" if isinstance(row[c], float) else f"{row[c]}" for c in columns]
        ratio = f"{row['time_s'] / row['published_s']:.4f} {row['by']}" if row["by"] else "-"
        print("|".join(("", *cells, f"{row['times_bound']:.4f}", ratio, "")), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps({"results": rows}, indent=1) + "\n", encoding="utf-8")
