"""The causes of measured times, the most likely first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.diagnosis.causes.all_faults import FaultTimes, predict_faults
from commsim.diagnosis.causes.beforehand import shares_beforehand
from commsim.diagnosis.causes.fault import Timed
from commsim.diagnosis.causes.ground import Ground
from commsim.diagnosis.causes.labels import NONE, UNTRIED
from commsim.diagnosis.causes.likelihood import AGAIN, disturbances, log_likelihood, log_of_none
from commsim.diagnosis.causes.rows import Rows
from commsim.nccl.error_model import ErrorModel

NONE_FITS = "none of the causes that were tried fits"
# Standard deviations of a second run within which one common factor is no more than run-to-run error: 95 %.
WITHIN = 2.0


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
    sizes, times : float64[n], bytes and s
        Sizes of the slow rows, and times with it.
    ground : Timed or None
        What other calls can be asked of; None where there is none.
    """

    label: str
    likelihood: float
    text: str
    far: float
    sizes: NDArray[np.float64]
    times: NDArray[np.float64]
    ground: Timed | None = None


@dataclass(frozen=True, slots=True)
class _RowsInDoubt:
    """Rows with what is predicted for each without a fault, their further spread, and the errors of such machines."""

    rows: Rows
    whole: NDArray[np.float64]
    disturbed: NDArray[np.float64]
    error: ErrorModel

    def log_of(self, one: FaultTimes, effect: NDArray[np.float64]) -> float:
        """Return the log-likelihood of the rows with a fault of this effect on each."""
        return log_likelihood(self.rows, self.whole * np.exp(effect), self.error, effect, one.fault, self.disturbed)

    def log_of_none(self) -> float:
        """Return the log-likelihood of the rows with a cause that is not tried."""
        return log_of_none(self.rows, self.whole, self.error, self.disturbed)


def rank_causes(
    ground: Ground,
    rows: Rows,
    error: ErrorModel,
    more: NDArray[np.float64] | None = None,
    evidence: Mapping[str, float] | None = None,
    every: Sequence[FaultTimes] = (),
    stated: Mapping[str, float] | None = None,
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
    every : sequence of FaultTimes
        What :func:`~commsim.diagnosis.causes.all_faults.predict_faults` gives at the sizes of the rows, each once and
        in order. Default: it is asked here.
    stated : mapping of str to float, optional
        Numbers that the log states of causes, by label: of their faults only those of the nearest number are tried.

    Raises
    ------
    InputError
        If the closed form has no time of the ground.
    """
    every = _as_stated(every or predict_faults(ground, np.unique(rows.sizes).tolist()), stated or {})
    before = shares_beforehand(ground, (one.label for one in every), has_reference=rows.shares_sizes)
    return rank_faults(every, before, rows, error, more, evidence)


def _as_stated(every: Sequence[FaultTimes], stated: Mapping[str, float]) -> list[FaultTimes]:
    """Return the faults without those of another number than the log states, such as of NICs."""
    apart = [
        abs(np.log(one.fault.number / stated[one.label]))
        if one.fault is not None and one.fault.number and one.label in stated else 0.0
        for one in every
    ]  # fmt: skip
    least = dict[str, float]()
    for one, far in zip(every, apart, strict=True):
        least[one.label] = min(far, least.get(one.label, far))
    return [one for one, far in zip(every, apart, strict=True) if far <= least[one.label]]


def rank_faults(
    every: Sequence[FaultTimes],
    before: Mapping[str, float],
    rows: Rows,
    error: ErrorModel,
    more: NDArray[np.float64] | None = None,
    evidence: Mapping[str, float] | None = None,
) -> list[RankedCause]:
    """Rank the causes of the slow rows, of faults whose times are known.

    Parameters
    ----------
    every : sequence of FaultTimes
        Times without a fault first, at the sizes of the rows, each once and in order.
    before : mapping of str to float
        How likely each label is beforehand.
    rows, error, more, evidence
        Same as in :func:`rank_causes`.
    """
    _, where = np.unique(rows.sizes, return_inverse=True)
    closed = every[0].times
    whole = closed[where] * (1.0 if more is None else more)
    every = [one for one in every if one.healthy is None or rows.has_reference]
    effects = [_effect(one, closed, rows, where) for one in every]
    logs, none = {one.label: 0.0 for one in every}, 0.0
    best: dict[str, tuple[float, int]] = {}
    for run in rows.runs():
        own_rows = rows.at(run)
        question = _RowsInDoubt(own_rows, whole[run], disturbances(own_rows, whole[run]), error)
        none += question.log_of_none()
        values = [question.log_of(one, effect[run]) for one, effect in zip(every, effects, strict=True)]
        for label in logs:
            own = [i for i, one in enumerate(every) if one.label == label]
            terms = [values[i] + np.log(every[i].weight) for i in own]
            logs[label] += float(np.logaddexp.reduce(terms)) - np.log(sum(every[i].weight for i in own))
            best[label] = max(best.get(label, (-np.inf, 0)), (max(terms), own[int(np.argmax(terms))]))
    probable = _probabilities({**logs, NONE: none}, {**before, NONE: UNTRIED}, evidence or {})
    found = [
        _ranked(every[i], whole * np.exp(effects[i]), rows, whole, probable[label]) for label, (_, i) in best.items()
    ]
    slow = rows.slow
    factor = np.exp(np.median(np.log(rows.times[slow] / whole[slow])))
    none_fits = RankedCause(NONE, probable[NONE], NONE_FITS, 1.0, rows.sizes[slow], whole[slow] * factor)
    return sorted([*found, none_fits], key=lambda one: -one.likelihood)


def _effect(one: FaultTimes, closed: NDArray[np.float64], rows: Rows, where: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the logarithm of what a fault does to each row."""
    healthy = closed if one.healthy is None else one.healthy
    found: NDArray[np.float64] = np.log(np.where(rows.slow, one.times[where], healthy[where]) / closed[where])
    return found


def _probabilities(
    logs: Mapping[str, float], before: Mapping[str, float], evidence: Mapping[str, float]
) -> dict[str, float]:
    """Return how likely each label is, with its likelihood beforehand and what else is known."""
    found = {
        label: value + float(np.log(before[label] * evidence.get(label, 1.0))) for label, value in logs.items()
    }  # fmt: skip
    every = float(np.logaddexp.reduce([*found.values()]))
    return {label: float(np.exp(value - every)) for label, value in found.items()}


def _healthy(ratios: NDArray[np.float64]) -> str:
    """Return what healthy machines are beside what is expected of them, by measured over expected times."""
    factor = float(np.median(np.log(ratios)))
    if abs(factor) <= WITHIN * AGAIN:
        return "healthy: as expected"
    return "healthy: the expectation was too high" if factor > 0 else "healthy: faster than expected"


def _ranked(
    one: FaultTimes, times: NDArray[np.float64], rows: Rows, whole: NDArray[np.float64], likelihood: float
) -> RankedCause:  # fmt: skip
    usual = rows.slow & (disturbances(rows, whole) == 0)
    far = np.abs(rows.times / times - 1)[usual if usual.any() else rows.slow]
    text = one.text if one.fault is not None else _healthy(rows.times[rows.slow] / times[rows.slow])
    sizes, own = rows.sizes[rows.slow], times[rows.slow]
    return RankedCause(one.label, likelihood, text, float(far.max()), sizes, own, one.ground)
