"""Pictures that commands write to files: networks with their loads, schedules, and trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.pages.pictures import paint
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.schedules.schedule_picture import draw_schedule
from commsim.pages.schedules.tree_picture import draw_trees

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule
    from commsim.prediction.plans.dense import Plan


def check_drawable(path: str) -> None:
    """Refuse, before anything is computed, a file that no picture can be written to."""
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
    picture, notes = draw_network(network, result, collapse=collapse, whole=whole)
    paint.write_picture(picture, path)
    return [f"{path}: {line}" for line in (*notes, "drawn")]


def draw_transfers(schedule: Schedule, path: str) -> list[str]:
    """Draw a small schedule, and return the remark that it is drawn."""
    paint.write_picture(draw_schedule(schedule), path)
    return [f"{path}: drawn"]


def draw_trees_of(plan: Plan, rank: int, path: str) -> list[str]:
    """Draw the trees of one rank on a network, and return what was drawn."""
    picture, told = draw_trees(plan.network, plan.schedule, plan.placement, rank)
    paint.write_picture(picture, path)
    return [f"{path}: {told}"]
