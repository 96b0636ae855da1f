"""Two jobs on the same links, for real: each computes and all-reduces in turn, and one may start later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.training.sharing.shared_schedules import ScheduledJob, run_jobs

from .cable_shape import FRAME
from .launch import ITERATIONS, Ranks
from .layout import TestbedLayout
from .measure import LoadMeter, ProcessorLoad
from .places import NamesOfTestbed

# Seconds from the word to go until the first job starts; all ranks look at the same clock.
LEAD = 1.0
# An iteration takes its computing and this many predicted communications, so that the next one starts as planned. Left
# to themselves, jobs that start together drift apart: whoever ends first starts the next iteration first.
SLACK = 1.25


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedRun:
    """Two jobs with a shift between their starts.

    Parameters
    ----------
    shift : float, s
        Time by which the second starts later.
    times : float64[n_jobs, n_iterations], s
        Time of each all-reduce.
    alone : float64[n_jobs], s
        Predicted time of each without the other.
    predicted : float64[n_jobs], s
        Predicted time of each beside the other.
    load : ProcessorLoad
        Load of the processors meanwhile.
    """

    shift: float
    times: NDArray[np.float64]
    alone: NDArray[np.float64]
    predicted: NDArray[np.float64]
    load: ProcessorLoad

    @property
    def measured(self) -> NDArray[np.float64]:
        """Median time of each job, s."""
        return np.median(self.times, axis=1)

    @property
    def error(self) -> NDArray[np.float64]:
        """Relative error of the predicted times."""
        return self.predicted / self.measured - 1


def share(
    place: NamesOfTestbed,
    layout: TestbedLayout,
    schedules: Sequence[Schedule],
    seats: Sequence[Sequence[int]],
    size: int,
    shifts: Sequence[float],
    *,
    compute: float,
    iterations: int = ITERATIONS,
    network: Network | None = None,
) -> list[ShiftedRun]:
    """Run jobs at once for every shift, and predict the same.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        The testbed.
    schedules : sequence of Schedule
        One per job.
    seats : sequence of sequence of int
        Nodes of each job's participants; no two share one.
    size : int, bytes
        Size of each all-reduce.
    shifts : sequence of float, s
        Time by which each job but the first starts later than the one before.
    compute : float, s
        Time between two all-reduces of a job.
    iterations : int
        All-reduces of each job.
    network : Network, optional
        Network with calibrated costs, for the prediction.

    Raises
    ------
    InputError
        If jobs share seats, or a time is negative.
    BackendError
        If ranks do not answer.
    """
    all_nodes = [node for seat in seats for node in seat]
    if len(set(all_nodes)) != len(all_nodes):
        raise InputError(f"simultaneous jobs must be on different hosts, got {[list(seat) for seat in seats]}")
    if compute < 0 or min(shifts, default=0.0) < 0:
        raise InputError(f"times of jobs must not be negative, got compute {compute} s and shifts {list(shifts)} s")
    parties: list[Ranks] = []
    try:
        for nodes in seats:
            parties.append(Ranks(place, layout, nodes))
            parties[-1].__enter__()
        return [
            _run(place, parties, schedules, size, shift, compute, iterations, network or layout.network)
            for shift in shifts
        ]
    finally:
        for ranks in parties:
            ranks.close()


def _run(
    place: NamesOfTestbed,
    parties: Sequence[Ranks],
    schedules: Sequence[Schedule],
    size: int,
    shift: float,
    compute: float,
    iterations: int,
    network: Network,
) -> ShiftedRun:
    jobs = [
        ScheduledJob(f"job{j}", schedule, Placement(np.array(ranks.seats, np.int32)), size, j * shift)
        for j, (ranks, schedule) in enumerate(zip(parties, schedules, strict=True))
    ]
    predicted = run_jobs(network, jobs, framing=FRAME.framing)
    alone, together = (np.array([r.time for r in results]) for results in (predicted.alone, predicted.together))
    period = compute + SLACK * float(together.max())
    begin = time.monotonic() + LEAD
    for j, (ranks, schedule) in enumerate(zip(parties, schedules, strict=True)):
        job: dict[str, Any] = {"compute": compute, "period": period, "begin": begin + j * shift}
        ranks.prepare(schedule, size, warmup=0, iterations=iterations, **job)
    meter = LoadMeter(place)
    for ranks in parties:
        ranks.begin()
    answers = [ranks.finish() for ranks in parties]
    load = meter.read()
    return ShiftedRun(shift, np.array([answer["samples"] for answer in answers]), alone, together, load)
