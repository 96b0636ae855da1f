"""Healthy rows beside those that are asked about, and the causes that an extension finds with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes
from commsim.core.network_queries import units
from commsim.extensions import house
from commsim.formats.csv_tables import CsvTiming, as_measurements, is_csv_table, read_csv_rows
from commsim.formats.measurement import MAX_BYTES, Measurement
from commsim.prediction.plans.dense import Plan
from commsim.real.comparison.runs_of_log import LogRows, read_log_rows

CAUSES = "causes of slow times"


def csv_rows(path: str | None) -> list[CsvTiming]:
    """Return the rows of a CSV with bytes and times; of any other file, and of none, nothing."""
    if path is None or not Path(path).is_file() or not is_csv_table(read_bytes(path, MAX_BYTES)):
        return []
    return read_csv_rows(Path(path))


def operation_of_collective(spec: str) -> str | None:
    """Return the operation of a registered collective; None of a file, and of a library whose operation is asked."""
    name = spec.partition(":")[0]
    return str(COLLECTIVES[name].metadata["operation"]) if name in COLLECTIVES else None


def healthy_rows(path: str, healthy: str | None, operation: str, n_ranks: int, *, in_place: bool = False) -> LogRows:
    """Return the rows of healthy machines: of their own file, or those that a CSV calls so.

    Of several runs in their file the slowest is taken, as it is of the file that is asked about: the slowest of some
    runs beside the middle of others would be slower without any fault.

    Parameters
    ----------
    path, healthy : str, str or None
        File that is asked about, and that of healthy machines.
    operation : str
        Operation of the rows.
    n_ranks : int
        Number of ranks.
    in_place : bool
        Whether the times in place count.

    Raises
    ------
    InputError
        If the file cannot be read, or was measured on another number of ranks.
    """
    if healthy is None:
        rows = [row for row in csv_rows(path) if row.healthy and row.size]
        reference = tuple(as_measurements(Path(path), rows, operation, n_ranks))
        return LogRows(reference, reference, [], (), 1)
    if any(not row.size for row in csv_rows(healthy)):
        return LogRows((), (), [], (), 1)
    return read_log_rows(healthy, operation, n_ranks, in_place=in_place).named(healthy)


def numbers_of(rows: Sequence[CsvTiming]) -> tuple[list[float], list[float]]:
    """Return the bus bandwidths without a size, in bytes/s: of slow and of healthy machines."""
    numbers = [(row.healthy, row.busbw) for row in rows if not row.size and row.busbw]
    return [rate for healthy, rate in numbers if not healthy], [rate for healthy, rate in numbers if healthy]


def diagnosed(plan: Plan, slow: Sequence[Measurement], healthy: Sequence[Measurement], **known: Any) -> Any:
    """Return the diagnosis of an extension that finds causes; None without one, or where it knows no model.

    Parameters
    ----------
    plan : Plan
        Plan of the collective that was measured.
    slow, healthy : sequence of Measurement
        Rows.
    **known
        As :func:`commsim.diagnosis.causes.answer.diagnose` takes it.
    """
    logs = known.get("logs", (None, None))
    found = [numbers_of(csv_rows(path)) for path in logs]
    numbers = known.pop("numbers", None) or (found[0][0], found[0][1] + found[1][0] + found[1][1])
    find = house().services.get(CAUSES)
    return None if find is None else find(plan, slow, healthy, numbers=numbers, **known)


def require_all_machines(path: str, plan: Plan) -> None:
    """Refuse a log whose ranks leave machines of the topology out: it is of other machines.

    Parameters
    ----------
    path : str
        The log.
    plan : Plan
        Plan of as many ranks as it has.

    Raises
    ------
    InputError
        If a machine has no rank.
    """
    network, n_ranks = plan.network, plan.schedule.n_ranks
    machines = np.unique(network.machine[network.machine >= 0])
    used = np.unique(units(network)[plan.placement.nodes[:n_ranks]])
    if len(machines) > len(used):
        have = f"{n_ranks} ranks, which fill {len(used)} of the {len(machines)} machines of the topology"
        raise InputError(f"{path}: has {have}; --ranks {n_ranks} if that is so")
