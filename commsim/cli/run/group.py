"""``commsim run --group 0,2,4,6 --group 1,3,5,7``: the collective on each group of ranks, all at once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.report.table import print_table, progress

from .predicted import COLUMNS, table_row

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a group."""
    parser.add_argument("--group", action="append", metavar="RANK,RANK,...", help="ranks that run it; repeat for more")


def read_group(text: str) -> list[int]:
    """Read ``0,2,4,6``.

    Raises
    ------
    InputError
        If it is no list of whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"--group must be ranks such as 0,2,4,6, got {text!r}")
    return [int(part) for part in parts]


def run_groups(
    args: argparse.Namespace, network: Network, placing: Mapping[str, Any], sizes: list[int], options: Mapping[str, Any]
) -> list[Result]:
    """Predict every size of every collective on all groups at once, and print a row per group.

    Raises
    ------
    InputError
        If a flag is given that groups do not take.
    """
    from commsim.run.process_groups import prepare_groups

    groups = [read_group(text) for text in args.group]
    if args.operation is not None or args.algorithm is not None:
        raise InputError("--group goes with --collective, not with --operation or --algorithm")
    if args.start_jitter:
        raise InputError("--start-jitter is not known for groups")
    results: list[Result] = []
    for spec in args.collective or ["ring_all_reduce"]:
        ready = prepare_groups(spec, network, groups, n_ranks=args.ranks, **placing)
        rows = []
        for size in progress(sizes, spec):
            found = ready.predict(size, engine=args.engine, framing=options["framing"])
            results += found
            for text, group, result in zip(args.group, ready.groups, found, strict=True):
                rows.append([text, *table_row(network, group.schedule, result)])
        for note in dict.fromkeys(note for group in ready.groups for note in group.notes):
            print(f"# {note}")
        title = f"{spec} on {network.name}, {len(groups)} groups at once, engine {args.engine}"
        print_table(["group", *COLUMNS], rows, title)
    return results
