"""``commsim cluster``: a cluster over weeks, under the policies of known schedulers, with and without CASSINI."""

from __future__ import annotations

import argparse

from .. import add_verbs, run_verb

VERBS = {
    "run": "replay a trace of jobs under a policy",
    "policies": "list the policies",
    "models": "list what is assumed of models",
    "trace": "write a trace: of a public log, or made up",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    add_verbs(parser, "cluster", VERBS)


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return run_verb("cluster", args)
