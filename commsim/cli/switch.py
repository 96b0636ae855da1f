"""``commsim switch``: switches that aggregate, simulated, budgeted, served and captured."""

from __future__ import annotations

import argparse
import importlib

VERBS = {
    "simulate": "in-network aggregation packet by packet, with losses, in the arithmetic of the hardware",
    "budget": "whether a pool fits into a programmable switch, and what would fit",
    "serve": "be a switch that real workers talk to over UDP",
    "all-reduce": "be a worker of a switch that serves",
    "status": "jobs, slots and counters of a switch that serves",
    "pcap": "what happened, from a capture",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(VERBS))
    for verb, what in VERBS.items():
        one = verbs.add_parser(verb, help=what, description=what[0].upper() + what[1:] + ".")
        importlib.import_module(_module(verb)).add_arguments(one)


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return int(importlib.import_module(_module(args.what)).main(args))


def _module(verb: str) -> str:
    return f"commsim.cli.switch_{verb.replace('-', '_')}"
