"""Gavel: which type of GPU a job gets depends on how much it gains there."""

from __future__ import annotations

from ..policy import Grant, View, policy
from ..state import JobState


@policy(interval=360.0, scales=True, paper="Narayanan et al., OSDI 2020; greedy instead of its linear program")
def gavel(view: View) -> list[Grant]:
    """Least progress first; each gets the type of GPU on which it gains more than the others would."""
    free = dict.fromkeys(view.machines.types, 0)
    for host, kind in enumerate(view.machines.types):
        free[kind] += int(view.usable[host])
    largest = max(free.values())
    grants = [Grant(state, len(state.gpus)) for state in view.kept]
    for state in view.kept:
        for host, n in state.spread:
            free[view.machines.types[host]] -= n
    kept = {id(state) for state in view.kept}
    waiting = sorted((s for s in view.states if id(s) not in kept), key=lambda s: _rank(view, s))
    chosen = _fitting(waiting, sum(free.values()))
    mean = {kind: _mean_speed(view, chosen, kind) for kind in free}
    ranked = [(speed(view, s, kind) / mean[kind], kind, s) for s in chosen for kind in free]
    ranked.sort(key=lambda row: (-row[0], row[2].index, row[1]))
    placed: set[int] = set()
    for _, kind, state in ranked:
        if state.index not in placed and state.job.gpus <= free[kind]:
            free[kind] -= state.job.gpus
            placed.add(state.index)
            grants.append(Grant(state, state.job.gpus, kind))
    for state in chosen:  # one that is too large for any type runs on several, as fast as the slowest
        if state.index not in placed and state.job.gpus <= sum(free.values()) and state.job.gpus > largest:
            grants.append(Grant(state, state.job.gpus))
            break
    return grants


def progress(view: View, state: JobState) -> float:
    """Share of the work that is done, over that which would be done had it never waited."""
    return (1 - state.left) * state.ideal / max(view.now - state.job.submit, 1e-9)


def _rank(view: View, state: JobState) -> tuple[float, bool]:
    """Order by progress, in steps of a tenth, so that jobs do not take turns in every round."""
    return round(progress(view, state), 1), not state.running


def speed(view: View, state: JobState, kind: str) -> float:
    """Of a job on a type of GPU, over that on the reference."""
    rate = view.work.rate(state.index, state.job.gpus, 0, kind)
    return rate / view.work.rate(state.index, state.job.gpus)


def _fitting(states: list[JobState], free: int) -> list[JobState]:
    chosen = []
    for state in states:
        if state.job.gpus <= free:
            chosen.append(state)
            free -= state.job.gpus
    return chosen


def _mean_speed(view: View, states: list[JobState], kind: str) -> float:
    return sum(speed(view, state, kind) for state in states) / max(len(states), 1) or 1.0
