"""``commsim convert``: networks, schedules and workloads between our files and those of other tools."""

from __future__ import annotations

import argparse
from typing import TypeVar

from commsim.core.errors import InputError
from commsim.core.units import parse_cost, parse_nccl_size

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("source", nargs="?", metavar="IN", help="a file, or name:key=value,... of ours")
    parser.add_argument("target", nargs="?", metavar="OUT", help="a file; its suffix says the format")
    parser.add_argument("--list", action="store_true", help="the formats, and what each can hold")
    parser.add_argument("--ranks", type=int, metavar="N", help="ranks, for a collective that is named")
    add_format_arguments(parser)


def add_format_arguments(parser: argparse.ArgumentParser, source: bool = True, target: bool = True) -> None:
    """Add the flags that name formats, and say what they need."""
    if source:
        parser.add_argument("--from", dest="from_", metavar="FORMAT", help="of IN (found out by looking into it)")
        parser.add_argument("--helpers", type=int, default=0, metavar="N", help="the last N ranks of GOAL and Chakra")
    if target:
        parser.add_argument("--to", metavar="FORMAT", help="of OUT (by its suffix); `commsim convert --list` has all")
        parser.add_argument("--size", metavar="SIZE", help="of the operation, for formats whose messages have sizes")
        parser.add_argument("--gamma", default="0ns/B", metavar="COST", help="of reducing, for GOAL and Chakra (0ns/B)")
        parser.add_argument("--min-bytes", metavar="SIZE", help="MSCCL takes it from this size on (0)")
        parser.add_argument("--max-bytes", metavar="SIZE", help="and below this one (1T)")
        parser.add_argument("--gpu-type", default="H100", metavar="NAME", help="for SimAI (H100)")
    parser.add_argument("--network", metavar="NAME|FILE", help="for ASTRA-sim's system layer, and htsim's flows")
    parser.add_argument("--operation", default="all_reduce", help="of ASTRA-sim's system layer (all_reduce)")


def main(args: argparse.Namespace) -> int:
    """List the formats, or convert."""
    if args.list:
        return _list()
    if args.source is None or args.target is None:
        raise InputError("give a file to read and a file to write, or --list")
    return run(args, args.source, args.target)


def run(args: argparse.Namespace, source: str, target: str) -> int:
    """Convert, and say what was lost."""
    from commsim.formats.convert import FORMATS, Given, convert

    from_, to = getattr(args, "from_", None), getattr(args, "to", None)
    for name, way in ((from_, "reads"), (to, "writes")):
        known = [one for one in FORMATS if getattr(FORMATS[one], way)]
        if name is not None and name not in known:
            raise InputError(f"unknown format {name!r}; commsim {way} {', '.join(known)}")
    given = Given(
        n_ranks=getattr(args, "ranks", None),
        size=_size(args, "size", None),
        gamma=parse_cost(getattr(args, "gamma", "0ns/B"), "--gamma"),
        network=args.network,
        operation=args.operation,
        min_bytes=_size(args, "min_bytes", 0),
        max_bytes=_size(args, "max_bytes", 2**40),
        gpu_type=getattr(args, "gpu_type", "H100"),
        n_helpers=getattr(args, "helpers", 0),
    )
    for note in convert(source, target, given, from_, to):
        print(f"# {note}")
    print(f"{target}: written")
    return 0


def _size(args: argparse.Namespace, name: str, default: T) -> int | T:
    text = getattr(args, name, None)
    return default if text is None else parse_nccl_size(text, f"--{name.replace('_', '-')}")


def _list() -> int:
    from commsim.formats.convert import FORMATS

    for name, one in FORMATS.items():
        print(f"{name:<14} {one.summary}{', ' if one.suffixes else ''}{' '.join(one.suffixes)}")
        ways = (("read as a", one.reads), ("written from a", one.writes))
        print(" " * 15 + "; ".join(f"{way} {' or '.join(kinds)}" for way, kinds in ways if kinds))
    return 0
