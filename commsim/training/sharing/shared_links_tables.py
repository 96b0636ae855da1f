"""From periodic jobs to the tables that the kernel of shared links works on, one row per thing.

A *link* is here only if the jobs together could ask for more than it has; all others slow no job down. At a given time
it is *tight* if the jobs that are sending ask for more: only tight links join the rates of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records

from .periodic import JobPhase, PeriodicJob

COMPUTING, WAITING, SENDING = range(3)

JOB_ROW = np.dtype(
    [
        ("first_phase", np.int32),
        ("end_phase", np.int32),
        ("first_use", np.int32),
        ("end_use", np.int32),
        ("priority", np.int32),  # 0 goes first
        ("own_weight", np.float64),
        ("n_bytes", np.float64),  # of an iteration
        ("period", np.float64),
        ("tail", np.float64),  # computing after the last phase
        ("start", np.float64),
        ("aligned", np.int32),  # the phase that starts at `offset` if nothing is late
        ("offset", np.float64),
        # what changes
        ("state", np.int32),
        ("phase", np.int32),
        ("is_dirty", np.bool_),  # its rate may be another now
        ("unfrozen", np.bool_),  # while rates are shared: it has none yet
        ("iteration", np.int64),
        ("iteration_start", np.float64),
        ("phase_start", np.float64),
        ("overlap_end", np.float64),  # of the computation beside the phase
        ("communicated", np.float64),  # seconds of this iteration
        ("sent", np.float64),  # bytes of this iteration,
        ("sent_before", np.float64),  # of all iterations before it
        ("left", np.float64),  # bytes of this phase at time `since`
        ("since", np.float64),
        ("rate", np.float64),
        ("own_rate", np.float64),  # of the phase, the most that it may be
        ("weight", np.float64),
        ("own_fair_rate", np.float64),  # own rate per weight
        ("due", np.float64),  # when something happens next
        ("finish", np.float64),  # when the phase ends at this rate
        ("contended", np.float64),  # seconds at less than its own rate
        ("n_adjusted", np.int64),
    ],
    align=True,
)

# Seconds of computing before the phase; bytes of each host, and the most that it sends per second; seconds of computing
# beside the phase.
PHASE_ROW = np.dtype(
    [("gap", np.float64), ("n_bytes", np.float64), ("rate", np.float64), ("overlap", np.float64)], align=True
)

# How many times its rate a job puts on a link.
USE_ROW = np.dtype([("link", np.int32), ("share", np.float64)], align=True)

LINK_ROW = np.dtype(
    [
        ("capacity", np.float64),
        ("first_user", np.int32),
        ("end_user", np.int32),
        ("n_sending", np.int32),
        ("is_tight", np.bool_),
        ("solve", np.int64),  # the last one that reached it
        ("asked", np.float64),  # what the sending jobs would take
        ("since", np.float64),
        ("contended", np.float64),  # seconds in which they ask for more than there is
        ("excess", np.float64),  # bytes, the integral of what they ask for too much
        ("free", np.float64),  # while rates are shared: not yet given away,
        ("weight", np.float64),  # wanted by the unfrozen jobs of a class per unit of fair rate,
        ("n_unfrozen", np.int32),  # how many they are, and
        ("fair_rate", np.float64),  # at which they fill the link
    ],
    align=True,
)


Table = Records


class SharedLinks(NamedTuple):
    """Jobs and the links that they share; `job` and `link` are changed by the kernel."""

    job: Table  # JOB_ROW[n_jobs]
    phase: Table  # PHASE_ROW, by job
    use: Table  # USE_ROW, by job
    link: Table  # LINK_ROW[n_links]
    user: NDArray[np.int32]  # jobs by link
    number: NDArray[np.intp]  # [n_links], of each among the links of the network


def lay_out(
    bandwidth: NDArray[np.float64],
    jobs: Sequence[PeriodicJob],
    loads: NDArray[np.float64],
    starts: NDArray[np.float64],
    weights: NDArray[np.float64],
    priorities: NDArray[np.int32],
) -> SharedLinks:
    """Lay out the tables.

    Parameters
    ----------
    bandwidth : float64[n_links], bytes/s
        Bandwidth of each link of the network.
    jobs : sequence of PeriodicJob
        What runs.
    loads : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.
    starts, weights, priorities : [n_jobs]
        Start, weight and priority of each job.
    """
    most = np.array([job.peak_rate for job in jobs])
    tight = np.flatnonzero(most @ loads > bandwidth * (1 + 1e-9))
    used = (loads[:, tight] > 0) & (most > 0)[:, np.newaxis]
    job, phase = _jobs(jobs)
    job["start"], job["own_weight"], job["priority"] = starts, weights, priorities
    rows, columns = np.nonzero(used)
    use = np.zeros(len(rows), USE_ROW)
    use["link"], use["share"] = columns, loads[rows, tight[columns]]
    _bounds(job, "use", rows)
    link = np.zeros(len(tight), LINK_ROW)
    link["capacity"] = bandwidth[tight]
    columns, user = np.nonzero(used.T)
    _bounds(link, "user", columns)
    return SharedLinks(job, phase, use, link, user.astype(np.int32), tight)


def _bounds(table: Table, name: str, owners: NDArray[np.intp]) -> None:
    """Find the rows of another table, whose owners rise, that belong to each row of this one."""
    table[f"first_{name}"] = np.searchsorted(owners, np.arange(len(table)))
    table[f"end_{name}"] = np.searchsorted(owners, np.arange(len(table)), side="right")


def _jobs(jobs: Sequence[PeriodicJob]) -> tuple[Table, Table]:
    """Lay out the jobs and their phases."""
    job = np.zeros(len(jobs), JOB_ROW)
    rows: list[tuple[float, float, float, float]] = []
    for j, one in enumerate(jobs):
        phases, aligned = _unwrapped(one)
        job["first_phase"][j] = job["phase"][j] = len(rows)
        end = 0.0
        for phase in phases:
            rows.append((max(phase.offset - end, 0.0), phase.n_bytes, phase.rate, phase.overlap))
            end = phase.offset + phase.length
        job["end_phase"][j] = len(rows)
        job["tail"][j] = max(one.period - end, 0.0)
        job["aligned"][j] = job["first_phase"][j] + aligned
        job["offset"][j] = phases[aligned].offset if phases else 0.0
    job["n_bytes"] = [job.n_bytes for job in jobs]
    job["period"] = [job.period for job in jobs]
    return job, np.array(rows, PHASE_ROW)


def _unwrapped(job: PeriodicJob) -> tuple[tuple[JobPhase, ...], int]:
    """Cut a phase at the iteration's end, where it goes on in the next; say which phase begins first by itself."""
    if not job.phases:
        return (), 0
    last = job.phases[-1]
    beyond = last.offset + last.duration - job.period
    if beyond <= 1e-9 * job.period:
        return job.phases, 0
    until_end = last.duration - beyond  # so does the computation beside it
    here = JobPhase(last.offset, until_end, last.rate, min(last.overlap, until_end))
    return (JobPhase(0.0, beyond, last.rate, last.overlap - here.overlap), *job.phases[:-1], here), 1
