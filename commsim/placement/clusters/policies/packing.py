"""Policies that pack jobs: Gandiva, Lucid and Muri (shared GPUs), Synergy (CPUs, memory), Lyra (inference hosts)."""

from __future__ import annotations

from dataclasses import replace

from commsim.placement.clusters.policy import Grant, View, fill, policy
from commsim.placement.clusters.state import JobState, side_by_side

# Sum of the GPU's shares up to which two jobs may run side by side: each then keeps 4/5 of its speed (assumed).
MOST = 1.25
# Speed of a job that has its GPUs to itself: two that are no faster together are not paired.
ONE_JOB = 1.0 + 1e-9


@policy(shares=True, paper="Xiao et al., OSDI 2018: over-subscription, time slices and packing")
def gandiva(view: View) -> list[Grant]:
    """In order of submission; a job that finds no free GPUs shares those of a job of its size, the least busy first."""
    grants, free = fill(view, view.states, strict=True)
    granted = {id(grant.state) for grant in grants}
    alone = [grant for grant in grants if grant.state.beside is None]
    alone.sort(key=lambda grant: view.work.models[grant.state.index].busy)
    for state in view.states:
        if id(state) in granted:
            continue
        partner = next((other for other in alone if other.n_gpus == state.job.n_gpus), None)
        if partner is not None:
            alone.remove(partner)
            grants.append(Grant(state, state.job.n_gpus, beside=partner.state))
        elif state.job.n_gpus <= free:
            grants.append(Grant(state, state.job.n_gpus))
            free -= state.job.n_gpus
    return grants


@policy(shares=True, paper="Hu et al., ASPLOS 2023: indolent packing; its limit is assumed")
def lucid(view: View) -> list[Grant]:
    """Shortest remaining job first; a job that finds no free GPUs shares those of the job that it slows least."""
    ordered = sorted(view.states, key=lambda state: state.job.n_gpus * view.remaining(state))
    grants, _ = fill(view, ordered)
    granted = {id(grant.state) for grant in grants}
    alone: dict[int, list[JobState]] = {}  # by their number of GPUs, those that use most of them first
    for grant in sorted(grants, key=lambda grant: view.work.models[grant.state.index].busy)[::-1]:
        if grant.state.beside is None:
            alone.setdefault(grant.n_gpus, []).append(grant.state)
    for state in ordered:
        fitting = alone.get(state.job.n_gpus)
        if id(state) not in granted and fitting and disturbance(view, state, fitting[-1]) <= MOST:
            grants.append(Grant(state, state.job.n_gpus, beside=fitting.pop()))
    return grants


@policy(
    interval=360.0,
    shares=True,
    paper="Zhao et al., SIGCOMM 2022: Muri-S; groups of two, greedy instead of Blossom's matching; interval is assumed",
)
def muri(view: View) -> list[Grant]:
    """Shortest remaining job first; those that find no free GPUs join the job with which both together are fastest."""
    ordered = sorted(view.states, key=lambda state: state.job.n_gpus * view.remaining(state))
    grants, _ = fill(view, ordered)
    granted = {id(grant.state) for grant in grants}
    alone = [grant for grant in grants if grant.state.beside is None]
    waiting = [state for state in ordered if id(state) not in granted]
    together: dict[tuple[str, str, int], float] = {}

    def speed(a: JobState, b: JobState) -> float:
        if not a.job.model or not b.job.model:
            return sum(side_by_side(view.work, a, b))
        key = a.job.model, b.job.model, a.job.n_gpus
        if key not in together:
            together[key] = sum(side_by_side(view.work, a, b))
        return together[key]

    pairs = sorted(
        (-speed(state, other.state), i, j)
        for i, state in enumerate(waiting) for j, other in enumerate(alone) if other.n_gpus == state.job.n_gpus
    )  # fmt: skip
    placed: set[int] = set()
    used: set[int] = set()
    for minus_speed, i, j in pairs:
        if -minus_speed > ONE_JOB and i not in placed and j not in used:
            placed.add(i)
            used.add(j)
            grants.append(Grant(waiting[i], waiting[i].job.n_gpus, beside=alone[j].state))
    return grants


def disturbance(view: View, a: JobState, b: JobState) -> float:
    """Sum of the shares of a GPU that two jobs use while they compute."""
    return view.work.models[a.index].busy + view.work.models[b.index].busy


@policy(tunes_cpu=True, paper="Mohan et al., OSDI 2022: Synergy-TUNE; under first in, first out")
def synergy(view: View) -> list[Grant]:
    """In order of submission, on hosts whose CPUs and memory suffice; jobs that need few give their share away."""
    return fill(view, view.states, strict=True, order="demand")[0]


@policy(interval=300.0, scales=True, borrows=True, paper="Li et al., EuroSys 2023; interval is assumed")
def lyra(view: View) -> list[Grant]:
    """Shortest remaining job first at the least that it runs with; what is left goes to elastic jobs that gain most."""
    unchanged = {id(state) for state in view.running}
    grants = [Grant(state, len(state.gpus)) for state in view.running]
    free = view.n_gpus - sum(grant.n_gpus for grant in grants)
    others = [state for state in view.states if id(state) not in unchanged]
    for state in sorted(others, key=lambda s: (not s.running, view.remaining(s))):
        if state.job.min_gpus <= free:
            grants.append(Grant(state, state.job.min_gpus))
            free -= state.job.min_gpus
    elastic = [i for i, grant in enumerate(grants) if id(grant.state) not in unchanged]
    for i in sorted(elastic, key=lambda i: -_saved(view, grants[i].state)):
        more = min(free, grants[i].state.job.max_gpus - grants[i].n_gpus)
        grants[i] = replace(grants[i], n_gpus=grants[i].n_gpus + more)
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
