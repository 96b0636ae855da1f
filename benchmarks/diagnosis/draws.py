"""Faults drawn from the model, with noise: how often each is found again, and how often nothing could find it.

A fault is drawn by its likelihood beforehand: a machine, a cause, one of its forms. Another cause may have the same
times at every size, which no reading of the times tells from it: the share of draws without such a twin bounds what can
be found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from commsim.diagnosis.causes.all_faults import FaultTimes, fault_times
from commsim.diagnosis.causes.explain import rank_causes
from commsim.diagnosis.causes.ground import Ground, ground_of
from commsim.diagnosis.causes.labels import CAUSES
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.nccl.error_model import ErrorModel
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.build import plan_collective
from commsim.prediction.read import scenario_of

MACHINES = (
    "hgx-h100@star:machines=2", "hgx-h100@star:machines=8", "abci-a100@star:machines=4", "hgx-a100@star:machines=2",
    "alps@star:machines=4", "hgx-b200@star:machines=4", "p5@star:machines=2", "hgx-h100", "rtx-pro-6000",
)  # fmt: skip
SIZES = [2.0**k for k in range(10, 34)]
NOISE = 0.07
# Two faults are twins where the root of the mean square of the logarithm of their ratio is less, which is within noise.
TWIN = NOISE / 2


@dataclass(slots=True)
class Drawn:
    """Counts over draws.

    Parameters
    ----------
    n, first, third : int
        Draws; those whose cause is first; those where it is among three.
    apart, first_apart : int
        Draws of faults without a twin, and those of them that are first.
    confused : counter of (str, str)
        Cause and what was first instead.
    """

    n: int = 0
    first: int = 0
    third: int = 0
    apart: int = 0
    first_apart: int = 0
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)


def draw(n: int, seed: int = 1, only: str = "") -> Drawn:
    """Draw faults and rank their causes.

    Parameters
    ----------
    n : int
        Draws.
    seed : int
        Seed.
    only : str
        Beginning of the text of the faults that are drawn; empty for all.
    """
    random, found = np.random.default_rng(seed), Drawn()
    places = [_place(topology) for topology in MACHINES]
    places = [place for place in places if any(one.text.startswith(only) for one in place[2])]
    for _ in range(n):
        ground, error, faults = places[random.integers(len(places))]
        fault = _drawn([one for one in faults if one.text.startswith(only)], random)
        times = fault.times * np.exp(random.normal(0, NOISE, len(SIZES)))
        whole = np.ones(len(SIZES), np.bool_)
        causes = rank_causes(ground, Rows(np.array(SIZES), times, whole, ~whole), error)
        labels = [one.label for one in causes]
        is_apart = not any(_are_twins(one, fault) for one in faults)
        found.n += 1
        found.first += labels[0] == fault.label
        found.third += fault.label in labels[:3]
        found.apart += is_apart
        found.first_apart += is_apart and labels[0] == fault.label
        if labels[0] != fault.label:
            found.confused[fault.label, labels[0]] += 1
    return found


def _place(topology: str) -> tuple[Ground, ErrorModel, list[FaultTimes]]:
    plan = plan_collective(scenario_of("nccl_all_reduce", topology))
    assert isinstance(plan, NcclPlan)
    ground = ground_of(plan.launch, plan.schedule.n_ranks)
    return ground, errors_of_plan(plan), fault_times(ground, SIZES, ground.times(SIZES))


def _drawn(faults: list[FaultTimes], random: np.random.Generator) -> FaultTimes:
    labels = sorted({one.label for one in faults})
    prior = np.array([CAUSES[label].prior for label in labels])
    label = labels[random.choice(len(labels), p=prior / prior.sum())]
    own = [one for one in faults if one.label == label]
    weights = np.array([one.weight for one in own])
    return own[random.choice(len(own), p=weights / weights.sum())]


def _are_twins(one: FaultTimes, other: FaultTimes) -> bool:
    apart = np.log(one.times / other.times)
    return one.label != other.label and float(np.sqrt((apart**2).mean())) < TWIN
