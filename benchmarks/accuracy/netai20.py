"""NetAI'20's what-if figure: scaling of ResNet50 and VGG16 by bandwidth, workers and compression; theirs and ours.

python -m benchmarks.accuracy.netai20 --traces DIR [--json FILE]

DIR holds the authors' measurements as CSV: ``netai20_resnet50.csv`` and ``netai20_vgg16.csv`` (``nbytes``, ``wait_us``)
and ``netai20_vector_add.csv`` (``nbytes``, ``seconds``). They are not ours, and so no part of this repository.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_file import write_results
from commsim.core.errors import CommsimError
from commsim.report.terminal import print_table
from commsim.training.backward_trace import read_backward_trace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.vector_add import read_vector_add

SOURCE = "Zhang et al., NetAI 2020: their rule, in a separate implementation; their figure agrees to a point"
BATCH_TIME = {"resnet50": 0.12809, "vgg16": 0.19452}  # seconds on one V100, batches of 32, measured by the authors
THEIRS = {  # workers, Gb/s, compression: scaling in per cent
    "resnet50": {
        (64, 1, 1): 7.6, (64, 10, 1): 54.0, (64, 25, 1): 91.0, (64, 40, 1): 99.4, (64, 100, 1): 99.5,
        (64, 10, 2): 81.7, (64, 10, 5): 99.4, (64, 10, 10): 99.5, (16, 10, 1): 57.2,
    },
    "vgg16": {
        (64, 1, 1): 2.2, (64, 10, 1): 20.1, (64, 25, 1): 43.9, (64, 40, 1): 62.2, (64, 100, 1): 99.3,
        (64, 10, 2): 36.7, (64, 10, 5): 72.3, (64, 10, 10): 99.3, (16, 10, 1): 21.2,
    },
}  # fmt: skip

Row = tuple[str, int, float, float, float, float]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 when a row is off by more than half a point."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy.netai20", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--traces", metavar="DIR", type=Path, required=True, help="the authors' measurements")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        table = rows(args.traces)
    except CommsimError as error:
        print(f"benchmarks.accuracy.netai20: error: {error}", file=sys.stderr)
        return 2
    print_table(
        ["model", "workers", "Gb/s", "compression", "theirs(%)", "ours(%)", "difference"],
        [[m, str(n), f"{b:g}", f"{c:g}", f"{t:.1f}", f"{o:.2f}", f"{o - t:+.2f}"] for m, n, b, c, t, o in table],
        f"scaling; theirs: {SOURCE}",
    )
    if args.json:
        keys = ("model", "workers", "Gbps", "compression", "theirs_percent", "ours_percent")
        write_results(args.json, {"source": SOURCE}, [dict(zip(keys, row, strict=True)) for row in table])
    return int(any(abs(ours - theirs) > 0.5 for *_, theirs, ours in table))


def rows(traces: Path) -> list[Row]:
    """Rows of the table: model, workers, Gb/s, compression, and scaling in per cent, theirs and ours."""
    add_time = read_vector_add(traces / "netai20_vector_add.csv")
    found = []
    for model, cells in THEIRS.items():
        trace = read_backward_trace(traces / f"netai20_{model}.csv").with_compute_time(BATCH_TIME[model])
        for (n_workers, gbps, compression), theirs in cells.items():
            cost = closed_form_costs(0.0, gbps * 1e9 / 8)
            ours = train("netai20", TrainingSetting(trace, n_workers, cost, compression, add_time)).scaling
            found.append((model, n_workers, float(gbps), float(compression), theirs, 100 * ours))
    return found


if __name__ == "__main__":
    sys.exit(main())
