"""From periodic jobs to the tables that the kernel of shared links plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .periodic import PeriodicJob, Phase
from .shared_links_state import JOB_ROW, LINK_ROW, PHASE_ROW, USE_ROW

Table = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """All that the kernel changes, and which links of the network its links are.

    Parameters
    ----------
    job, phase, use, link : structured arrays
        Of shared_links_state.
    user : int32[n_uses]
        Jobs by link.
    links : int[n_kept]
        Links of the network.
    """

    job: Table
    phase: Table
    use: Table
    link: Table
    user: NDArray[np.int32]
    links: NDArray[np.intp]

    @property
    def rows(self) -> tuple[Table, Table, Table, Table, Table]:
        """What the kernel takes."""
        return self.job, self.phase, self.use, self.link, self.user


def lay_out(
    bandwidth: NDArray[np.float64],
    jobs: Sequence[PeriodicJob],
    loads: NDArray[np.float64],
    starts: NDArray[np.float64],
    weights: NDArray[np.float64],
    priorities: NDArray[np.int32],
) -> Tables:
    """Lay out the tables.

    Parameters
    ----------
    bandwidth : float64[n_links], bytes/s
        Of all links of the network.
    jobs : sequence of PeriodicJob
        What runs.
    loads : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.
    starts, weights, priorities : [n_jobs]
        Of each job.
    """
    most = np.array([max((phase.rate for phase in job.phases), default=0.0) for job in jobs])
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
    return Tables(job, phase, use, link, user.astype(np.int32), tight)


def _bounds(table: Table, name: str, owners: NDArray[np.intp]) -> None:
    """Say which rows of another table, whose owners rise, belong to each row of this one."""
    table[f"first_{name}"] = np.searchsorted(owners, np.arange(len(table)))
    table[f"end_{name}"] = np.searchsorted(owners, np.arange(len(table)), side="right")


def _jobs(jobs: Sequence[PeriodicJob]) -> tuple[Table, Table]:
    """Lay out the jobs and their phases."""
    job = np.zeros(len(jobs), JOB_ROW)
    rows: list[tuple[float, float, float]] = []
    for j, one in enumerate(jobs):
        phases, aligned = _unwrapped(one)
        job["first_phase"][j] = job["phase"][j] = len(rows)
        end = 0.0
        for phase in phases:
            rows.append((max(phase.offset - end, 0.0), phase.n_bytes, phase.rate))
            end = phase.offset + phase.duration
        job["end_phase"][j] = len(rows)
        job["tail"][j] = max(one.period - end, 0.0)
        job["aligned"][j] = job["first_phase"][j] + aligned
        job["offset"][j] = phases[aligned].offset if phases else 0.0
    job["n_bytes"] = [one.n_bytes for one in jobs]
    job["period"] = [one.period for one in jobs]
    return job, np.array(rows, PHASE_ROW)


def _unwrapped(job: PeriodicJob) -> tuple[tuple[Phase, ...], int]:
    """Cut a phase at the iteration's end, where it goes on in the next; say which phase begins first by itself."""
    if not job.phases:
        return (), 0
    last = job.phases[-1]
    beyond = last.offset + last.duration - job.period
    if beyond <= 1e-9 * job.period:
        return job.phases, 0
    here = Phase(last.offset, last.duration - beyond, last.rate)
    return (Phase(0.0, beyond, last.rate), *job.phases[:-1], here), 1
