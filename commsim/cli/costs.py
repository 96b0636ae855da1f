"""The flags that say what a message and a reduction cost, for every verb that predicts."""

from __future__ import annotations

import argparse

from commsim.core.units import parse_bandwidth, parse_time


def add_cost_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--overhead", metavar="TIME", help="o: per message, at the sender's port")
    add("--recv-overhead", metavar="TIME", help="per message, at the receiver's port")
    add("--reduce-rate", metavar="RATE", help="1/gamma: how fast a rank reduces, such as 10GB/s")


def read_costs(args: argparse.Namespace) -> dict[str, float | None]:
    """Return what :func:`commsim.run.with_costs` takes; None for what was not given."""
    return {
        "overhead": None if args.overhead is None else parse_time(args.overhead, "--overhead"),
        "recv_overhead": None if args.recv_overhead is None else parse_time(args.recv_overhead, "--recv-overhead"),
        "gamma": None if args.reduce_rate is None else 1 / parse_bandwidth(args.reduce_rate, "--reduce-rate"),
    }
