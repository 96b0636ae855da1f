"""A candidate: where every job would run, what the network thinks of that, and when each job should start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.value import Value


@dataclass(frozen=True, slots=True, eq=False)
class ContendedLink(Value):
    """A link that carries more than one job.

    Parameters
    ----------
    link : str
        Its name in the network.
    jobs : tuple of str
        Which, in the order in which they were given.
    score : float
        When the jobs start as the candidate says.
    demand : float, bytes/s
        What they send over it together, on average.
    """

    link: str
    jobs: tuple[str, ...]
    score: float
    demand: float


@dataclass(frozen=True, slots=True, eq=False)
class Candidate(Value):
    """Where jobs would run.

    Parameters
    ----------
    generator : str
        What made it.
    placement : dict of str to tuple of str
        The nodes of each job, one per GPU in the order of ranks.
    links : tuple of ContendedLink
        In the order of the network's links.
    shifts : dict of str to float, s
        How much later each job should start its next iteration.
    has_loop : bool
        Whether links could contradict each other about that.
    inconsistency : float, s
        By how much a job starts away from what one of its links alone wants, at most.
    predicted : dict of str to float, s
        Iteration time of each job.
    prediction : {"estimate", "simulation"}
        Where `predicted` comes from; :func:`commsim.placement.check.estimate` says what an estimate is.
    rounding : float, s
        By how much a period was changed at most, to find common multiples.
    n_cut_off : int
        Links whose jobs have no common multiple below the longest perimeter, so that they were seen for part of it.
    """

    generator: str
    placement: Mapping[str, tuple[str, ...]]
    links: tuple[ContendedLink, ...]
    shifts: Mapping[str, float]
    has_loop: bool
    inconsistency: float
    predicted: Mapping[str, float]
    prediction: str
    rounding: float
    n_cut_off: int

    @property
    def score_mean(self) -> float:
        """Mean of the links' scores, which the paper ranks by; 1 when no link is shared."""
        return sum(link.score for link in self.links) / len(self.links) if self.links else 1.0

    @property
    def score_min(self) -> float:
        """Score of the worst link, which the mean may hide."""
        return min((link.score for link in self.links), default=1.0)

    @property
    def score_weighted(self) -> float:
        """Mean of the links' scores, weighted by what the jobs send over each."""
        total = sum(link.demand for link in self.links)
        return sum(link.score * link.demand for link in self.links) / total if total else 1.0

    def row(self) -> dict[str, Any]:
        """One JSON row."""
        return {
            "generator": self.generator,
            "placement": {job: list(nodes) for job, nodes in self.placement.items()},
            "score_mean": _rounded(self.score_mean),
            "score_min": _rounded(self.score_min),
            "score_weighted": _rounded(self.score_weighted),
            "links": [
                {"link": link.link, "jobs": list(link.jobs), "score": _rounded(link.score)} for link in self.links
            ],
            "shifts_ms": {job: _rounded(shift * 1e3) for job, shift in self.shifts.items()},
            "predicted_iteration_ms": {job: _rounded(time * 1e3) for job, time in self.predicted.items()},
            "prediction": self.prediction,
            "has_loop": self.has_loop,
            "inconsistency_ms": _rounded(self.inconsistency * 1e3),
            "period_rounding_ms": _rounded(self.rounding * 1e3),
            "links_cut_off": self.n_cut_off,
        }


def _rounded(value: float) -> float:
    """Leave out the last digits, which are noise of the sums."""
    return round(value, 9) + 0.0
