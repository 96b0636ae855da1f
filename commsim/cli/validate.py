"""``commsim validate mpi|torch``: run schedules for real under mpirun, beside the prediction."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.backends.connect import reported_once, session
from commsim.report.table import print_table, write_results

from .flags.costs import add_size_arguments, read_sizes

if TYPE_CHECKING:
    from commsim.backends.transport import Transport
    from commsim.backends.validate import Row
    from commsim.core.network import Network

BACKEND_OF = {"mpi": "mpi", "torch": "gloo", "gloo": "gloo", "nccl": "nccl"}
COLUMNS = [
    "collective", "size(B)", "measured(us)", "p5", "p95", "predicted(us)", "error", "native(us)", "#wrong", "note",
]  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("backend", choices=BACKEND_OF, help="mpi, or torch (gloo; nccl where every rank has a GPU)")
    parser.add_argument(
        "--collective", action="append", metavar="NAME[:key=value,...]|all", help="algorithm (the usual ones)"
    )
    parser.add_argument("--network", metavar="FILE", help="network of commsim calibrate (calibrates now)")
    add_size_arguments(parser, "4K", "16M")
    parser.set_defaults(stepfactor="4")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Measure, predict and print on rank 0; 1 when a result was wrong."""
    with reported_once():
        return _validate(args)


def _validate(args: argparse.Namespace) -> int:
    sizes = read_sizes(args)
    with session(BACKEND_OF[args.backend]) as transport:
        from commsim.backends.measure import ITERATIONS, WARMUP
        from commsim.backends.validate import measure_rows
        from commsim.comparison.under_mpirun import build_schedules, network_for, predictor

        schedules = build_schedules(args.collective, transport.size)
        network = network_for(transport, args.network)
        rows = measure_rows(
            transport,
            schedules,
            sizes,
            predictor(network),
            warmup=WARMUP if args.warmup_iters is None else args.warmup_iters,
            iterations=args.iters or ITERATIONS,
        )
        if transport.rank == 0:
            _print(rows, network, transport)
            if args.json:
                config = {k: v for k, v in vars(args).items() if k != "json"} | {"n_ranks": transport.size}
                write_results(args.json, config, [row.json() for row in rows])
    return 1 if any(row.n_wrong for row in rows) else 0


def _print(rows: Sequence[Row], network: Network | None, transport: Transport) -> None:
    from commsim.backends.validate import COUNTED_FROM, median_error

    name = network.name if network else "no network, one rank alone"
    print_table(COLUMNS, [_text(row) for row in rows], f"{transport.size} ranks over {transport.name}, against {name}")
    error, counted = median_error(rows), sum(row.counts for row in rows)
    if error is not None:
        print(f"# median error {error:.1%} of {counted} rows of {COUNTED_FROM // 1024} KiB and more")
    if rows and rows[0].oversubscribed:
        print("# oversubscribed: more ranks than cores share this host; such rows are not counted")


def _text(row: Row) -> list[str]:
    ours = row.ours
    low, high = row.spread
    return [
        ours.collective,
        f"{ours.size:.0f}",
        f"{ours.time * 1e6:.1f}",
        f"{low * 1e6:.1f}",
        f"{high * 1e6:.1f}",
        "-" if row.predicted is None else f"{row.predicted * 1e6:.1f}",
        "-" if row.error is None else f"{row.error:+.1%}",
        "-" if row.native is None else f"{row.native.time * 1e6:.1f}",
        str(row.n_wrong),
        "oversubscribed" if row.oversubscribed else "",
    ]
