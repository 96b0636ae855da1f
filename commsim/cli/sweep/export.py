"""``commsim sweep export``: the results of a sweep as one file."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("directory", metavar="DIR", help="of the results")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=".csv, .json or .parquet")


def main(args: argparse.Namespace) -> int:
    """Write, and say so."""
    from commsim.sweep.table import read_table, require_suffix, write_table

    require_suffix(args.output)
    table = read_table(args.directory)
    write_table(table, args.output)
    print(f"{args.output}: {table.num_rows} rows of {table.num_columns} columns")
    return 0
