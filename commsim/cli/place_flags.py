"""The flags that say how the scores of ``commsim place`` are found, and where they go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.formats.files import write_json
from commsim.core.units import parse_time

if TYPE_CHECKING:
    from commsim.placement.link_classes import Settings


def add_score_arguments(parser: argparse.ArgumentParser, longest: str) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--angles", type=int, default=72, metavar="N", help="into how many a circle is cut at least (72: 5 degrees)")
    add("--step", metavar="TIME", help="time of one angle instead, such as 1ms")
    add("--quantum", default="1ms", metavar="TIME", help="iteration times are rounded to multiples of this (1ms)")
    add("--longest", default=longest, metavar="TIME", help=f"perimeter at most; longer ones are cut off ({longest})")
    add("--check", action="store_true", help="simulate the same jobs, and say where that disagrees with the scores")
    what = "write JSON to FILE, or to standard output instead of the table without a name"
    add("--json", nargs="?", const="-", metavar="FILE", help=what)


def settings_of(args: argparse.Namespace) -> Settings:
    """Read the flags."""
    from commsim.placement.link_classes import Settings

    seed = getattr(args, "seed", 0)
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    step = None if args.step is None else parse_time(args.step, "--step")
    quantum, longest = parse_time(args.quantum, "--quantum"), parse_time(args.longest, "--longest")
    return Settings(args.angles, step, quantum, longest, seed)


def write(args: argparse.Namespace, tree: Mapping[str, Any]) -> None:
    """Write the answer where ``--json`` says, under the schema and the configuration."""
    from commsim import __version__

    config = {"version": __version__, **{k: v for k, v in vars(args).items() if k != "json"}}
    tree = {"schema": 1, "config": config, **tree}
    if args.json == "-":
        print(json.dumps(tree, indent=1, allow_nan=False))
    elif args.json:
        write_json(args.json, tree)
