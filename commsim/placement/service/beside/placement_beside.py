"""Placements of new jobs beside those that run: what each costs under each hash of paths, and how it is ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.placement.ranking_remarks import PRINTED
from commsim.placement.scored_placements import rank_key
from commsim.placement.starts.meeting_kernel import MetJobs
from commsim.training.sharing.periodic import PeriodicJob

from .beside_kernel import JobTimes, Uses
from .finalists_beside import SimulatedBeside


@dataclass(frozen=True, slots=True)
class OfSeed:
    """All jobs under one hash, the links of the new ones, the times of all, the scores of these links, and the cost.

    `new` are the new jobs with the phases that they achieve.
    """

    new: Sequence[PeriodicJob]
    met: MetJobs
    more: Uses
    times: JobTimes
    score: NDArray[np.float64]
    cost: float


@dataclass(slots=True)
class PlacementBeside:
    """A placement of new jobs beside those that run.

    Parameters
    ----------
    generator : str
        What made it.
    jobs : sequence of PeriodicJob
        The new jobs with their placements.
    shift : float64[n_jobs], s
        Start of each.
    window : float64[n_jobs], s
        How long the window is in which its start is as good.
    of_seed : list of OfSeed
        What it costs under each hash, by the formula.
    nics : mapping of str to (int, int)
        Jobs that leave their machines by too few NICs.
    n_machines : int
        Machines of each job, added up.
    simulated : (int, float, SimulatedBeside), optional
        The hash with the median cost, and the cost and the times that were simulated with it.
    n_joined : int
        New jobs and running ones that full links join to them, with the median hash; 0 where nobody loses anything.
    """

    generator: str
    jobs: Sequence[PeriodicJob]
    shift: NDArray[np.float64]
    window: NDArray[np.float64]
    of_seed: list[OfSeed]
    nics: Mapping[str, tuple[int, int]]
    n_machines: int
    simulated: tuple[int, float, SimulatedBeside] | None = None
    n_joined: int = 0

    @property
    def is_slow(self) -> bool:
        """Whether the new jobs, or those beside them, lose time."""
        return round(self.cost, PRINTED) > 0

    @property
    def is_estimate(self) -> bool:
        """Whether jobs lose time by a formula, and not by a simulation."""
        return self.n_joined > 0 and self.simulated is None

    @property
    def prediction(self) -> str:
        """How its times were found; the formula is exact where nobody loses anything."""
        return "estimate" if self.simulated is None else "simulation"

    @property
    def median(self) -> int:
        """Position of the first hash with the median cost, the lower one of an even number."""
        costs = [one.cost for one in self.of_seed]
        return costs.index(sorted(costs)[(len(costs) - 1) // 2])

    @property
    def estimated(self) -> float:
        """Cost with the median hash by the formula."""
        return self.of_seed[self.median].cost

    @property
    def cost(self) -> float:
        """Cost with the median hash, as it is known best."""
        return self.estimated if self.simulated is None else self.simulated[1]

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest cost over the hashes; the simulated one of those that cost what the median does."""
        costs = [self.cost if one.cost == self.estimated else one.cost for one in self.of_seed]
        return min(costs), max(costs)

    def order(self, inner: NDArray[np.bool_]) -> tuple[float, ...]:
        """Return by what it is ranked: the less, the better.

        Parameters
        ----------
        inner : bool[n_links]
            Links between switches.
        """
        of = self.of_seed[self.median]
        counts = int((of.score < 1.5).sum()), int(inner[of.more.link].sum()), self.n_machines
        return rank_key(round(self.cost, PRINTED), round(self.ends[1], PRINTED), self.nics, counts, round(self.cost, 9))
