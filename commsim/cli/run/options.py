"""The flags of ``commsim run``, which a page of one of its results reads again.

The flags of ``commsim run`` as options of a prediction, and which of them change nothing.

The flags of a prediction, for verbs that hold something against it: the network, the algorithm, and the costs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.units import parse_size, parse_time
from commsim.routing.routing import HASHED

from ..flags.costs import add_cost_arguments, add_size_arguments, read_costs
from ..flags.faults import add_damage_arguments, draws_damage
from ..flags.packets import add_packet_arguments, packet_notes
from .auto import add_auto_arguments
from .group import add_group_arguments
from .operation import add_operation_arguments

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.run import Prepared


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
    ways = "rounds, together, symmetric, streamed or full (cheapest)"
    add("--method", metavar="NAME", help=f"how the flow engine computes: {ways}")
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


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return what ``Prepared.predict`` takes, but for the options of the packet engine.

    Raises
    ------
    InputError
        If a flag is wrong, or changes nothing.
    """
    from commsim.core.cost import Framing

    framing = None
    if args.header is not None:
        payload = float("inf") if args.payload is None else parse_size(args.payload, "--payload")
        framing = Framing(payload, parse_size(args.header, "--header"))
    elif args.payload is not None:
        raise InputError("--payload changes nothing without --header")
    return {
        "engine": args.engine,
        "start_jitter": parse_time(args.start_jitter, "--start-jitter") if args.start_jitter else 0.0,
        "iterations": args.iters or 1,
        "seed": args.seed or 0,
        "framing": framing,
    } | ({"method": args.method} if args.method else {})


def without_effect(args: argparse.Namespace, routing: str) -> list[str]:
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


def add_prediction_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags, with the meaning that ``commsim run`` gives them."""
    add = parser.add_argument
    add("--topology", metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=8")
    add(
        "--collective",
        metavar="NAME[:key=value,...]|FILE.py[:NAME]",
        help="algorithm that is predicted; of a file with several, which",
    )
    add("--ranks", type=int, metavar="N", help="ranks (as the file says; OSU's tables do not)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--routing", choices=ROUTINGS, help="instead of the network's own")
    add("--engine", default="flow", help="flow, packet, alpha-beta or closed-form (flow)")
    add("--seed", type=int, default=0, help="of random placement, and of hashes in routing (0)")
    add_cost_arguments(parser)


def load_costed_network(args: argparse.Namespace) -> Network:
    """Build the network that --topology names, with the costs of messages that the flags say."""
    from commsim.run import with_costs
    from commsim.run.inputs import load_network

    return with_costs(load_network(args.topology), **read_costs(args))


def prepare_as_asked(args: argparse.Namespace, network: Network, n_ranks: int | None) -> Prepared:
    """Place --collective on the network."""
    from commsim.run import prepare

    return prepare(
        args.collective,
        network,
        n_ranks=n_ranks,
        placement=args.placement,
        routing=args.routing,
        seed=args.seed,
    )
