"""Policies that choose how many GPUs each job gets: AFS, Optimus (completion time), ElasticFlow (deadlines).

All three hand out one GPU after the other. A job gets at most twice what it asks for, unless its trace allows more.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from commsim.placement.clusters.policy import Grant, View, policy
from commsim.placement.clusters.state import JobState

from .throughput import MOST


class Shares:
    """GPUs of each job while they are handed out; those of kept jobs stay as they are.

    Parameters
    ----------
    view : View
        The cluster.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.gpus = {state.index: len(state.gpus) for state in view.running}
        self.free = view.n_gpus - sum(self.gpus.values())
        self.open = [state for state in view.states if state.index not in self.gpus]

    def give(self, state: JobState, n: int = 1) -> None:
        """Give a job more GPUs."""
        self.gpus[state.index] = self.gpus.get(state.index, 0) + n
        self.free -= n

    def may_grow(self, state: JobState) -> bool:
        """Whether a job may get one more."""
        return self.free > 0 and self.gpus.get(state.index, 0) < self.most(state)

    def most(self, state: JobState) -> int:
        """GPUs that a job may have."""
        return max(MOST * state.job.n_gpus, state.job.max_gpus)

    def rate(self, state: JobState, more: int = 0) -> float:
        """Return the iterations per second of a job with its GPUs and `more`; 0 without any."""
        n = self.gpus.get(state.index, 0) + more
        return self._view.work.rate(state.index, n) if n else 0.0

    def left(self, state: JobState, more: int = 0) -> float:
        """Seconds until a job ends with its GPUs and `more`; infinite without any."""
        rate = self.rate(state, more)
        return state.left * state.total / rate if rate else math.inf

    def grow_by(self, gain: Callable[[JobState], float]) -> None:
        """Hand out what is free, each GPU to the job that has some and gains most; none to a job that gains nothing."""
        queue = [(-gain(state), state.index, state) for state in self.open if state.index in self.gpus]
        heapq.heapify(queue)
        while queue and self.free:
            minus_gain, _, state = heapq.heappop(queue)
            if minus_gain < 0 and self.may_grow(state):
                self.give(state)
                heapq.heappush(queue, (-gain(state), state.index, state))

    def grants(self) -> list[Grant]:
        """Return what all jobs have."""
        return [Grant(s, self.gpus[s.index]) for s in self._view.states if s.index in self.gpus]


@policy(interval=600.0, scales=True, paper="Hwang et al., NSDI 2021: AFS-L; interval is assumed")
def afs(view: View) -> list[Grant]:
    """One GPU for each job, short ones first; then each to the job for which it adds most, long against short."""
    from commsim.placement.clusters.afs_kernel import hand_out

    shares = Shares(view)
    for state in sorted(shares.open, key=lambda s: (view.remaining(s) * s.job.n_gpus, s.index))[: shares.free]:
        shares.give(state)
    open_to_change = [state for state in shares.open if state.index in shares.gpus]
    if open_to_change and shares.free:
        rates = [view.work.rates(state.index, shares.most(state)) for state in open_to_change]
        gpus = np.array([shares.gpus[state.index] for state in open_to_change], np.int64)
        work = np.array([state.left * state.total for state in open_to_change])
        first = np.cumsum([0, *map(len, rates)], dtype=np.int64)
        hand_out(np.concatenate(rates), first, work, gpus, shares.free)
        shares.gpus |= {state.index: n for state, n in zip(open_to_change, gpus.tolist(), strict=True)}
    return shares.grants()


@policy(interval=600.0, scales=True, paper="Peng et al., EuroSys 2018; rings in place of parameter servers")
def optimus(view: View) -> list[Grant]:
    """One GPU for each job in order of submission; then each to the job that ends earliest for it."""
    shares = Shares(view)
    for state in shares.open[: shares.free]:
        shares.give(state)
    shares.grow_by(lambda state: shares.left(state) - shares.left(state, 1))
    return shares.grants()


@policy(interval=300.0, scales=True, paper="Gu et al., ASPLOS 2023; greedy, no job is refused; interval is assumed")
def elasticflow(view: View) -> list[Grant]:
    """Earliest deadline first, each with the fewest GPUs that meet it; the rest where it adds most per GPU."""
    shares = Shares(view)
    with_deadline = [
        (state.job.deadline, state.index, state) for state in shares.open if state.job.deadline is not None
    ]
    for deadline, _, state in sorted(with_deadline, key=lambda row: row[:2]):
        least = _least_share(shares, state, deadline - view.now)
        if least is not None and least <= shares.free:
            shares.give(state, least)
    for state in sorted(shares.open, key=view.remaining):  # without a deadline, or one that cannot be met
        if state.index not in shares.gpus and shares.free:
            shares.give(state)
    shares.grow_by(lambda state: shares.rate(state, 1) / shares.rate(state) - 1.0)
    return shares.grants()


def _least_share(shares: Shares, state: JobState, within: float) -> int | None:
    """Fewest GPUs with which a job ends within so many seconds; None if no number does."""
    most = min(shares.free, shares.most(state))
    return next((n for n in range(1, most + 1) if shares.left(state, n) <= within), None)
