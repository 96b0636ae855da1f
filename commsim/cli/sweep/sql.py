"""``commsim sweep sql``: a query over the results of a sweep."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.report.table import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="of the results")
    add("query", metavar="SQL", help='such as: select "collective.name", min(time_s) from sweep group by all')
    add("-o", "--output", metavar="FILE", help="write the answer as .csv, .json or .parquet instead")


def main(args: argparse.Namespace) -> int:
    """Ask, and print."""
    from commsim.sweep.table import query, require_suffix, write_table

    if args.output:
        require_suffix(args.output)
    answer = query(args.directory, args.query)
    if args.output:
        write_table(answer, args.output)
        print(f"{args.output}: {answer.num_rows} rows")
        return 0
    columns = answer.to_pydict()
    rows = [list(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
    print_table(list(columns), rows)
    return 0


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
