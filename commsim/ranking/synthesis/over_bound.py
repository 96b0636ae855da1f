"""Times of algorithms over the lower bound of their operation, also on the network without its faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import count_text, first_of, format_size, format_time
from commsim.core.value import Shown
from commsim.prediction.bounds.cuts import uses_more_than_ranks
from commsim.prediction.bounds.limited_by import Limit, limit_of, row_of_limit
from commsim.prediction.inputs import placement_of_ranks
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.unused_faults import of_unused_faults
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import solve
from commsim.ranking.contenders import (
    legal_sizes,
    prepare_all,
    require_blocks,
)
from commsim.ranking.rank_algorithms import contenders, fastest_first

from .bound import LowerBound, bound_for, lower_bound, times_of

__all__ = ["OverBound", "Ratio", "about_bound", "bound_of", "over_bound"]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One algorithm at one size.

    Parameters
    ----------
    size : float, bytes
        Size of the operation.
    algorithm : str
        Name.
    result : Result
        Prediction.
    bound : float, s
        Least time that a schedule with the same kinds of nodes takes.
    anywhere : bool
        Whether nodes without ranks may store, add and send on, as they do in the algorithm.
    whole : float, s, optional
        Time on the network without its faults.
    limit : Limit, optional
        What limits the time, where it is known.
    """

    size: float
    algorithm: str
    result: Result
    bound: float
    anywhere: bool
    whole: float | None = None
    limit: Limit | None = None

    @property
    def time(self) -> float:
        """Predicted time, s."""
        return self.result.time

    @property
    def times_bound(self) -> float:
        """How many times the bound the time is."""
        return times_of(self.time, self.bound)

    @property
    def faults_cost(self) -> float | None:
        """How many times that without faults the time is; None where that is not known."""
        return None if self.whole is None else times_of(self.time, self.whole)

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        faults = {} if self.whole is None else {"whole_s": self.whole, "faults_cost": self.faults_cost}
        return {
            "size_B": self.size, "algorithm": self.algorithm, "time_s": self.time, "bound_s": self.bound,
            "times_bound": self.times_bound, "anywhere": self.anywhere, **self.result.spread_row(),
            **row_of_limit(self.limit), **faults,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class OverBound(Shown):
    """Algorithms of an operation beside its lower bounds.

    Parameters
    ----------
    bounds : tuple of LowerBound
        Bounds for schedules of ranks only, and for those with servers or switches.
    ratios : tuple of Ratio
        Each algorithm at each size, by size and time.
    left_out : mapping of str to str
        Algorithms that cannot run here, and why.
    derived, remarks : tuple of Remark
        What was drawn, and what the times assume.
    has_faults : bool
        Whether the network has faults.
    network : Network or None
        Network with the costs of messages that the times include.
    """

    bounds: tuple[LowerBound, ...]
    ratios: tuple[Ratio, ...]
    left_out: Mapping[str, str]
    derived: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()
    has_faults: bool = False
    network: Network | None = None

    @property
    def best(self) -> OverBound:
        """The same with the fastest algorithm of each size only."""
        first = {ratio.size: ratio for ratio in reversed(self.ratios)}
        return dataclasses.replace(self, ratios=tuple(first[size] for size in sorted(first)))

    @property
    def said(self) -> tuple[Remark, ...]:
        """All remarks, each once."""
        return tuple(dict.fromkeys((*self.derived, *self.remarks)))

    def __repr__(self) -> str:
        best = {ratio.size: ratio for ratio in reversed(self.ratios)}
        times = [f"{format_size(size)} {one.algorithm} {one.times_bound:.3f} times the bound"
                 for size, one in sorted(best.items())]  # fmt: skip
        n_algorithms = len({ratio.algorithm for ratio in self.ratios})
        return f"OverBound({count_text(n_algorithms, 'algorithm')}, the best: {first_of(times)})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each algorithm and size, as a data frame of pandas or polars."""
        return frame_of((ratio.row() for ratio in self.ratios), library)


def bound_of(scenario: Scenario, operation: str, *, root: int = 0, anywhere: bool = False) -> LowerBound:
    """Bound an operation on the nodes where a scenario puts its ranks.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults, number of ranks and placement.
    operation : str
        Name of the operation.
    root, anywhere
        Same as in :func:`commsim.ranking.synthesis.lower_bound`.

    Raises
    ------
    InputError
        If the operation is unknown, or the placement does not fit.
    """
    require_blocks(operation)
    where = placement_of_ranks(scenario.network, scenario.n_ranks, scenario.placement, scenario.seed)
    return lower_bound(operation, scenario.network, where.nodes, root=root, anywhere=anywhere)


def over_bound(
    scenario: Scenario,
    operation: str,
    sizes: Sequence[int],
    *,
    whole: Network | None = None,
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
) -> OverBound:
    """Predict the algorithms of an operation, and compare their times with the lower bound.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults, placing and engine.
    operation, sizes, algorithms, named
        Same as in :func:`commsim.ranking.rank_algorithms.solve_each`.
    whole : Network, optional
        Network without its faults, to say what these cost.

    Raises
    ------
    InputError
        If the operation is unknown, a named algorithm is one of another operation or cannot run, or none can run.
    """
    scenario.wish.require_engine("lower bounds")
    sizes, about_sizes = legal_sizes(operation, sizes)
    # For schedules that put the same kinds of nodes to use on the same data there is one bound.
    known: dict[Any, LowerBound] = {}
    by_algorithm: dict[str, tuple[LowerBound, Plan, Sequence[Result]]] = {}

    def predict(spec: str, plan: Plan) -> None:
        ranks = plan.placement.nodes[: plan.schedule.n_ranks]
        key = (uses_more_than_ranks(plan), plan.schedule.layout, plan.schedule.root, ranks.tobytes(), plan.data is None)
        bound = known.get(key) or bound_for(plan, scenario.network)
        by_algorithm[spec] = bound, plan, _results(scenario, spec, plan, sizes)
        known[key] = bound
        plan.paths.forget()  # tables of all algorithms together would take gigabytes

    plans, left_out = contenders(scenario, operation, algorithms, named, predict)
    before, plans_before = ({}, {}) if whole is None else _times_on(scenario, whole, list(plans), sizes, named)
    ratios = [
        Ratio(
            size, spec, result, bound.time(size), bound.anywhere, before.get(spec, {}).get(size), limit_of(plan, result)
        )
        for spec, (bound, plan, results) in by_algorithm.items()
        for size, result in zip(sizes, results, strict=True)
    ]
    ordered = [one for size in sizes for _, one in fastest_first([(r.algorithm, r) for r in ratios if r.size == size])]
    bounds = _with_both_kinds(next(iter(plans.values())), scenario.network, list(known.values()))
    of_plans = {spec: results for spec, (_, _, results) in by_algorithm.items()}
    unused = of_unused_faults(
        scenario, {spec: plan for spec, (_, plan, _) in by_algorithm.items()}, of_plans, plans_before
    )
    remarks = list(unused)
    return OverBound(
        tuple(bounds),
        tuple(ordered),
        left_out,
        (*scenario.remarks, *about_sizes),
        tuple(remarks),
        has_faults=whole is not None,
        network=scenario.network,
    )


def about_bound(plan: Plan, results: Iterable[Result], name: str = "") -> list[Remark]:
    """Describe how many times the bound the results of one collective take, and what limits it.

    Parameters
    ----------
    plan, results
        Plan of the collective, and its predictions.
    name : str
        Name of the collective, where several are described.
    """
    bound, head = bound_for(plan, as_placed=True), f"bound: {name}: " if name else "bound: "
    kind = ", where any switch and host may add" if bound.anywhere else ""
    remarks = []
    for r in results:
        least = bound.time(r.size)
        times = f"the time is {times_of(r.time, least):.3f} times the bound"
        why = f"({bound.why(r.size)}){kind}"
        text = f"{head}{format_size(r.size)}: at least {format_time(least)}; {times}"
        remarks.append(Remark("over-bound", text, needed=True, details=why))
    return [*remarks, *(note.of(head.rstrip(": ")) for note in bound.notes)]


def _results(scenario: Scenario, spec: str, plan: Plan, sizes: Sequence[int]) -> Sequence[Result]:
    asked = scenario.with_collective(spec, remarks=(), slower=(), whole=None, failed=())
    return solve(asked, sizes, plan=plan).results


def _times_on(
    scenario: Scenario, whole: Network, specs: Sequence[str], sizes: Sequence[int], named: Sequence[str]
) -> tuple[dict[str, dict[int, float]], dict[str, Plan]]:
    """Return the times by algorithm and size on the network without faults, and plans, of those that can run there."""
    asked, times = dataclasses.replace(scenario, network=whole), dict[str, dict[int, float]]()

    def predict(spec: str, plan: Plan) -> None:
        results = _results(asked, spec, plan, sizes)
        times[spec] = {size: result.time for size, result in zip(sizes, results, strict=True)}

    plans, _ = prepare_all(
        specs, whole, n_ranks=scenario.n_ranks, probe=predict, named=named, none_is_error=False, **scenario.placing
    )
    return times, plans


def _with_both_kinds(plan: Plan, network: Network, bounds: list[LowerBound]) -> list[LowerBound]:
    """Add the bound for the kind of schedules, with servers or switches or without, that none here is of."""
    schedule, ranks = plan.schedule, plan.placement.nodes[: plan.schedule.n_ranks]
    alike: dict[str, Any] = {"root": schedule.root, "layout": schedule.layout}
    for anywhere in (False, True):
        if all(bound.anywhere != anywhere for bound in bounds):
            bounds.append(lower_bound(schedule.operation, network, ranks, anywhere=anywhere, **alike))
    return sorted(bounds, key=lambda bound: bound.anywhere)
