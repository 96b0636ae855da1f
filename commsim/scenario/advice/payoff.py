"""The density up to which sparse collectives are faster than dense ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from commsim.scenario import Plan
from commsim.scenario.plans.sparse import SparsePlan
from commsim.scenario.plans.sparse_data import FLOAT, SparseData
from commsim.scenario.ranking import TIE

from .question import Question

# Relative width of the interval of densities in which sparse stops paying.
TOLERANCE = 0.01
# Blocks of all ranks that are drawn for each density that is tried.
MAX_BLOCKS = 2**28


@dataclass(frozen=True, slots=True)
class SparsePays:
    """Up to which density the best sparse way is faster than the best dense one.

    Parameters
    ----------
    low, high : float
        Densities: at `low` it still is, from `high` on it is not. 0 and the lowest density that can be drawn where it
        never is; the highest one, and infinity, where it always is.
    sparse, dense : str
        The sparse way that is faster longest (empty if none ever is), and the dense one.
    """

    low: float
    high: float
    sparse: str
    dense: str


def density_crossover(
    question: Question, ready: Mapping[str, Plan], sparse: Iterable[str], dense: str, dense_time: float
) -> SparsePays:
    """Find by interpolation and halving up to where some sparse way is faster.

    Parameters
    ----------
    question : Question
        Question whose data is drawn.
    ready : mapping of str to Plan
        Collectives by spec.
    sparse : iterable of str
        Specs to try, the most promising first: the others are tried only where it is no longer faster.
    dense, dense_time : str, float (s)
        The best dense way, and its time.

    Notes
    -----
    A way that is slower at some density is taken to be slower at every higher one, since it sends no fewer bytes. The
    densities that are asked about are tried first, so that the answer does not contradict their ranking.
    """
    highest = 1.0
    if question.pattern == "disjoint":  # as many whole runs as each worker can have for itself
        highest = _n_runs(question) // question.n_workers / _n_runs(question)

    least = dense_time * (1 - TIE)

    def time(spec: str, density: float) -> float:
        return at_density(ready[spec], density).predict(question.size).time

    crossover = SparsePays(0.0, _lowest(question), "", dense)
    for spec in sparse:
        low, high = crossover.high, highest
        if (fast := time(spec, low)) >= least:
            continue
        if (slow := time(spec, highest)) < least:
            return SparsePays(highest, math.inf, spec, dense)
        asked = [density for density in sorted(question.densities) if low < density < high]
        for step in itertools.count():
            if not asked and high <= low * (1 + TOLERANCE):
                break
            middle = asked[len(asked) // 2] if asked else math.sqrt(low * high)
            if not asked and step % 3 != 2:  # times are almost linear in the density; halving bounds the steps
                middle = _between(low, high, (least - fast) / (slow - fast))
            if (found := time(spec, middle)) < least:
                low, fast = middle, found
            else:
                high, slow = middle, found
            asked = [density for density in asked if low < density < high]
        crossover = SparsePays(low, high, spec, dense)
    return crossover


def _between(low: float, high: float, way: float) -> float:
    """Interpolate, and step a little over the result, so that the interval closes from both ends."""
    middle = low + way * (high - low)
    return middle * (1 + TOLERANCE / 3 if middle * middle < low * high else 1 - TOLERANCE / 3)


def can_search(prepared: Plan, question: Question) -> bool:
    """Whether data can be drawn again and again in little time for a sparse way that sums all values."""
    data = prepared.data
    if data is None or data.form.lossy or data.size is not None:
        return False
    return question.n_workers * question.size / FLOAT / min(data.block, question.run) <= MAX_BLOCKS


def at_density(prepared: Plan, density: float) -> Plan:
    """Return the same with data of another density; routes and dependencies do not change."""
    if not isinstance(prepared, SparsePlan) or prepared.data is None:
        return prepared
    data = SparseData(
        prepared.data.form, prepared.schedule, prepared.parameters, {**prepared.data.given, "density": density}
    )
    return prepared.with_data(data)


def _lowest(question: Question) -> float:
    """Lowest density that leaves a run non-zero."""
    return 1 / _n_runs(question)


def _n_runs(question: Question) -> int:
    """Count the runs of elements that are drawn together."""
    return math.ceil(question.size / FLOAT / question.run)
