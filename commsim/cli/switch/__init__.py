"""``commsim switch``: switches that aggregate, simulated, budgeted, served and captured."""

from __future__ import annotations

import argparse

from .. import add_verbs, run_verb

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
    add_verbs(parser, "switch", VERBS)


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return run_verb("switch", args)
