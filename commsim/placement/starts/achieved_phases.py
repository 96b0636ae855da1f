"""Achieved phases: what a job's phases and its iteration take alone on its own path."""

from __future__ import annotations

import itertools
from dataclasses import replace

from commsim.placement.starts.job_uses import OwnPath
from commsim.training.sharing.periodic import JobPhase, PeriodicJob

# Part by which a rate may exceed a link and still count as its capacity.
_SAME = 1e-9


def achieved(job: PeriodicJob, part: float | OwnPath) -> PeriodicJob:
    """Return a job with the phases that its path delivers when no other job sends.

    A phase that asks for d times what the path has takes d times as long at the path's rate. What follows comes later
    by what the computation beside the phase does not hide, and the iteration is that much longer.

    Parameters
    ----------
    part : float, s/byte, or OwnPath
        Factor that turns the job's rate into a share of its fullest link; or what each phase needs, where they have
        different groups. Phases that stay inside of machines take their time as computation does.
    """
    if isinstance(part, tuple):
        return _on_own_path(job, part)
    slower = [rate if (rate := phase.rate * part) > 1 + _SAME else 1.0 for phase in job.phases]
    if all(by == 1.0 for by in slower):
        return job
    late = [_phase_late(phase, by) for phase, by in zip(job.phases, slower, strict=True)]
    before = itertools.accumulate(late[:-1], initial=_late_at_start(job, slower[-1]))
    phases = tuple(
        replace(phase, offset=phase.offset + later, duration=phase.duration * by, rate=phase.rate / by)
        for phase, by, later in zip(job.phases, slower, before, strict=True)
    )
    return replace(job, period=job.period + sum(late), phases=phases)


def _on_own_path(job: PeriodicJob, path: OwnPath) -> PeriodicJob:
    phases, late = [], 0.0
    for phase, (part, rate) in zip(job.phases, path, strict=True):
        duration = phase.n_bytes * part
        if rate:
            phases.append(replace(phase, offset=phase.offset + late, duration=duration, rate=rate))
        late += max(duration - phase.overlap, 0.0)
    return replace(job, period=job.period + late, phases=tuple(phases))


def _phase_late(phase: JobPhase, by: float) -> float:
    """Seconds by which what follows a phase comes later; a period of demand is without any time of its bytes."""
    if phase.is_demand:
        return max(phase.duration * by - phase.overlap, 0.0)
    return _late(phase.duration, phase.overlap, by)


def _late(duration: float, overlap: float, by: float) -> float:
    """Seconds by which what follows a phase comes later when the phase takes `by` times as long."""
    return max(duration * by, overlap) - max(duration, overlap)


def _late_at_start(job: PeriodicJob, by: float) -> float:
    """Seconds by which the end of a phase that goes on in the next iteration is later there."""
    last: JobPhase = job.phases[-1]
    beyond = last.offset + last.duration - job.period
    if beyond <= _SAME * job.period:
        return 0.0
    return _late(beyond, max(last.overlap - (last.duration - beyond), 0.0), by)
