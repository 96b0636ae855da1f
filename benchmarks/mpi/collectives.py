"""The table of nccl-tests with columns native, ours and predicted, under mpirun.

mpirun -n 4 python -m benchmarks.mpi.collectives -b 1K -e 16M -f 2 --collective ring_all_reduce --backend mpi
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.mpi.calibrated import calibrate
from benchmarks.results_file import write_results
from commsim.core.errors import BackendError, InputError
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import parse_nccl_sizes
from commsim.real.calibrate import PASSES
from commsim.real.comparison.under_mpirun import build_schedules, network_from, predictor
from commsim.real.connect import BACKENDS, reported_once, session
from commsim.real.validate import ValidationRow, errors_of, measure_rows
from commsim.report.terminal import print_table

COLUMNS = [
    "size(B)", "count", "type", "redop", "root",
    "native(us)", "algbw(GB/s)", "busbw(GB/s)", "#wrong",
    "ours(us)", "algbw(GB/s)", "busbw(GB/s)", "#wrong",
    "predicted(us)", "error",
]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0, or 1 when a result was wrong, or 2 when what the user gave is wrong."""
    try:
        with reported_once():
            return _run(_parser().parse_args(argv))
    except (InputError, BackendError) as error:
        print(f"benchmarks.mpi.collectives: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.mpi.collectives", description="Native, ours and predicted.")
    parser.add_argument("--collective", action="append", metavar="NAME[:key=value,...]", help="ring_all_reduce")
    parser.add_argument("--backend", choices=BACKENDS, default="mpi", help="mpi")
    parser.add_argument("--network", metavar="FILE", help="network of commsim calibrate (calibrates now)")
    parser.add_argument("-b", "--minbytes", default="1K", metavar="SIZE", help="first size (1K)")
    parser.add_argument("-e", "--maxbytes", default="16M", metavar="SIZE", help="last size (16M)")
    parser.add_argument("-f", "--stepfactor", default="2", metavar="N", help="factor between sizes (2)")
    parser.add_argument("-n", "--iters", type=int, default=20, metavar="N", help="measured iterations (20)")
    parser.add_argument("-w", "--warmup-iters", type=int, default=5, metavar="N", help="iterations before them (5)")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    return parser


def _run(args: argparse.Namespace) -> int:
    sizes = parse_nccl_sizes(args.minbytes, args.maxbytes, args.stepfactor)
    with session(args.backend) as transport:
        schedules = build_schedules(args.collective or ["ring_all_reduce"], transport.size)
        network = network_from(args.network, transport) if args.network else None
        if network is None and transport.size > 1:
            network = calibrate(transport, min(PASSES, args.iters))
        predict = predictor(lambda: network, any_order=transport.wait_some is not None)
        warmup, iterations = args.warmup_iters, args.iters
        every: list[ValidationRow] = []
        for build in schedules:
            schedule = build(sizes[0])
            rows = measure_rows(transport, [build], sizes, predict, warmup=warmup, iterations=iterations)
            every += rows
            if transport.rank == 0:
                title = f"{schedule.name}, {transport.size} ranks over {transport.name}, -w {warmup} -n {iterations}"
                print_table(COLUMNS, [_text(schedule, row) for row in rows], title)
        if transport.rank == 0:
            _print_footer(every)
            if args.json:
                config = {k: v for k, v in vars(args).items() if k != "json"} | {"n_ranks": transport.size}
                write_results(args.json, config, [row.json() for row in every])
    return 1 if any(row.n_wrong for row in every) else 0


def _text(schedule: Schedule, row: ValidationRow) -> list[str]:
    operation = OPERATIONS[schedule.operation]
    return [
        f"{row.ours.size:.0f}",
        f"{row.ours.size / 4:.0f}",
        "float",
        "sum" if operation.reduces else "none",
        str(schedule.root if operation.has_root else -1),
        *(_columns(row.native) if row.native else ("N/A",) * 4),
        *_columns(row.ours),
        "-" if row.predicted is None else f"{row.predicted.time * 1e6:.2f}",
        "-" if row.error is None else f"{row.error:+.1%}",
    ]


def _columns(result: Result) -> tuple[str, ...]:
    rates = result.algbw / 1e9, result.busbw / 1e9
    return f"{result.time * 1e6:.2f}", *(f"{rate:.3f}" for rate in rates), f"{result.counters['wrong']:.0f}"


def _print_footer(rows: Sequence[ValidationRow]) -> None:
    wrong = sum(row.n_wrong for row in rows)
    print(f"# Out of bounds values : {wrong} {'OK' if not wrong else 'FAILED'}")
    if rows:
        print(f"# Avg bus bandwidth    : {sum(row.ours.busbw for row in rows) / len(rows) / 1e9:.4g}")
    if errors := [*errors_of(rows, large=True), *errors_of(rows, large=False)]:
        print(f"# Median error         : {np.median(errors):.1%}")
    if rows and rows[0].oversubscribed:
        print("# more ranks than cores share this host: errors are not counted")


if __name__ == "__main__":
    sys.exit(main())
