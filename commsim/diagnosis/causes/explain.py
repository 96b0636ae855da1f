"""The causes of measured times, the most likely first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.diagnosis.causes.all_faults import FaultTimes, fault_times
from commsim.diagnosis.causes.ground import Ground
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY, HEALTHY_ALONE, HEALTHY_BESIDE_REFERENCE
from commsim.diagnosis.causes.likelihood import disturbances, log_likelihood
from commsim.diagnosis.causes.rows import Rows
from commsim.nccl.error_model import ErrorModel


@dataclass(frozen=True, slots=True)
class RankedCause:
    """A cause and how likely it is.

    Parameters
    ----------
    label : str
        One of :data:`~commsim.diagnosis.causes.labels.CAUSES`.
    likelihood : float
        Probability among all causes that were tried.
    text : str
        Its most likely form, in words.
    far : float
        Largest relative difference of a measured time from the one with it, of rows that nothing disturbed.
    times : float64[n], s
        Times with it, of the slow rows.
    """

    label: str
    likelihood: float
    text: str
    far: float
    times: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _RowsInDoubt:
    """Rows with what is predicted for each without a fault, and what the errors of such machines are."""

    rows: Rows
    whole: NDArray[np.float64]
    error: ErrorModel

    def log_of(self, one: FaultTimes, effect: NDArray[np.float64]) -> float:
        """Return the log-likelihood of the rows with a fault of this effect on each."""
        disturbed = disturbances(self.rows, self.whole)
        return log_likelihood(self.rows, self.whole * np.exp(effect), self.error, effect, one.fault, disturbed)


def rank_causes(
    ground: Ground,
    rows: Rows,
    error: ErrorModel,
    more: NDArray[np.float64] | None = None,
    evidence: Mapping[str, float] | None = None,
) -> list[RankedCause]:
    """Rank the causes of the slow rows.

    Parameters
    ----------
    ground : Ground
        What they were measured on, without a fault.
    rows : Rows
        Measured times; the healthy ones too where there are some.
    error : ErrorModel
        Errors of the model on such machines.
    more : float64[n], optional
        Time of the whole prediction over that of the closed form, of each row. Default: 1.
    evidence : mapping of str to float, optional
        How many times as likely what else is known makes a cause, by label.

    Raises
    ------
    InputError
        If the closed form has no time of the ground.
    """
    sizes, where = np.unique(rows.sizes, return_inverse=True)
    closed = ground.times(sizes.tolist())
    whole = closed[where] * (1.0 if more is None else more)
    every = [FaultTimes(None, closed), *fault_times(ground, sizes.tolist(), closed)]
    effects = [np.where(rows.slow, np.log(one.times / closed)[where], 0.0) for one in every]
    logs = {one.label: 0.0 for one in every}
    best: dict[str, tuple[float, int]] = {}
    for run in rows.runs():
        question = _RowsInDoubt(rows.at(run), whole[run], error)
        values = [question.log_of(one, effect[run]) for one, effect in zip(every, effects, strict=True)]
        for label in logs:
            own = [i for i, one in enumerate(every) if one.label == label]
            terms = [values[i] + np.log(every[i].weight) for i in own]
            logs[label] += float(np.logaddexp.reduce(terms)) - np.log(max(1.0, sum(every[i].weight for i in own)))
            best[label] = max(best.get(label, (-np.inf, 0)), (max(terms), own[int(np.argmax(terms))]))
    probable = _probabilities(logs, rows, evidence or {})
    return [
        _ranked(every[best[label][1]], whole * np.exp(effects[best[label][1]]), rows, whole, probable[label])
        for label in sorted(probable, key=lambda name: -probable[name])
    ]


def _probabilities(logs: Mapping[str, float], rows: Rows, evidence: Mapping[str, float]) -> dict[str, float]:
    """Return how likely each label is, with its likelihood beforehand and what else is known."""
    healthy = HEALTHY_BESIDE_REFERENCE if rows.shares_sizes else HEALTHY_ALONE
    total = sum(CAUSES[label].prior for label in logs)
    found = {}
    for label, value in logs.items():
        prior = healthy if label == HEALTHY else (1 - healthy) * CAUSES[label].prior / total
        found[label] = value + float(np.log(prior * evidence.get(label, 1.0)))
    every = float(np.logaddexp.reduce([*found.values()]))
    return {label: float(np.exp(value - every)) for label, value in found.items()}


def _ranked(
    one: FaultTimes, times: NDArray[np.float64], rows: Rows, whole: NDArray[np.float64], likelihood: float
) -> RankedCause:  # fmt: skip
    usual = rows.slow & (disturbances(rows, whole) == 0)
    far = np.abs(rows.times / times - 1)[usual if usual.any() else rows.slow]
    return RankedCause(one.label, likelihood, one.text, float(far.max()), times[rows.slow])
