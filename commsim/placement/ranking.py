"""Ranking of candidate placements: the result of ``place``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.remark import Remark

from .candidate import PlacementCandidate, counted_names
from .ranking_remarks import PRINTED, differing, rank_correlation

_SAME = 1e-6  # part of an iteration by which a time must change to be named


@dataclass(frozen=True, slots=True)
class PlacementRanking:
    """Candidates in order.

    Parameters
    ----------
    candidates : tuple of PlacementCandidate
        Best first; of equals the one that was made first.
    discarded : tuple of PlacementCandidate
        Those with a loop, under the literal rule.
    remarks : tuple of Remark
        What the user should know about the scores.
    n_tried : int
        Placements that were tried.
    """

    candidates: tuple[PlacementCandidate, ...]
    discarded: tuple[PlacementCandidate, ...]
    remarks: tuple[Remark, ...]
    n_tried: int = 0

    def __str__(self) -> str:
        """Return a line for each candidate: its rank, slowdowns, scores and placement."""
        lines = [
            f"{rank}: slowdown {candidate.slowdown:.4f}x{_victim(candidate)}{_alone(candidate)}, score "
            f"{candidate.score_mean:.4f} "
            f"(least {candidate.score_min:.4f}), by {candidate.generator}: {_places(candidate)}"
            for rank, candidate in enumerate(self.candidates, 1)
        ]
        return "\n".join([*lines, *(f"# {remark}" for remark in self.remarks)]) or "no candidates"

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's of estimated and simulated slow-downs; None without ``check``, or of fewer than 4 candidates."""
        simulated_ones = [candidate for candidate in self.candidates if candidate.prediction == "simulation"]
        return rank_correlation([c.slowdown_estimated for c in simulated_ones], [c.slowdown for c in simulated_ones])

    @property
    def agreement(self) -> dict[str, Any]:
        """JSON of how well simulations and estimates agree."""
        return {"rank_correlation": self.rank_correlation, "differing_candidates": [*differing(self.candidates)]}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of ``commsim place`` without its flags: candidates, those discarded, and what is said."""
        return {
            "schema": 1,
            "candidates": [candidate.row() for candidate in self.candidates],
            "discarded": [discard.row() for discard in self.discarded],
            "notes": [str(remark) for remark in self.remarks],
            **self.agreement,
            "remarks": [remark.tree() for remark in self.remarks],
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each candidate, with its rank, as a data frame of pandas or polars."""
        rows = ({"rank": rank, **candidate.row()} for rank, candidate in enumerate(self.candidates, 1))
        return frame_of(rows, library)


def with_cost(candidate: PlacementCandidate, before: Mapping[str, float]) -> PlacementCandidate:
    """Return a candidate with what its new jobs cost: their own times, and what they add to those that run.

    Parameters
    ----------
    before : mapping of str to float, s
        Iteration time of each running job without the new ones, by the same means as the candidate's.
    """
    after, period = candidate.predicted, candidate.periods
    own = {name: after[name] / period[name] for name in period if name not in before}
    added = {name: (after[name] - time) / period[name] for name, time in before.items()}
    cost = {
        "total": round(sum(own.values()) - len(own) + sum(added.values()), 9) + 0.0,
        "own": {name: round(value, 9) for name, value in own.items()},
        "added": {name: round(value, 9) for name, value in added.items() if abs(value) > _SAME},
    }
    return replace(candidate, cost=cost)


def _victim(candidate: PlacementCandidate) -> str:
    """Name the job that loses the most, where that is more than the mean."""
    job, slow = candidate.worst_job
    return f" ({job} {slow:.4f}x)" if round(slow - candidate.slowdown, PRINTED) > 0 else ""


def _alone(candidate: PlacementCandidate) -> str:
    """Return the stretch, by which candidates rank, where jobs that are slow alone make it more than the slow-down."""
    is_more = round(candidate.stretch - candidate.slowdown, PRINTED) > 0
    return f", stretch {candidate.stretch:.4f}x" if is_more else ""


def _places(candidate: PlacementCandidate) -> str:
    return ", ".join(f"{job} on {counted_names(nodes)}" for job, nodes in candidate.placement.items())
