"""The density up to which sparse collectives are faster than dense ones."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from commsim.prediction.plans.dense import Plan
from commsim.ranking.rank_algorithms import TIE
from commsim.sparse.plan_sparse import SparsePlan
from commsim.sparse.sparse_data import FLOAT, SparseData

from .question import Question

# Relative width of the interval of densities in which sparse stops paying.
TOLERANCE = 0.01
# Blocks or runs of a rank, whichever are shorter, that are drawn for each density that is tried: of longer tensors
# fewer elements are drawn, in messages that are larger in proportion. Of few non-zero ones, up to four times as many.
MAX_DRAWN = 2**18
# Runs that are drawn at least, so that what a part of the ranks has differs little from its mean.
MIN_RUNS = 2**16
# Blocks of all ranks that are drawn at most.
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
    times_dense : float
        Time of the sparse way at `low` over that of the dense one; 1 where none is faster.
    """

    low: float
    high: float
    sparse: str
    dense: str
    times_dense: float = 1.0


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
    densities that are asked about are tried first, with all their elements, so that the answer does not contradict
    their ranking; at others no more elements are drawn than :func:`n_drawn` says.
    """
    highest = 1.0
    if question.pattern == "disjoint":  # as many whole runs as each worker can have for itself
        highest = _n_runs(question) // question.n_workers / _n_runs(question)

    least = dense_time * (1 - TIE)

    def time(spec: str, density: float) -> float:
        if density in question.densities and (spec_there := _with_density(spec, density)) in ready:
            return ready[spec_there].run(question.size, question.wish).time
        data = ready[spec].data
        drawn = None if data is None else n_drawn(question, data.block, density)
        return at_density(ready[spec], density, drawn).run(question.size, question.wish).time

    crossover = SparsePays(0.0, _lowest(question), "", dense)
    for spec in sparse:
        low, high = crossover.high, highest
        if (fast := time(spec, low)) >= least:
            continue
        if (slow := time(spec, highest)) < least:
            return SparsePays(highest, math.inf, spec, dense, slow / dense_time)
        densities = [density for density in sorted(question.densities) if low < density < high]
        for step in itertools.count():
            if not densities and high <= low * (1 + TOLERANCE):
                break
            middle = densities[len(densities) // 2] if densities else math.sqrt(low * high)
            if not densities and step % 3 != 2:  # times are almost linear in the density; halving bounds the steps
                middle = _between(low, high, (least - fast) / (slow - fast))
            if (found := time(spec, middle)) < least:
                low, fast = middle, found
            else:
                high, slow = middle, found
            densities = [density for density in densities if low < density < high]
        crossover = SparsePays(low, high, spec, dense, fast / dense_time)
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
    n_elements = n_drawn(question, data.block, 0.0) or question.size / FLOAT
    return bool(question.n_workers * n_elements / min(data.block, question.run) <= MAX_BLOCKS)


def n_drawn(question: Question, block: int, density: float) -> int | None:
    """Return the elements of a rank that are drawn for a density, in blocks of a length; None for all of them."""
    n_blocks = round(MAX_DRAWN * min(max(0.5 / max(density, 0.125), 1.0), 4.0))
    enough = max(n_blocks * min(block, question.run), MIN_RUNS * question.run)
    return enough if enough < question.size / FLOAT else None


def _with_density(spec: str, density: float) -> str:
    """Return the text of a collective with another density of the same data."""
    return re.sub(r"\bdensity=[^,]+", f"density={density!r}", spec, count=1)


def at_density(prepared: Plan, density: float, drawn: int | None = None) -> Plan:
    """Return the same with data of another density; routes and dependencies do not change."""
    if not isinstance(prepared, SparsePlan) or prepared.data is None:
        return prepared
    given = {**prepared.data.options, "density": density}
    data = SparseData(prepared.data.form, prepared.schedule, prepared.parameters, given, n_drawn=drawn)
    return prepared.with_data(data)


def _lowest(question: Question) -> float:
    """Lowest density that leaves a run non-zero."""
    return 1 / _n_runs(question)


def _n_runs(question: Question) -> int:
    """Count the runs of elements that are drawn together."""
    return math.ceil(question.size / FLOAT / question.run)
