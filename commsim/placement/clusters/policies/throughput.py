"""Policies of throughput and fairness: Gavel (types of GPUs), Pollux (goodput), Themis (finish-time fairness)."""

from __future__ import annotations

import heapq

from commsim.placement.clusters.policy import Grant, View, fill, policy
from commsim.placement.clusters.state import JobState

# Times the GPUs that it asked for a job may get, if its trace does not allow more.
MOST = 2


@policy(interval=360.0, scales=True, paper="Narayanan et al., OSDI 2020; greedy instead of its linear program")
def gavel(view: View) -> list[Grant]:
    """Least progress first; each gets the type of GPU on which it gains more than the others would."""
    free = dict.fromkeys(view.machines.types, 0)
    for host, kind in enumerate(view.machines.types):
        free[kind] += int(view.usable[host])
    largest = max(free.values())
    grants = [Grant(state, len(state.gpus)) for state in view.running]
    for state in view.running:
        for host, n in state.spread:
            free[view.machines.types[host]] -= n
    unchanged = {id(state) for state in view.running}
    waiting = sorted((s for s in view.states if id(s) not in unchanged), key=lambda s: _rank(view, s))
    chosen = _fitting(waiting, sum(free.values()))
    mean = {kind: _mean_speed(view, chosen, kind) for kind in free}
    ranked = [(speed(view, s, kind) / mean[kind], kind, s) for s in chosen for kind in free]
    ranked.sort(key=lambda row: (-row[0], row[2].index, row[1]))
    placed: set[int] = set()
    for _, kind, state in ranked:
        if state.index not in placed and state.job.n_gpus <= free[kind]:
            free[kind] -= state.job.n_gpus
            placed.add(state.index)
            grants.append(Grant(state, state.job.n_gpus, kind))
    for state in chosen:  # one that is too large for any type runs on several, as fast as the slowest
        if state.index not in placed and state.job.n_gpus <= sum(free.values()) and state.job.n_gpus > largest:
            grants.append(Grant(state, state.job.n_gpus))
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
    rate = view.work.rate(state.index, state.job.n_gpus, 0, kind)
    return rate / view.work.rate(state.index, state.job.n_gpus)


def _fitting(states: list[JobState], free: int) -> list[JobState]:
    chosen = []
    for state in states:
        if state.job.n_gpus <= free:
            chosen.append(state)
            free -= state.job.n_gpus
    return chosen


def _mean_speed(view: View, states: list[JobState], kind: str) -> float:
    return sum(speed(view, state, kind) for state in states) / max(len(states), 1) or 1.0


@policy(interval=600.0, scales=True, paper="Qiao et al., OSDI 2021; greedy instead of genetic")
def pollux(view: View) -> list[Grant]:
    """One GPU for each job in order of submission, then doublings where they add most goodput per GPU."""
    gpus = {state.index: len(state.gpus) for state in view.running}
    free = view.n_gpus - sum(gpus.values())
    open_to_change = [state for state in view.states if state.index not in gpus][:free]
    gpus |= {state.index: 1 for state in open_to_change}
    free -= len(open_to_change)
    queue = [(-_gain(view, state, 1), state.index, state) for state in open_to_change]
    heapq.heapify(queue)
    while queue:
        gain, _, state = heapq.heappop(queue)
        now = gpus[state.index]
        if gain >= 0 or now > free or 2 * now > max(MOST * state.job.n_gpus, state.job.max_gpus):
            continue
        gpus[state.index] += now
        free -= now
        heapq.heappush(queue, (-_gain(view, state, 2 * now), state.index, state))
    return [Grant(state, gpus[state.index]) for state in view.states if state.index in gpus]


def _gain(view: View, state: JobState, gpus: int) -> float:
    """Speed-up over what the job asked for, per GPU, that twice as many GPUs add."""
    rate, more = (view.work.rate(state.index, n) for n in (gpus, 2 * gpus))
    return (more - rate) / view.work.rate(state.index, state.job.n_gpus) / gpus


@policy(interval=600.0, paper="Mahajan et al., NSDI 2020; lease of 10 minutes as in CASSINI")
def themis(view: View) -> list[Grant]:
    """GPUs whose lease ends go to the jobs that are farthest behind their fair finish time."""
    return fill(view, view.states, key=lambda state: -unfairness(view, state))[0]


def unfairness(view: View, state: JobState) -> float:
    """Finish time if it ran from now on, over that on an equal share of the cluster to itself (rho)."""
    shared = view.now - state.job.submit + view.remaining(state)
    share = max(1.0, len(view.states) * state.job.n_gpus / view.n_gpus)
    return shared / (state.ideal * share)
