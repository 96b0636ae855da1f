"""Gandiva: nobody waits, jobs share GPUs in time slices or side by side."""

from __future__ import annotations

from ..policy import Grant, View, fill, policy


@policy(shares=True, paper="Xiao et al., OSDI 2018: over-subscription, time slices and packing")
def gandiva(view: View) -> list[Grant]:
    """In order of submission; one that finds no free GPUs runs beside a job with as many, the least busy first."""
    grants, free = fill(view, view.states, strict=True)
    granted = {id(grant.state) for grant in grants}
    alone = [grant for grant in grants if grant.state.beside is None]
    alone.sort(key=lambda grant: view.work.models[grant.state.index].busy)
    for state in view.states:
        if id(state) in granted:
            continue
        partner = next((other for other in alone if other.gpus == state.job.gpus), None)
        if partner is not None:
            alone.remove(partner)
            grants.append(Grant(state, state.job.gpus, beside=partner.state))
        elif state.job.gpus <= free:
            grants.append(Grant(state, state.job.gpus))
            free -= state.job.gpus
    return grants
