"""``commsim sweep``: many points over any parameter, on all processors or a cluster, resumable."""

from __future__ import annotations

import argparse

from .. import add_verbs, run_verb

WHATS = {
    "run": "compute the points that have no result yet (`commsim sweep FILE` is the same)",
    "plan": "say how many points there are, and what they will take: a few are measured",
    "status": "say how far a sweep is",
    "sql": "answer a query in SQL over the table `sweep`",
    "export": "write the results as one .csv, .json or .parquet file",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    add_verbs(parser, "sweep", WHATS)


def completed(argv: list[str]) -> list[str]:
    """Return the arguments with the verb ``run`` in front, unless they begin with a verb."""
    begins = argv[0] if argv else "--help"
    return argv if begins in (*WHATS, "-h", "--help") else ["run", *argv]


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return run_verb("sweep", args)
