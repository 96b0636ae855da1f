"""What ``--draw FILE`` does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule


def check_drawable(path: str) -> None:
    """Refuse, before anything is computed, a file that no picture can be written to; see commsim.report.draw."""
    from commsim.report import draw

    draw.check_drawable(path)
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")


def check_draw_arguments(args: argparse.Namespace) -> None:
    """Refuse --load and --collapse without --draw, and a file that no picture can be written to."""
    if args.draw:
        check_drawable(args.draw)
        return
    for flag, given in (("--load", args.load), ("--collapse", args.collapse)):
        if given is not None:
            raise InputError(f"{flag} changes nothing without --draw FILE")


def draw_loads(network: Network, result: Result | None, path: str, collapse: bool | None = None) -> None:
    """Draw a network, with the loads of a result when there is one, and say what was drawn as one box."""
    from commsim.report.draw import write_picture
    from commsim.report.network_picture import draw_network

    picture, notes = draw_network(network, result, collapse=collapse)
    write_picture(picture, path)
    print("\n".join(f"# {path}: {line}" for line in (*notes, "drawn")))


def draw_transfers(schedule: Schedule, path: str) -> None:
    """Draw a small schedule."""
    from commsim.report.draw import write_picture
    from commsim.report.schedule_picture import draw_schedule

    write_picture(draw_schedule(schedule), path)
    print(f"# {path}: drawn")
