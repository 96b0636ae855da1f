"""Policies that order a queue: FIFO, backfilling, SJF, SRTF; attained service (Tiresias, Gandiva-fair); deadlines."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from commsim.placement.clusters.policy import Grant, View, fill, policy
from commsim.placement.clusters.state import JobState

# GPU seconds at which a job sinks into the next queue (assumed: a GPU hour, ten GPU hours).
THRESHOLDS = (3600.0, 36000.0)


@policy()
def fifo(view: View) -> list[Grant]:
    """In order of submission, without overtaking and without preemption."""
    return fill(view, view.states, strict=True)[0]


@policy(paper="Lifka, JSSPP 1995: EASY; durations are known, and run without slow-downs")
def backfill(view: View) -> list[Grant]:
    """In order of submission; a later job may overtake where it does not delay the first one that waits."""
    grants, free = fill(view, view.states, strict=True)
    served = {id(grant.state) for grant in grants}
    waiting = [state for state in view.states if id(state) not in served]
    if not waiting:
        return grants
    begins, spare = _reservation(view, grants, free, waiting[0].job.n_gpus)
    for state in waiting[1:]:
        gpus = state.job.n_gpus
        if gpus > free:
            continue
        ends_before = view.remaining(state) <= begins
        if ends_before or gpus <= spare:
            grants.append(Grant(state, gpus))
            free -= gpus
            spare -= 0 if ends_before else gpus
    return grants


def _reservation(view: View, grants: list[Grant], free: int, wanted: int) -> tuple[float, int]:
    """Return after how many seconds so many GPUs are free at once, and how many others are free then."""
    for left, gpus in sorted((view.remaining(grant.state), grant.n_gpus) for grant in grants):
        free += gpus
        if free >= wanted:
            return left, free - wanted
    return 0.0, 0


@policy(paper="shortest job first; durations are known, and run without slow-downs")
def sjf(view: View) -> list[Grant]:
    """Shortest job first, by the time that it takes without others; without preemption."""
    return fill(view, view.states, key=lambda state: state.ideal)[0]


@policy(interval=300.0, paper="shortest remaining time first; interval is assumed")
def srtf(view: View) -> list[Grant]:
    """Shortest remaining time first; a job that comes with less to do takes the GPUs of others at the next interval."""
    return fill(view, view.states, key=view.remaining)[0]


@policy(interval=300.0, paper="Gu et al., NSDI 2019; thresholds and interval are assumed")
def tiresias(view: View) -> list[Grant]:
    """Least GPU time so far first, first come first served within a queue; only skewed models insist on few hosts."""
    grants = fill(view, view.states, key=queue)[0]
    return [
        grant
        if grant.state.running or grant.n_gpus == 1 or view.work.models[grant.state.index].skewed
        else replace(grant, order="fragments")
        for grant in grants
    ]


def queue(state: JobState) -> int:
    """Return the queue that a job is in; 0 is served first."""
    return bisect_right(THRESHOLDS, state.attained)


@policy(interval=60.0, paper="Chaudhary et al., EuroSys 2020: Gandiva-fair; each job a user; without trading GPU types")
def gandiva_fair(view: View) -> list[Grant]:
    """Least GPU time so far over its tickets first, in quanta of a minute; a job has as many tickets as GPUs."""
    return fill(view, view.states, key=lambda state: state.attained / state.job.n_gpus)[0]


@policy(interval=300.0, paper="Gao et al., SoCC 2021; earliest deadline first instead of its integer program")
def chronus(view: View) -> list[Grant]:
    """Jobs that can still meet their deadline, earliest first; then the shortest of the others."""
    return fill(view, view.states, key=lambda state: _rank(view, state))[0]


def _rank(view: View, state: JobState) -> tuple[bool, float]:
    deadline, remaining = state.job.deadline, view.remaining(state)
    hopeful = deadline is not None and view.now + remaining <= deadline
    return not hopeful, deadline if hopeful and deadline is not None else remaining
