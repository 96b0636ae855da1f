"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.report.table import write_results

from ..bound import print_distance
from ..flags.costs import read_costs, read_sizes
from ..flags.faults import damaged
from ..flags.outputs import check_drawable, draw_loads
from ..flags.packets import packet_options
from ..report import check_page, report_run
from .auto import AUTO, predict_with_auto, read_tolerance
from .group import run_groups
from .operation import run_operation
from .options import add_arguments, read_options, without_effect
from .predicted import predict_and_print


def main(args: argparse.Namespace) -> int:
    """Predict and print."""
    sizes = read_sizes(args)
    options = read_options(args)
    if args.draw:
        check_drawable(args.draw)
    if args.report:
        check_page(args.report)
    from commsim.run import ENGINES, prepare, with_costs
    from commsim.run.inputs import load_network

    if args.engine not in (*ENGINES, AUTO):
        raise InputError(f"unknown engine {args.engine!r}; known: {', '.join((*ENGINES, AUTO))}")
    tolerance = read_tolerance(args)
    network, notes = damaged(load_network(args.topology), args)
    network = with_costs(network, **read_costs(args))
    options |= packet_options(args, network)
    for line in notes + without_effect(args, args.routing or network.routing):
        print(f"# {line}")
    placing = {"placement": args.placement, "routing": args.routing, "seed": args.seed or 0}
    results: list[Any] = []
    more: dict[str, Any] = {}
    if args.compressor and (args.group or args.operation is not None or args.algorithm is not None):
        raise InputError("--compressor goes with --collective alone")
    if args.bound and (args.compressor or args.group or args.operation is not None):
        raise InputError("--bound goes with --collective alone; commsim bound ranks the algorithms of an operation")
    if args.group and args.method:
        raise InputError("--method is for one job; groups that share a network are always computed by the full engine")
    if args.group:
        results = run_groups(args, network, placing, sizes, options)
    elif args.operation is not None or args.algorithm is not None:
        results, more = run_operation(args, network, placing, sizes, options)
    else:
        for spec in args.collective or ["ring_all_reduce"]:
            ready: Any = prepare(spec, network, n_ranks=args.ranks, **placing)
            if tolerance is not None:
                found = predict_with_auto(spec, ready, sizes, options, tolerance, args.transport or "window")
                results += found
                if args.bound:
                    print_distance(ready, found)
                continue
            if args.compressor:
                from commsim.run.compressed import compressed

                ready = compressed(ready, args.compressor)
            results += (found := predict_and_print(spec, ready, sizes, options))
            if args.bound:
                print_distance(ready, found)
    if args.draw:
        draw_loads(network, results[-1], args.draw)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k not in ("json", "report")}
        write_results(args.json, config, [r.row() for r in results], **more)
    if args.report:
        report_run(args, results, args.report)
    return 0


__all__ = ["add_arguments", "main"]
