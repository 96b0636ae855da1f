"""``commsim run --engine auto --tolerance 10%``: per size, the cheapest engine that is known to be close enough."""

from __future__ import annotations

import argparse
import itertools
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError

from .predicted import predict_and_print

if TYPE_CHECKING:
    from commsim.run import Prepared

AUTO = "auto"


def add_auto_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flag of --engine auto."""
    parser.add_argument("--tolerance", metavar="PART", help="of --engine auto: most known error, such as 10%% or 0.1")


def read_tolerance(args: argparse.Namespace) -> float | None:
    """Return the tolerance of --engine auto; None for other engines.

    Raises
    ------
    InputError
        If auto has no tolerance, another engine has one, or a flag is given for which no errors are known.
    """
    if args.engine != AUTO:
        if args.tolerance is not None:
            raise InputError(f"--tolerance goes with --engine auto, got --engine {args.engine}")
        return None
    if args.tolerance is None:
        raise InputError("--engine auto needs --tolerance, such as --tolerance 10%")
    flags = {
        "--group": args.group, "--operation": args.operation, "--algorithm": args.algorithm,
        "--compressor": args.compressor, "--start-jitter": args.start_jitter, "--header": args.header,
        "--method": args.method,
    }  # fmt: skip
    for flag, value in flags.items():
        if value:
            raise InputError(f"{flag}: no errors are known with it; choose an engine by hand, such as --engine flow")
    return _part(args.tolerance)


def predict_with_auto(
    spec: str, ready: Prepared, sizes: list[int], options: dict[str, Any], tolerance: float, transport: str
) -> list[Any]:
    """Choose an engine for every size, say which and why, predict and print; returns the results."""
    from commsim.run.auto import choose

    choices = [choose(ready, size, tolerance, transport) for size in sizes]
    for choice in choices:
        for line in choice.lines:
            print(f"# {line}")
    results: list[Any] = []
    for engine, some in itertools.groupby(choices, key=lambda choice: choice.engine):
        of_engine = [int(choice.size) for choice in some]
        mine = options | {"engine": engine}
        if engine == "packet":
            from commsim.engine.packet.transport import TRANSPORTS

            mine["transport"] = TRANSPORTS[transport]()
        results += predict_and_print(spec, ready, of_engine, mine)
    return results


def _part(text: str) -> float:
    number, percent = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    try:
        return float(number) / percent
    except ValueError:
        raise InputError(f"--tolerance must be a part such as 10% or 0.1, got {text!r}") from None
