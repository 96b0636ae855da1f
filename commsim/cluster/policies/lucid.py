"""Lucid: packs jobs that hardly disturb each other, stops nobody."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy
from ..state import JobState

MOST = 1.25
"""Sum of the GPU's shares up to which two jobs may run side by side: each then keeps 4/5 of its speed (assumed)."""


@policy(shares=True, paper="Hu et al., ASPLOS 2023: indolent packing; its limit is assumed")
def lucid(view: View) -> list[Grant]:
    """Shortest remaining job first; one that finds no free GPUs joins the job that it disturbs least."""
    ordered = sorted(view.states, key=lambda state: state.job.gpus * view.remaining(state))
    grants, _ = fill(view, ordered)
    granted = {id(grant.state) for grant in grants}
    alone = [grant for grant in grants if grant.state.beside is None]
    for state in ordered:
        if id(state) in granted:
            continue
        fitting = [o for o in alone if o.gpus == state.job.gpus and disturbance(view, state, o.state) <= MOST]
        if fitting:
            partner = min(fitting, key=lambda other: disturbance(view, state, other.state))
            alone.remove(partner)
            grants.append(Grant(state, state.job.gpus, beside=partner.state))
    return grants


def disturbance(view: View, a: JobState, b: JobState) -> float:
    """Sum of the shares of a GPU that two jobs use while they compute."""
    return view.work.models[a.index].busy + view.work.models[b.index].busy
