"""What of a log is held against predictions: rows that were lost on the way are said."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.formats.log_health import LogHealth
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement

CODE = "rows-left-out"
_NAMES = ("out of place", "in place")


def lost_rows(every: Sequence[Measurement], health: LogHealth, *, in_place: bool = False) -> list[Remark]:
    """Say which rows of a log have no time in the half that is taken, and that the other half is taken unasked.

    Parameters
    ----------
    every : sequence of Measurement
        Rows of the log.
    health : LogHealth
        What its reader dropped.
    in_place : bool
        Whether the times in place were asked for.
    """
    switched = not in_place and all(row.in_place for row in every)
    half = in_place or switched
    kept = {row.line for row in every if row.in_place == half and (row.time > 0 or not row.size)}
    lost = {*health.dropped, *(row.line for row in every)} - kept - {*health.wrong}
    found = []
    if switched:
        found.append("no row has a time out of place: the times in place are taken")
    if lost:
        rows = count_text(len(lost), "row")
        found.append(f"left out: {rows} without a time {_NAMES[half]}, the first in {health.place} {min(lost)}")
    return [Remark(CODE, text, needed=True) for text in found]


def named_faults(path: str | None) -> list[str]:
    """Return why the run of a log did not go well, with the name of the file before; nothing without a file.

    Parameters
    ----------
    path : str or None
        The log.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    health = LogHealth()
    if path is not None:
        read_measured(path, health=health)
    return [f"{path}: {fault}" for fault in health.faults]
