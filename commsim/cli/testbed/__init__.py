"""``commsim testbed``: a network as namespaces on this machine, and collectives run in it for real."""

from __future__ import annotations

import argparse

from .. import add_verbs, run_verb

VERBS = {
    "up": "build a network out of namespaces, with its rates",
    "run": "run collectives in it for real, beside the prediction",
    "share": "run jobs on its links at once, with and without a shift of their starts",
    "status": "testbeds that are up, and what dead ones have left",
    "down": "take a testbed away, whatever state it is in",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    add_verbs(parser, "testbed", VERBS)


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return run_verb("testbed", args)
