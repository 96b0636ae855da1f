"""Packed, balanced, spread, random and Tiresias: each job by itself, the largest first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commsim.training.sharing.periodic import PeriodicJob

from . import placement_strategy
from .free_gpus import FreeGpus, Plan, unplaced

# Skew from which Tiresias consolidates a job: our choice, its threshold is not published.
SKEWED = 0.5


@placement_strategy
def packed(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Largest job first, each in the smallest group of hosts that has room."""
    return {i: free.take_near(jobs[i], rng) for i in unplaced(jobs, rng)}


@placement_strategy
def spread(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Each job over all racks in turn, and within a rack over its hosts."""
    return {i: free.take_far(jobs[i], rng) for i in unplaced(jobs, rng)}


@placement_strategy
def balanced(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Largest job first, in equal parts on the fewest racks with room for them: 8 and 8, not 15 and 1."""
    return {i: free.take_even(jobs[i], rng) for i in unplaced(jobs, rng)}


@placement_strategy
def random(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """GPUs drawn at random."""
    drawn = rng or np.random.default_rng(0)
    return {i: free.take_any(jobs[i], drawn) for i in unplaced(jobs, rng)}


@placement_strategy
def tiresias(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Consolidates jobs with a skewed model (one phase sends most of the bytes); the others take leftover GPUs.

    References
    ----------
    Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning", NSDI 2019.
    """
    waiting = unplaced(jobs, rng)
    plan = {i: free.take_near(jobs[i], rng) for i in waiting if _skew(jobs[i]) > SKEWED}
    return plan | {i: free.take_leftovers(jobs[i], rng) for i in waiting if i not in plan}


def _skew(job: PeriodicJob) -> float:
    sent = [phase.n_bytes for phase in job.phases]
    return max(sent) / sum(sent) if sent else 0.0
