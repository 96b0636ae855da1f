"""Lyra: training scales with what it has, and borrows idle inference servers."""

from __future__ import annotations

from dataclasses import replace

from ..policy import Grant, View, policy
from ..state import JobState


@policy(interval=300.0, scales=True, borrows=True, paper="Li et al., EuroSys 2023; interval is assumed")
def lyra(view: View) -> list[Grant]:
    """Shortest remaining job first at the least that it runs with; what is left goes to elastic jobs that gain most."""
    kept = {id(state) for state in view.kept}
    grants = [Grant(state, len(state.gpus)) for state in view.kept]
    free = view.n_gpus - sum(grant.gpus for grant in grants)
    others = [state for state in view.states if id(state) not in kept]
    for state in sorted(others, key=lambda s: (not s.running, view.remaining(s))):
        if state.job.min_gpus <= free:
            grants.append(Grant(state, state.job.min_gpus))
            free -= state.job.min_gpus
    elastic = [i for i, grant in enumerate(grants) if id(grant.state) not in kept]
    for i in sorted(elastic, key=lambda i: -_saved(view, grants[i].state)):
        more = min(free, grants[i].state.job.max_gpus - grants[i].gpus)
        grants[i] = replace(grants[i], gpus=grants[i].gpus + more)
        free -= more
    return grants


def _saved(view: View, state: JobState) -> float:
    """Seconds that the job finishes earlier for each GPU that it gets beyond the least."""
    least, most = state.job.min_gpus, state.job.max_gpus
    if most == least:
        return 0.0
    work = state.left * state.total
    slow, fast = (work / view.work.rate(state.index, gpus) for gpus in (least, most))
    return (slow - fast) / (most - least)
