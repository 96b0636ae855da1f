"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.routes.routing import HASHED
from commsim.core.units import parse_bandwidth, parse_size, parse_time

from .damage import add_damage_arguments, damaged, draws_damage
from .draw import check_drawable, draw_loads
from .group import add_group_arguments, run_groups
from .operation import add_operation_arguments, run_operation
from .packets import add_packet_arguments, packet_notes, packet_options
from .predicted import predict_and_print
from .sizes import add_size_arguments, read_sizes
from .table import write_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--collective", action="append", metavar="NAME[:key=value,...]|FILE.py[:NAME]", help="algorithm; repeat")
    add("--compressor", metavar="NAME[:key=value,...]", help="of the gradients, such as top_k:density=0.01")
    add_operation_arguments(parser)
    add_group_arguments(parser)
    add("--topology", required=True, metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=8")
    add("--ranks", type=int, metavar="N", help="ranks (all hosts)")
    add("--engine", default="flow", help="flow, packet, alpha-beta or closed-form (flow)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--routing", choices=ROUTINGS, help="instead of the network's own")
    add_damage_arguments(parser)
    add("--seed", type=int, help="of random placement and failures, of hashes in routing, and of jitter (0)")
    add_size_arguments(parser, "32M", "32M")
    add("--start-jitter", metavar="TIME", help="ranks start late by up to this, such as 1ms")
    add("--overhead", metavar="TIME", help="o: per message, at the sender's port")
    add("--recv-overhead", metavar="TIME", help="per message, at the receiver's port")
    add("--reduce-rate", metavar="RATE", help="1/gamma: how fast a rank reduces, such as 10GB/s")
    add("--payload", metavar="SIZE", help="payload of a packet, such as 4096B (with --header)")
    add("--header", metavar="SIZE", help="bytes beside the payload of each packet")
    add_packet_arguments(parser)
    add("--draw", metavar="FILE", help="draw the network with the loads of the last result: .svg or .png")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Predict and print."""
    sizes = read_sizes(args)
    options = _options(args)
    if args.draw:
        check_drawable(args.draw)
    from commsim.inputs import load_network
    from commsim.run import ENGINES, prepare, with_costs

    if args.engine not in ENGINES:
        raise InputError(f"unknown engine {args.engine!r}; known: {', '.join(ENGINES)}")
    network, notes = damaged(load_network(args.topology), args)
    network = with_costs(network, **_costs(args))
    options |= packet_options(args, network)
    for line in notes + _without_effect(args, args.routing or network.routing):
        print(f"# {line}")
    placing = {"placement": args.placement, "routing": args.routing, "seed": args.seed or 0}
    results: list[Any] = []
    more: dict[str, Any] = {}
    if args.compressor and (args.group or args.operation is not None or args.algorithm is not None):
        raise InputError("--compressor goes with --collective alone")
    if args.group:
        results = run_groups(args, network, placing, sizes, options)
    elif args.operation is not None or args.algorithm is not None:
        results, more = run_operation(args, network, placing, sizes, options)
    else:
        for spec in args.collective or ["ring_all_reduce"]:
            ready: Any = prepare(spec, network, n_ranks=args.ranks, **placing)
            if args.compressor:
                from commsim.compressed import compressed

                ready = compressed(ready, args.compressor)
            results += predict_and_print(spec, ready, sizes, options)
    if args.draw:
        draw_loads(network, results[-1], args.draw)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, [r.row() for r in results], **more)
    return 0


def _options(args: argparse.Namespace) -> dict[str, Any]:
    from commsim.core.cost import Wire

    wire = None
    if args.header is not None:
        payload = float("inf") if args.payload is None else parse_size(args.payload, "--payload")
        wire = Wire(payload, parse_size(args.header, "--header"))
    elif args.payload is not None:
        raise InputError("--payload changes nothing without --header")
    return {
        "engine": args.engine,
        "start_jitter": parse_time(args.start_jitter, "--start-jitter") if args.start_jitter else 0.0,
        "iterations": args.iters or 1,
        "seed": args.seed or 0,
        "wire": wire,
    }


def _costs(args: argparse.Namespace) -> dict[str, float | None]:
    return {
        "overhead": None if args.overhead is None else parse_time(args.overhead, "--overhead"),
        "recv_overhead": None if args.recv_overhead is None else parse_time(args.recv_overhead, "--recv-overhead"),
        "gamma": None if args.reduce_rate is None else 1 / parse_bandwidth(args.reduce_rate, "--reduce-rate"),
    }


def _without_effect(args: argparse.Namespace, routing: str) -> list[str]:
    """Say which of the given flags change nothing."""
    lines = []
    if args.warmup_iters is not None or (args.iters is not None and not args.start_jitter):
        flags = " and ".join(f for f, v in (("-n", args.iters), ("-w", args.warmup_iters)) if v is not None)
        lines.append(f"{flags}: no effect, a simulation without jitter gives the same time every time")
        if args.start_jitter:
            lines[-1] = "-w: no effect, a simulation needs no warm-up"
    lines += packet_notes(args)
    drawn = args.placement == "random" or routing in HASHED or args.start_jitter or draws_damage(args)
    drawn = drawn or args.engine == "packet"
    if args.seed is not None and not drawn:
        lines.append("--seed: no effect, nothing here is drawn at random")
    return lines
