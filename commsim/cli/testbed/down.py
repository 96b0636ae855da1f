"""``commsim testbed down``: take a testbed away."""

from __future__ import annotations

import argparse

from commsim.core.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("name", nargs="?", default="testbed", metavar="NAME", help="which (testbed)")
    parser.add_argument("--all", action="store_true", help="all of them, and what dead ones have left")


def main(args: argparse.Namespace) -> int:
    """End what runs in it, and remove it."""
    from commsim.testbed.places import Place, require_root, testbeds

    require_root()
    there = testbeds()
    which = there if args.all else [Place(args.name)]
    for place in which:
        if not args.all and place not in there:
            known = ", ".join(one.name for one in there) or "none is up"
            raise InputError(f"there is no testbed {place.name}; there are: {known}")
        place.remove()
        print(f"{place.name}: gone")
    return 0
