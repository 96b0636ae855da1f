"""Themis: finish-time fairness, by leases."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy
from ..state import JobState


@policy(interval=600.0, paper="Mahajan et al., NSDI 2020; lease of 10 minutes as in CASSINI")
def themis(view: View) -> list[Grant]:
    """GPUs whose lease ends go to the jobs that are farthest behind their fair finish time."""
    return fill(view, sorted(view.states, key=lambda state: -unfairness(view, state)))[0]


def unfairness(view: View, state: JobState) -> float:
    """Finish time if it ran from now on, over that on an equal share of the cluster alone (rho)."""
    shared = view.now - state.job.submit + view.remaining(state)
    share = max(1.0, len(view.states) * state.job.gpus / view.n_gpus)
    return shared / (state.ideal * share)
