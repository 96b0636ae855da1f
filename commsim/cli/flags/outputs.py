"""Files that commands write: pictures of ``--draw``, and the check that no input is overwritten."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError

from . import WRITTEN, Flags

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule


def check_drawable(path: str) -> None:
    """Refuse, before anything is computed, a file that no picture can be written to."""
    from commsim.pages.pictures import paint

    paint.check_drawable(path)
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")


def draw_loads(
    network: Network, result: Result | None, path: str, collapse: bool | None = None, whole: Network | None = None
) -> list[str]:
    """Draw a network, and return remarks: what was drawn as one box, and that it is drawn.

    Parameters
    ----------
    network : Network
        Network to draw.
    result : Result, optional
        Result whose loads colour the links.
    path : str
        Path of the picture.
    collapse : bool, optional
        Whether hosts with the same switches are one box. Default: if there are many.
    whole : Network, optional
        The network without faults, which are then marked.
    """
    from commsim.pages.pictures.network_picture import draw_network
    from commsim.pages.pictures.paint import write_picture

    picture, notes = draw_network(network, result, collapse=collapse, whole=whole)
    write_picture(picture, path)
    return [f"{path}: {line}" for line in (*notes, "drawn")]


def draw_transfers(schedule: Schedule, path: str) -> list[str]:
    """Draw a small schedule, and return the remark that it is drawn."""
    from commsim.pages.pictures.paint import write_picture
    from commsim.pages.schedules.schedule_picture import draw_schedule

    write_picture(draw_schedule(schedule), path)
    return [f"{path}: drawn"]


def check_outputs(config: Flags) -> None:
    """Refuse, before anything is computed, to write over a file that the same command reads.

    Any other file that is named is replaced, when its new contents are complete.

    Raises
    ------
    InputError
        Naming the file.
    """
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    others = [value if isinstance(value, tuple) else (value,) for name, value in values.items() if name not in WRITTEN]
    read = [one for one in itertools.chain.from_iterable(others) if isinstance(one, str)]
    check_written([output for name in WRITTEN if isinstance(output := values.get(name), str)], read)


def check_written(written: Iterable[str | None], read: Iterable[str | None]) -> None:
    """Refuse, before anything is computed, to write over a file that is read.

    Raises
    ------
    InputError
        If one is both; None means a file that was not asked for.
    """
    inputs = [Path(name) for name in read if name is not None]
    for name in written:
        if name is not None and any(_is_same(Path(name), path) for path in inputs):
            raise InputError(f"{name}: is read, and would be written over")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # one of them is not there
        return False
