"""``commsim workload reshard``: a piece of a tensor from one mesh to the hosts of another, three ways."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.core.units import format_time, parse_bandwidth, parse_size
from commsim.report.table import print_table, write_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--size", required=True, metavar="SIZE", help="of the piece")
    add("--receivers", type=int, required=True, metavar="A", help="hosts that need it")
    add("--chunks", type=int, default=64, metavar="K", help="that a broadcast cuts it into (64)")
    add("--bandwidth", metavar="RATE", help="of each host, each way, for the closed forms")
    add("--local-bandwidth", metavar="RATE", help="between the receivers, when that is another network")
    add("--network", metavar="NAME:key=value,...|FILE", help="simulate on it; the sender is the first of --placement")
    add("--placement", default="packed", metavar="NAME|FILE", help="of the sender and the receivers (packed)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Print what each strategy takes."""
    from commsim.workload.parallel.resharding import STRATEGIES

    if args.bandwidth is None and args.network is None:
        raise InputError("give --bandwidth RATE for the closed forms, --network SPEC to simulate, or both")
    if args.local_bandwidth is not None and args.bandwidth is None:
        raise InputError("--local-bandwidth goes with --bandwidth")
    if args.placement != "packed" and args.network is None:
        raise InputError("--placement goes with --network")
    rows = [_row(args, strategy) for strategy in STRATEGIES]
    title = f"{args.size} from one host to {args.receivers}"
    shown = [
        [row["strategy"], *("-" if row[key] is None else format_time(row[key]) for key in ("closed_form_s", "flow_s"))]
        for row in rows
    ]
    print_table(["strategy", "closed form", "simulated"], shown, title)
    if args.json:
        write_results(args.json, {k: v for k, v in vars(args).items() if k not in ("json", "what")}, rows)
    return 0


def _row(args: argparse.Namespace, strategy: str) -> dict[str, Any]:
    from commsim.workload.parallel.resharding import resharding_schedule, resharding_time

    size = parse_size(args.size, "--size")
    closed = simulated = None
    if args.bandwidth is not None:
        local = None if args.local_bandwidth is None else parse_bandwidth(args.local_bandwidth, "--local-bandwidth")
        closed = resharding_time(
            strategy, size, parse_bandwidth(args.bandwidth), args.receivers, n_chunks=args.chunks, local_bandwidth=local
        )
    if args.network is not None:
        from commsim.run import predict

        schedule = resharding_schedule(strategy, args.receivers, args.chunks)
        simulated = predict(schedule, args.network, size, placement=args.placement).time
    return {"strategy": strategy, "size_B": size, "closed_form_s": closed, "flow_s": simulated}
