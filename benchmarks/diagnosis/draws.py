"""Faults drawn from the model, with noise: how often each is found again, and how often nothing could find it.

A fault is drawn by its likelihood beforehand: a machine, a cause, one of its forms, which brings the spread of its rows
that it is told by (congestion is unsteady). Another cause may have the same
times at every size, which no reading of the times tells from it: the share of draws without such a twin bounds what can
be found. Of those the answer is "nothing distinguishes", and it is counted how often the cause is among those named.

What is missing to that bound is found by taking the model's errors for a part of what they are, and by other noise. How
right the stated likelihoods are is seen beside it: the mean of the first is what should be found.

The bound of any method: a reader who knows the noise, that the model is exact, how likely each fault is to be drawn,
and that no table is healthy takes the cause with the largest probability. Of a real log nobody knows the first two.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.diagnosis.causes.all_faults import FaultTimes, predict_faults
from commsim.diagnosis.causes.beforehand import weight_on
from commsim.diagnosis.causes.explain import rank_causes
from commsim.diagnosis.causes.ground import Ground, ground_of
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.causes.told import NAMED, TOLD_FROM
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
    named, n_named : int
        Draws whose cause is first, or among those that nothing distinguishes from the first in the answer's words; and
        all causes that these answers name.
    alike : int
        Draws whose cause is first, or is named beside a first one that has the same times.
    apart, first_apart : int
        Draws of faults without a twin, and those of them that are first.
    bound : int
        Draws whose cause a reader finds who knows how they were drawn.
    stated : float
        Sum of the stated likelihoods of the first causes.
    expected : float
        Draws that such a reader expects to find: the sum of the probabilities of the first causes.
    confused : counter of (str, str)
        Cause and what was first instead.
    """

    n: int = 0
    first: int = 0
    third: int = 0
    named: int = 0
    n_named: int = 0
    alike: int = 0
    apart: int = 0
    first_apart: int = 0
    bound: int = 0
    stated: float = 0.0
    expected: float = 0.0
    confused: Counter[tuple[str, str]] = field(default_factory=Counter)


class _Place(NamedTuple):
    """A machine with all its faults, those that a slow table alone may show, and those that are drawn."""

    ground: Ground
    error: ErrorModel
    every: list[FaultTimes]
    drawn_from: list[FaultTimes]
    faults: list[FaultTimes]


def draw(
    n: int, seed: int = 1, only: str = "", *, machines: Sequence[str] = MACHINES, noise: float = NOISE, part: float = 1
) -> Drawn:  # fmt: skip
    """Draw faults and rank their causes.

    Parameters
    ----------
    n : int
        Draws.
    seed : int
        Seed.
    only : str
        Beginning of the text of the faults that are drawn; empty for all.
    machines : sequence of str
        Topologies that are drawn from.
    noise : float
        Standard deviation of the logarithm of each time, beside that of the fault itself.
    part : float
        Part of the model's errors that is believed: the drawn times have none.
    """
    random, found = np.random.default_rng(seed), Drawn()
    places = [place for name in machines if (place := _place(name, only, part)).faults]
    for _ in range(n):
        place = places[random.integers(len(places))]
        fault = _drawn(place, random)
        times = fault.times * np.exp(random.normal(0, _noise(fault, noise), len(SIZES)))
        whole = np.ones(len(SIZES), np.bool_)
        rows = Rows(np.array(SIZES), times, whole, ~whole)
        causes = rank_causes(place.ground, rows, place.error, every=place.every)
        labels = [one.label for one in causes]
        alike = [one.label for one in causes if one.likelihood * TOLD_FROM > causes[0].likelihood][:NAMED]
        is_apart = not any(_are_twins(one, fault) for one in place.every)
        best, probable = _best(place, times, noise)
        found.n += 1
        found.bound += best == fault.label
        found.stated += causes[0].likelihood
        found.expected += probable
        found.first += labels[0] == fault.label
        found.third += fault.label in labels[:3]
        found.named += fault.label in alike
        found.n_named += len(alike)
        found.alike += labels[0] == fault.label or (
            fault.label in alike and _have_same_times(causes[0].times, fault.times)
        )
        found.apart += is_apart
        found.first_apart += is_apart and labels[0] == fault.label
        if labels[0] != fault.label:
            found.confused[fault.label, labels[0]] += 1
    return found


def _place(topology: str, only: str, part: float) -> _Place:
    plan = plan_collective(scenario_of("nccl_all_reduce", topology))
    assert isinstance(plan, NcclPlan)
    ground = ground_of(plan.launch, plan.schedule.n_ranks)
    every = predict_faults(ground, SIZES)
    alone = [one for one in every if one.fault and one.healthy is None]
    error = errors_of_plan(plan)
    rows = {name: one._replace(middle=one.middle * part, scale=one.scale * part) for name, one in error.rows.items()}
    error = dataclasses.replace(error, rows=rows)
    return _Place(ground, error, every, alone, [one for one in alone if one.text.startswith(only)])


def _drawn(place: _Place, random: np.random.Generator) -> FaultTimes:
    labels = sorted({one.label for one in place.faults})
    prior = np.array([weight_on(place.ground, label) for label in labels])
    label = labels[random.choice(len(labels), p=prior / prior.sum())]
    own = [one for one in place.faults if one.label == label]
    weights = np.array([one.weight for one in own])
    return own[random.choice(len(own), p=weights / weights.sum())]


def _noise(one: FaultTimes, noise: float) -> float:
    """Return the spread of a drawn row: what is common to all, and what the fault itself brings, as congestion does."""
    return math.hypot(noise, one.fault.noise if one.fault else 0.0)


def _log_of(times: NDArray[np.float64], one: FaultTimes, noise: float) -> float:
    """Return the logarithm of the density of drawn times, but for what all faults have in common."""
    spread = _noise(one, noise)
    return -float(((np.log(times / one.times) / spread) ** 2).sum()) / 2 - len(times) * math.log(spread)


def _best(place: _Place, times: NDArray[np.float64], noise: float) -> tuple[str, float]:
    """Return the most probable cause of drawn times, and how probable it is, for one who knows how they are drawn."""
    logs = dict[str, float]()
    for label in {one.label for one in place.drawn_from}:
        own = [one for one in place.drawn_from if one.label == label]
        prior = weight_on(place.ground, label) / sum(one.weight for one in own)
        terms = [np.log(prior * one.weight) + _log_of(times, one, noise) for one in own]
        logs[label] = float(np.logaddexp.reduce(terms))
    first = max(logs, key=lambda label: logs[label])
    return first, float(np.exp(logs[first] - np.logaddexp.reduce([*logs.values()])))


def _are_twins(one: FaultTimes, other: FaultTimes) -> bool:
    return one.label != other.label and _have_same_times(one.times, other.times)


def _have_same_times(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return float(np.sqrt((np.log(one / other) ** 2).mean())) < TWIN
