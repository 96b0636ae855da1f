"""The flags that say what a message and a reduction cost, for every verb that predicts.

The size flags of nccl-tests: ``-b`` to ``-e`` by factors of ``-f``.
"""

from __future__ import annotations

import argparse

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_nccl_size, parse_time


def add_cost_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--overhead", metavar="TIME", help="o: per message, at the sender's port")
    add("--recv-overhead", metavar="TIME", help="per message, at the receiver's port")
    add("--reduce-rate", metavar="RATE", help="1/gamma: how fast a rank reduces, such as 10GB/s")


def read_costs(args: argparse.Namespace) -> dict[str, float | None]:
    """Return what :func:`commsim.run.bind` takes; None for what was not given."""
    return {
        "overhead": None if args.overhead is None else parse_time(args.overhead, "--overhead"),
        "recv_overhead": None if args.recv_overhead is None else parse_time(args.recv_overhead, "--recv-overhead"),
        "gamma": None if args.reduce_rate is None else 1 / parse_bandwidth(args.reduce_rate, "--reduce-rate"),
    }


def add_size_arguments(parser: argparse.ArgumentParser, begin: str, end: str) -> None:
    """Add ``-b -e -f -n -w`` with nccl-tests' meaning; `begin` and `end` are the default sizes."""
    sizes = "bytes; K, M, G are powers of 1024, as in nccl-tests"
    parser.add_argument("-b", "--minbytes", default=begin, metavar="SIZE", help=f"first size ({sizes}; {begin})")
    parser.add_argument("-e", "--maxbytes", default=end, metavar="SIZE", help=f"last size ({end})")
    parser.add_argument("-f", "--stepfactor", default="2", metavar="N", help="factor between sizes (2)")
    parser.add_argument("-n", "--iters", type=int, metavar="N", help="iterations that are timed")
    parser.add_argument("-w", "--warmup-iters", type=int, metavar="N", help="iterations before that")


def read_sizes(args: argparse.Namespace) -> list[int]:
    """Return the sizes asked for, in bytes.

    Raises
    ------
    InputError
        If a size is no size, the last is smaller than the first, or the factor is below 2.
    """
    first, last = parse_nccl_size(args.minbytes, "-b"), parse_nccl_size(args.maxbytes, "-e")
    if last < first:
        raise InputError(f"-e must not be smaller than -b, got -b {args.minbytes} -e {args.maxbytes}")
    if not args.stepfactor.isdecimal() or int(args.stepfactor) < 2:
        raise InputError(f"-f must be a whole number of at least 2, got {args.stepfactor}")
    for flag, value, least in (("-n", args.iters, 1), ("-w", args.warmup_iters, 0)):
        if value is not None and value < least:
            raise InputError(f"{flag} must be at least {least}, got {value}")
    sizes = [first]
    while sizes[-1] * int(args.stepfactor) <= last:
        sizes.append(sizes[-1] * int(args.stepfactor))
    return sizes
