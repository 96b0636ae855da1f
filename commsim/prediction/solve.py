"""The one way from a scenario to its results: plan the work, choose the engine, predict, and say what was assumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import count_text, first_of, format_size, format_time
from commsim.core.value import Shown
from commsim.prediction.bounds.limited_by import limit_of, row_of_limit
from commsim.prediction.plans.run import over_hashes
from commsim.prediction.result_remarks import of_detection
from commsim.prediction.scenario import Scenario
from commsim.prediction.work_plan import OPTIONS, Outcome, WorkPlan

__all__ = ["Solution", "plan_of", "require_options", "solve"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution(Shown):
    """The results of a scenario, with what has to be said beside them.

    Parameters
    ----------
    scenario : Scenario
        Question.
    plan : WorkPlan
        Plan of its work.
    results : tuple of Result
        One for each size; of groups and jobs one for each of them.
    derived : tuple of Remark
        What was drawn, chosen and derived before anything was predicted.
    remarks : tuple of Remark
        What the results leave out, assume or depend on.
    details : object
        What jobs that share a network cost each other; None of other work.
    """

    scenario: Scenario
    plan: WorkPlan
    results: tuple[Result, ...]
    derived: tuple[Remark, ...]
    remarks: tuple[Remark, ...]
    details: Any = None

    @property
    def said(self) -> tuple[Remark, ...]:
        """All remarks, each once."""
        return tuple(dict.fromkeys((*self.derived, *self.remarks)))

    @property
    def names(self) -> list[dict[str, str]]:
        """What tells each result from those of the same size: its group or job; empty for a single collective."""
        parts = [*self.scenario.work.parts] or [{}]
        return parts * (len(self.results) // len(parts))

    @property
    def time(self) -> NDArray[np.float64]:
        """Time of each result, float64[n_results], s."""
        return np.array([result.time for result in self.results], np.float64)

    @property
    def algbw(self) -> NDArray[np.float64]:
        """Size over time of each result, float64[n_results], bytes/s."""
        return np.array([result.algbw for result in self.results], np.float64)

    @property
    def busbw(self) -> NDArray[np.float64]:
        """Bus bandwidth of each result, float64[n_results], bytes/s.

        Raises
        ------
        InputError
            If the operation is ``custom``, which has no factor.
        """
        return np.array([result.busbw for result in self.results], np.float64)

    def __repr__(self) -> str:
        times = [f"{format_size(result.size)} {format_time(result.time)}" for result in self.results]
        named = [
            f"{' '.join(name.values())}: {time}" if name else time for name, time in zip(self.names, times, strict=True)
        ]
        what = self.scenario.name or count_text(len(self.results), "job")
        return f"Solution({what} on {self.plan.network.name}: {first_of(named)})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each result, with its group or job, as a data frame of pandas or polars."""
        from commsim.core.data_frames import frame_of

        rows = zip(self.names, self.results, strict=True)
        return frame_of(
            (
                name | result.row(self.scenario.name) | row_of_limit(limit_of(self.plan, result))
                for name, result in rows
            ),
            library,
        )


def require_options(scenario: Scenario) -> None:
    """Refuse options that have no effect on the work.

    Raises
    ------
    InputError
        If the scenario or its engine has an option that the work does not take.
    """
    work = scenario.work
    if "tolerance" not in work.TAKES:
        scenario.wish.require_engine(work.NAME)
    for value in (scenario, scenario.wish, scenario.wish.model):
        for field in dataclasses.fields(value):
            if field.name not in work.TAKES and getattr(value, field.name) != field.default:
                if value is scenario:
                    raise work.refusal(field.name)
                raise InputError(f"{OPTIONS.get(field.name, field.name)} is not modelled for {work.NAME}")


def plan_of(scenario: Scenario) -> WorkPlan:
    """Return the plan of a scenario's work.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is wrong, an option has no effect on such work, or the work does not fit on
        the network.
    """
    require_options(scenario)
    return scenario.work.plan(scenario)


def solve(
    scenario: Scenario,
    sizes: Iterable[float],
    *,
    plan: WorkPlan | None = None,
    whole: WorkPlan | None = None,
    over: Callable[[Sequence[float]], Iterable[float]] = iter,
) -> Solution:
    """Predict a scenario at several sizes.

    Parameters
    ----------
    scenario : Scenario
        Question.
    sizes : iterable of float, bytes
        Sizes of the operation, as nccl-tests counts them.
    plan : WorkPlan, optional
        Plan of the scenario, where it is known already.
    whole : WorkPlan, optional
        Plan of the same on the network without its faults, where it is known already.
    over : callable
        Wrapper of the sizes that shows progress.

    Raises
    ------
    InputError
        If the scenario is wrong, or the engine cannot predict it.
    """
    require_options(scenario)
    plan = scenario.work.plan(scenario) if plan is None else plan
    wanted, notes = plan.sizes(list(sizes))
    outcomes: list[Outcome] = []
    for size in over(wanted):
        outcomes.append(over_hashes(plan, size, scenario.wish, is_ratio=scenario.whole is not None))
        notes += outcomes[-1].remarks
    results = tuple(result for outcome in outcomes for result in outcome.results)
    if whole is None and scenario.whole is not None:
        whole = plan_of_whole(scenario)
    results = results if whole is None else with_whole(scenario, results, wanted, whole)
    derived = [*scenario.remarks, *notes, *plan.notes]
    title = scenario.work.title
    named, found = {title: plan}, {title: results}
    has_faults = scenario.slower or scenario.failed
    remarks = [
        *(_of_faults(scenario, named, found, {title: whole}) if has_faults else ()),
        *plan.remarks(results, has_framing=scenario.wish.framing is not None),
        *(() if scenario.wish.model.flaps is None else of_detection(scenario.wish.model.flaps, plan.network, results)),
    ]
    details = outcomes[-1].details if outcomes else None
    return Solution(scenario, plan, results, tuple(dict.fromkeys(derived)), tuple(dict.fromkeys(remarks)), details)


def on_whole(scenario: Scenario) -> Scenario:
    """Return the same question of the network without its faults."""
    assert scenario.whole is not None
    wish = scenario.wish.but(trace=False, watch=None, capture=None)
    asked = dataclasses.replace(scenario, network=scenario.whole, wish=wish, whole=None, failed=(), slower=())
    if not scenario.is_left:
        return asked
    work = dataclasses.replace(scenario.work, n_ranks=None)  # type: ignore[type-var]
    return dataclasses.replace(asked, work=work, placement=None, is_left=False)


def plan_of_whole(scenario: Scenario) -> WorkPlan | None:
    """Return the plan on the network without its faults.

    None is known where the network has none, and where what is pinned or placed does not fit on it.
    """
    if scenario.whole is None:
        return None
    try:
        return plan_of(on_whole(scenario))
    except InputError:
        return None


def with_whole(
    scenario: Scenario, results: tuple[Result, ...], sizes: Sequence[float], plan: WorkPlan
) -> tuple[Result, ...]:
    """Return results with the times on the network without its faults, over the same hashes.

    Nothing is added where cables flap too, and where other numbers of ranks would run there; where these are those of
    hosts or GPUs that failed, the time is that of the same size on all ranks.

    Parameters
    ----------
    scenario : Scenario
        Question.
    results : tuple of Result
        Its results.
    sizes : sequence of float, bytes
        Sizes of these.
    plan : WorkPlan
        Plan on the network without its faults.
    """
    if scenario.wish.model.flaps is not None or not results:
        return results
    try:
        wish = on_whole(scenario).wish
        found = [result for size in sizes for result in over_hashes(plan, size, wish, is_ratio=True).results]
    except InputError:  # messages that are pinned to a link may not have it there
        return results
    numbers = [[result.n_ranks for result in some] for some in (found, results)]
    if numbers[0] != numbers[1] and not (scenario.is_left and len(found) == len(results)):
        return results
    return tuple(dataclasses.replace(result, whole=other.time) for result, other in zip(results, found, strict=True))


def _of_faults(scenario: Scenario, *found: Any) -> list[Remark]:
    from commsim.prediction.plans.unused_faults import of_unused_faults

    return of_unused_faults(scenario, *found)
