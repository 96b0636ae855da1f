"""Jobs that meet on links as arrays, for the kernels that find what they lose there."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.starts.circles import QUANTUM, require_counted
from commsim.placement.starts.phase_edges import MAX_PIECES
from commsim.training.sharing.periodic import PeriodicJob, with_starts

from .meeting_kernel import JOB_ROW, MAX_STATES, PHASE_ROW, MetJobs

LONGEST = 2.4  # seconds of the longest circle of a cluster, where many are searched
_DRAWN = 128  # jobs of one link whose states are drawn independently


def met_jobs(jobs: Sequence[PeriodicJob], quantum: float = QUANTUM, longest: float = LONGEST) -> MetJobs:
    """Return jobs as the kernels see them; a fixed start is in the offsets of their phases.

    Parameters
    ----------
    quantum, longest : float, s
        What periods are rounded to, and the longest circle.

    Raises
    ------
    InputError
        If an iteration is too long to be counted, such as that of bytes over a link that is much too slow.
    """
    row, phases, first = np.zeros(len(jobs), JOB_ROW), [], 0
    for j, job in enumerate(with_starts(jobs)):
        require_counted(job.period, quantum, 2**53)
        whole = max(1, round(job.period / quantum))
        longer = whole * quantum / job.period
        end = first + len(job.phases)
        row[j] = first, end, job.period, whole, job.n_bytes / job.period, job.peak_rate
        phases += [(p.offset * longer, p.duration * longer, p.rate, p.duration, p.length) for p in job.phases]
        first = end
    place, moment = _draws()
    return MetJobs(row, np.array(phases, PHASE_ROW), np.zeros(len(jobs)), place, moment, quantum, longest)


def shifted(met: MetJobs, starts: NDArray[np.float64]) -> MetJobs:
    """Return jobs that start later, at `starts` in s, which are stretched with the rounded periods as phases are."""
    return met._replace(shift=starts * (met.row["whole"] * met.quantum / met.row["period"]))


def with_more(met: MetJobs, jobs: Sequence[PeriodicJob]) -> MetJobs:
    """Return jobs as the kernels see them, with some more after them."""
    more = met_jobs(jobs)
    row = more.row.copy()
    row["first_phase"] += len(met.phase)
    row["end_phase"] += len(met.phase)
    shift = np.zeros(len(met.row) + len(jobs))
    return met._replace(row=np.concatenate((met.row, row)), phase=np.concatenate((met.phase, more.phase)), shift=shift)


@functools.cache
def _draws() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw states of jobs that are too many to be counted, and moments of pieces."""
    draw = np.random.default_rng(0)
    place = np.array([(draw.permutation(MAX_STATES) + 0.5) / MAX_STATES for _ in range(_DRAWN)])
    return place, np.random.default_rng(0).random(MAX_PIECES)
