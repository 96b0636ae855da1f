"""Pollux: as many GPUs for each job as raise goodput most."""

from __future__ import annotations

import heapq

from ..policy import Grant, View, policy
from ..state import JobState

MOST = 2
"""Times the GPUs that it asked for a job may get, if its trace does not allow more."""


@policy(interval=600.0, scales=True, paper="Qiao et al., OSDI 2021; greedy instead of genetic")
def pollux(view: View) -> list[Grant]:
    """One GPU for each job in order of submission, then doublings where they add most goodput per GPU."""
    gpus = {state.index: len(state.gpus) for state in view.kept}
    free = view.n_gpus - sum(gpus.values())
    open_to_change = [state for state in view.states if state.index not in gpus][:free]
    gpus |= {state.index: 1 for state in open_to_change}
    free -= len(open_to_change)
    queue = [(-_gain(view, state, 1), state.index, state) for state in open_to_change]
    heapq.heapify(queue)
    while queue:
        gain, _, state = heapq.heappop(queue)
        now = gpus[state.index]
        if gain >= 0 or now > free or 2 * now > max(MOST * state.job.gpus, state.job.max_gpus):
            continue
        gpus[state.index] += now
        free -= now
        heapq.heappush(queue, (-_gain(view, state, 2 * now), state.index, state))
    return [Grant(state, gpus[state.index]) for state in view.states if state.index in gpus]


def _gain(view: View, state: JobState, gpus: int) -> float:
    """Speed-up over what the job asked for, per GPU, that twice as many GPUs add."""
    rate, more = (view.work.rate(state.index, n) for n in (gpus, 2 * gpus))
    return (more - rate) / view.work.rate(state.index, state.job.gpus) / gpus
