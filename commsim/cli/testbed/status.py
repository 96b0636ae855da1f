"""``commsim testbed status``: which testbeds there are."""

from __future__ import annotations

import argparse

from commsim.report.table import print_table, write_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("--json", metavar="FILE", help="also write this as JSON")


def main(args: argparse.Namespace) -> int:
    """List them."""
    from commsim.testbed.places import testbeds

    rows = []
    for place in testbeds():
        network = place.network().name if place.ready else "not complete: `commsim testbed down` takes it away"
        rows.append({"name": place.name, "complete": place.ready, "namespaces": len(place.namespaces()),
                     "processes": len(place.processes()), "network": network})  # fmt: skip
    columns = ["name", "complete", "namespaces", "processes", "network"]
    shown = [["yes" if row[c] is True else "no" if row[c] is False else str(row[c]) for c in columns] for row in rows]
    print_table(columns, shown)
    if args.json:
        write_results(args.json, {}, rows)
    return 0
