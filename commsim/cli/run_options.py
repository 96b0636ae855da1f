"""The flags of ``commsim run`` as options of a prediction, and which of them change nothing."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.core.routes.routing import HASHED
from commsim.core.units import parse_size, parse_time

from .damage import draws_damage
from .packets import packet_notes


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return what ``Prepared.predict`` takes, but for the options of the packet engine.

    Raises
    ------
    InputError
        If a flag is wrong, or changes nothing.
    """
    from commsim.core.cost import Wire

    wire = None
    if args.header is not None:
        payload = float("inf") if args.payload is None else parse_size(args.payload, "--payload")
        wire = Wire(payload, parse_size(args.header, "--header"))
    elif args.payload is not None:
        raise InputError("--payload changes nothing without --header")
    return {
        "engine": args.engine,
        "start_jitter": parse_time(args.start_jitter, "--start-jitter") if args.start_jitter else 0.0,
        "iterations": args.iters or 1,
        "seed": args.seed or 0,
        "wire": wire,
    } | ({"method": args.method} if args.method else {})


def without_effect(args: argparse.Namespace, routing: str) -> list[str]:
    """Say which of the given flags change nothing."""
    lines = []
    if args.warmup_iters is not None or (args.iters is not None and not args.start_jitter):
        flags = " and ".join(f for f, v in (("-n", args.iters), ("-w", args.warmup_iters)) if v is not None)
        lines.append(f"{flags}: no effect, a simulation without jitter gives the same time every time")
        if args.start_jitter:
            lines[-1] = "-w: no effect, a simulation needs no warm-up"
    lines += packet_notes(args)
    drawn = args.placement == "random" or routing in HASHED or args.start_jitter or draws_damage(args)
    drawn = drawn or args.engine == "packet"
    if args.seed is not None and not drawn:
        lines.append("--seed: no effect, nothing here is drawn at random")
    return lines
