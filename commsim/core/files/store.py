"""Save a network, schedule, placement or result: as TOML or JSON, or as npz for arrays. No file is left incomplete."""

from __future__ import annotations

from pathlib import Path

from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.opening import path_of
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.spec import SUFFIXES

from .network_file import read_network, write_network
from .placement_file import read_placement, write_placement
from .result_file import write_result
from .schedule_file import write_schedule

__all__ = ["SUFFIXES", "read_network", "read_placement", "save"]


def save(
    value: Network | Schedule | Placement | Result,
    path: str | Path,
    *,
    network: Network | None = None,
    placement: Placement | None = None,
) -> None:
    """Write a value to a file, in the format of its suffix; reading it back gives an equal value.

    Parameters
    ----------
    value : Network, Schedule, Placement or Result
        What to write. A schedule is npz only; a result is JSON or npz.
    path : path
        Path to write; ends with .toml, .json or .npz.
    network : Network, optional
        Needed for a placement in TOML or JSON, which hold the names of nodes.
    placement : Placement, optional
        Placement on that network, for which a schedule was made; kept beside it.

    Raises
    ------
    InputError
        If the suffix does not suit the value, or the file cannot be written.
    """
    if not isinstance(value, (Network, Schedule, Placement, Result)):
        raise wrong_kind("value", "a Network, Schedule, Placement or Result", value)
    path = path_of(path, "path")
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: the name of a file must end with one of {', '.join(SUFFIXES)}")
    if isinstance(value, Network):
        write_network(value, path)
    elif isinstance(value, Schedule):
        write_schedule(value, path, network, placement)
    elif isinstance(value, Placement):
        write_placement(value, path, network)
    else:
        write_result(value, path)
