"""``commsim testbed``: a network as namespaces on this machine, and collectives run in it for real."""

from __future__ import annotations

import argparse
import importlib

VERBS = {
    "up": "build a network out of namespaces, with its rates",
    "run": "run collectives in it for real, beside the prediction",
    "share": "run jobs on its links at once, with and without a shift of their starts",
    "status": "testbeds that are up, and what dead ones have left",
    "down": "take a testbed away, whatever state it is in",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(VERBS))
    for verb, what in VERBS.items():
        one = verbs.add_parser(verb, help=what, description=what[0].upper() + what[1:] + ".")
        importlib.import_module(f"commsim.cli.testbed_{verb}").add_arguments(one)


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return int(importlib.import_module(f"commsim.cli.testbed_{args.what}").main(args))
