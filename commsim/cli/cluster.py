"""``commsim cluster``: a cluster over weeks, under the policies of known schedulers, with and without CASSINI."""

from __future__ import annotations

import argparse
import importlib

VERBS = {
    "run": "replay a trace of jobs under a policy",
    "policies": "list the policies",
    "models": "list what is assumed of models",
    "trace": "write a trace: of a public log, or made up",
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
    return f"commsim.cli.cluster_{verb}"
