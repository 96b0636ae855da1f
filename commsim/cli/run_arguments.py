"""The flags of ``commsim run``, which a page of one of its results reads again."""

from __future__ import annotations

import argparse

from commsim.core.network import ROUTINGS

from .auto import add_auto_arguments
from .costs import add_cost_arguments
from .damage import add_damage_arguments
from .group import add_group_arguments
from .operation import add_operation_arguments
from .packets import add_packet_arguments
from .sizes import add_size_arguments


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
