"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS

from .auto import AUTO, add_auto_arguments, predict_with_auto, read_tolerance
from .bound import print_distance
from .costs import add_cost_arguments, read_costs
from .damage import add_damage_arguments, damaged
from .draw import check_drawable, draw_loads
from .group import add_group_arguments, run_groups
from .operation import add_operation_arguments, run_operation
from .packets import add_packet_arguments, packet_options
from .predicted import predict_and_print
from .report import check_page, report_run
from .run_options import read_options, without_effect
from .sizes import add_size_arguments, read_sizes
from .table import write_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add(
        "--collective",
        action="append",
        metavar="NAME[:key=value,...]|FILE.npz|FILE.py[:NAME]",
        help="algorithm; repeat",
    )
    add("--compressor", metavar="NAME[:key=value,...]", help="of the gradients, such as top_k:density=0.01")
    add_operation_arguments(parser)
    add_group_arguments(parser)
    add("--topology", required=True, metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=8")
    add("--ranks", type=int, metavar="N", help="ranks (all hosts)")
    add("--engine", default="flow", help="flow, packet, alpha-beta, closed-form or auto (flow)")
    add_auto_arguments(parser)
    add("--method", metavar="NAME", help="how the flow engine computes: rounds, together, symmetric or full (cheapest)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--routing", choices=ROUTINGS, help="instead of the network's own")
    add_damage_arguments(parser)
    add("--seed", type=int, help="of random placement and failures, of hashes in routing, and of jitter (0)")
    add_size_arguments(parser, "32M", "32M")
    add("--start-jitter", metavar="TIME", help="ranks start late by up to this, such as 1ms")
    add_cost_arguments(parser)
    add("--payload", metavar="SIZE", help="payload of a packet, such as 4096B (with --header)")
    add("--header", metavar="SIZE", help="bytes beside the payload of each packet")
    add_packet_arguments(parser)
    add("--bound", action="store_true", help="say how far from the fastest possible schedule each collective is")
    add("--draw", metavar="FILE", help="draw the network with the loads of the last result: .svg or .png")
    add("--json", metavar="FILE", help="also write the results as JSON")
    add("--report", metavar="FILE.html", help="also write a page with figures: loads, timelines, critical path")


def main(args: argparse.Namespace) -> int:
    """Predict and print."""
    sizes = read_sizes(args)
    options = read_options(args)
    if args.draw:
        check_drawable(args.draw)
    if args.report:
        check_page(args.report)
    from commsim.inputs import load_network
    from commsim.run import ENGINES, prepare, with_costs

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
                results += predict_with_auto(spec, ready, sizes, options, tolerance)
                continue
            if args.compressor:
                from commsim.compressed import compressed

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
