"""The one way from a scenario to its results: plan the work, choose the engine, predict, and say what was assumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.frames import frame_of
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result
from commsim.core.services import service
from commsim.core.units import counted, first_of, format_size, format_time
from commsim.core.value import Shown
from commsim.scenario.build import prepare
from commsim.scenario.packet_options import name_of
from commsim.scenario.plans.dense import Plan
from commsim.scenario.plans.several import Several
from commsim.scenario.result_remarks import remarks_of_results
from commsim.scenario.scenario import AUTO, Scenario, Wish
from commsim.scenario.together.predict import Together

# How the names of what is synthesized for an operation begin.
SYNTHESIZED = "synthesized_"
__all__ = ["Solution", "plan_of", "solve"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution(Shown):
    """The results of a scenario, with what has to be said beside them.

    Parameters
    ----------
    scenario : Scenario
        Question.
    plan : Plan
        Plan of its work.
    results : tuple of Result
        One for each size; of groups and jobs one for each of them.
    derived : tuple of str
        What was drawn, chosen and derived before anything was predicted.
    remarks : tuple of str
        What the results leave out, assume or depend on.
    details : object
        What jobs that share a network cost each other; None of other work.
    """

    scenario: Scenario
    plan: Any
    results: tuple[Result, ...]
    derived: tuple[str, ...]
    remarks: tuple[str, ...]
    details: Any = None

    @property
    def said(self) -> tuple[str, ...]:
        """All remarks, each once."""
        return tuple(dict.fromkeys((*self.derived, *self.remarks)))

    @property
    def names(self) -> list[dict[str, str]]:
        """What tells each result from those of the same size: its group or job; empty for a single collective."""
        if self.scenario.jobs is not None:
            return [{"job": job.name} for job in self.scenario.jobs.jobs]
        groups = [{"group": ",".join(map(str, group))} for group in self.scenario.groups] or [{}]
        return groups * (len(self.results) // len(groups))

    def __repr__(self) -> str:
        times = [f"{format_size(one.size)} {format_time(one.time)}" for one in self.results]
        named = [
            f"{' '.join(name.values())}: {time}" if name else time for name, time in zip(self.names, times, strict=True)
        ]
        what = self.scenario.name or counted(len(self.results), "job")
        return f"Solution({what} on {self.plan.network.name}: {first_of(named)})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each result, with its group or job, as a data frame of pandas or polars."""
        rows = zip(self.names, self.results, strict=True)
        return frame_of((name | result.row() for name, result in rows), library)


def _jobs(scenario: Scenario) -> Any:
    from commsim.scenario.together.predict import prepare_together

    assert scenario.jobs is not None
    return prepare_together(scenario.jobs, scenario.network, **scenario.placing)


def _groups(scenario: Scenario) -> Any:
    from commsim.scenario.plans.groups import prepare_groups

    n_ranks = scenario.n_ranks
    return prepare_groups(scenario.collective, scenario.network, scenario.groups, n_ranks=n_ranks, **scenario.placing)


def _compressed(scenario: Scenario) -> Any:
    from commsim.scenario.plans.compressed import compressed

    assert scenario.compressor is not None
    return compressed(plan_of(dataclasses.replace(scenario, compressor=None)), scenario.compressor)


def _synthesized(scenario: Scenario) -> Any:
    return service("synthesized plan")(scenario)


def _collective(scenario: Scenario) -> Any:
    return prepare(
        scenario.collective, scenario.network, n_ranks=scenario.n_ranks,
        assume_programmable=scenario.assume_programmable, **scenario.placing,
    )  # fmt: skip


# Kinds of work: which scenarios ask for it, and the function that plans it. The first that is asked for is planned.
KINDS: tuple[tuple[Callable[[Scenario], bool], Callable[[Scenario], Any]], ...] = (
    (lambda scenario: scenario.jobs is not None, _jobs),
    (lambda scenario: bool(scenario.groups), _groups),
    (lambda scenario: scenario.compressor is not None, _compressed),
    (lambda scenario: scenario.name.startswith(SYNTHESIZED), _synthesized),
    (lambda _: True, _collective),
)


def plan_of(scenario: Scenario) -> Any:
    """Return the plan of a scenario's work.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is wrong, or the work does not fit on the network.
    """
    return next(plan(scenario) for is_asked, plan in KINDS if is_asked(scenario))


def solve(
    scenario: Scenario,
    sizes: Iterable[float],
    *,
    plan: Any = None,
    over: Callable[[Sequence[float]], Iterable[float]] = iter,
) -> Solution:
    """Predict a scenario at several sizes.

    Parameters
    ----------
    scenario : Scenario
        Question.
    sizes : iterable of float, bytes
        Sizes of the operation, as nccl-tests counts them.
    plan : Plan, optional
        Plan of the scenario, where it is known already.
    over : callable
        Wrapper of the sizes that shows progress.

    Raises
    ------
    InputError
        If the scenario is wrong, or the engine cannot predict it.
    """
    plan = plan_of(scenario) if plan is None else plan
    wanted, said = _sizes(plan, list(sizes))
    results: list[Result] = []
    details: Any = None
    for size in over(wanted):
        wish, why = _chosen(scenario.wish, plan, size)
        said += why
        found = plan.run(size, wish)
        if isinstance(found, Several):
            results += found.results
            details = found.details
        else:
            results.append(found)
    derived = dict.fromkeys((*scenario.remarks, *_without_effect(scenario), *said, *plan.notes))
    framed = scenario.wish.framing is not None
    remarks = remarks_of_results(plan, results, has_framing=framed)
    return Solution(scenario, plan, tuple(results), tuple(derived), tuple(dict.fromkeys(remarks)), details)


def _sizes(plan: Any, sizes: list[float]) -> tuple[list[float], list[str]]:
    """Return the sizes that the work can have: a barrier has none, gradients and jobs of a file have their own."""
    if isinstance(plan, Together):
        return [0.0], []
    schedule = getattr(plan, "schedule", None)
    operation = OPERATIONS.get(schedule.operation) if schedule is not None else None
    if schedule is not None and operation is not None and operation.signals:
        return [0.0], [] if sizes == [0] else [f"sizes have no effect, a {schedule.operation} carries no bytes"]
    data = getattr(plan, "data", None)
    if data is not None and data.size is not None and sizes != [data.size]:
        return [float(data.size)], ["sizes have no effect, the size is that of the gradients"]
    return sizes, []


def _chosen(wish: Wish, plan: Any, size: float) -> tuple[Wish, list[str]]:
    """Return the wish with an engine, and why that one; what is not ``auto`` stays."""
    if wish.engine != AUTO:
        return wish, []
    from commsim.scenario.auto import choose

    work = "" if isinstance(plan, Plan) else "jobs, groups or a compressor"
    given = {work: work, "--start-jitter": wish.start_jitter, "--header": wish.framing, "--flap": wish.flaps}
    for what in (name for name, value in given.items() if value):
        wish.require_engine(what)
    choice = choose(plan, size, wish.tolerance or 0.0, name_of(wish.transport))
    return wish.with_engine(choice.engine), list(choice.lines)


def _without_effect(scenario: Scenario) -> list[str]:
    """Describe which options change nothing."""
    wish = scenario.wish
    if wish.iterations > 1 and not wish.start_jitter:
        return ["iterations: no effect, a simulation without jitter gives the same time every time"]
    return []
