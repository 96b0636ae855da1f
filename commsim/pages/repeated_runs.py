"""Results simulated again for pages and timelines: by the scenario that they answer, and refused where times differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from commsim.core.errors import CommsimError, InputError
from commsim.core.network_queries import line_rate
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import format_size
from commsim.pages.simulated_run import SimulatedRun, simulate_run
from commsim.pages.study import Study, with_line_rate
from commsim.prediction.work_plan import CollectivePlan

if TYPE_CHECKING:
    from commsim.prediction.solve import Solution

# Runs that a page shows in detail.
MAX_RUNS = 4
SHARED = "groups and jobs that share a network have no timeline"
__all__ = ["MAX_RUNS", "SHARED", "refuse_further", "repeated", "repeated_all", "with_runs"]


def repeated(solution: Solution, result: Result) -> SimulatedRun:
    """Simulate a result again, with the times of all transfers.

    Parameters
    ----------
    solution : Solution
        Solution that the result is from.
    result : Result
        Result of a size.

    Raises
    ------
    InputError
        If the work or the engine has no timeline, or the result's time is another one now.
    """
    scenario = solution.scenario
    if not isinstance(solution.plan, CollectivePlan):
        raise InputError(SHARED)
    wish = scenario.wish.with_engine(result.engine).of_draw(result)
    run = simulate_run(scenario.name or result.collective, solution.plan, result.size, wish, result.time)
    return dataclasses.replace(run, whole=scenario.whole)


def repeated_all(asked: Iterable[tuple[Solution, Result]]) -> tuple[list[SimulatedRun], dict[str, str]]:
    """Simulate results again.

    Parameters
    ----------
    asked : iterable of (Solution, Result)
        Results, each with the solution that it is from.

    Returns
    -------
    list of SimulatedRun, dict of str to str
        At most ``MAX_RUNS``, and why others are not there.
    """
    runs: list[SimulatedRun] = []
    left_out: dict[str, str] = {}
    for solution, result in asked:
        name = solution.scenario.name or result.collective
        if any(name == run.name for run in runs) or name in left_out:
            name = f"{name}, {format_size(result.size)}"
        try:
            refuse_further(runs)
            runs.append(dataclasses.replace(repeated(solution, result), name=name))
        except CommsimError as error:
            left_out[name] = str(error)
    return runs, left_out


def refuse_further(runs: Sequence[SimulatedRun]) -> None:
    """Refuse a run where there are as many as a page shows.

    Raises
    ------
    InputError
        Saying how many these are.
    """
    if len(runs) == MAX_RUNS:
        raise InputError(f"only the first {MAX_RUNS} runs are shown in detail")


def with_runs(study: Study, runs: Sequence[SimulatedRun], left_out: Mapping[str, str]) -> Study:
    """Return a study with runs in detail, the line rate of their network, and what their times assume.

    Parameters
    ----------
    study : Study
        Study of the rows.
    runs : sequence of SimulatedRun
        Runs.
    left_out : mapping of str to str
        Runs, and why they are not there.
    """
    if runs:
        study = with_line_rate(study, line_rate(runs[0].prepared.network, runs[0].prepared.ranks))
    remarks = (*study.remarks, *(Remark("timeline", f"timeline of {run.name}: {run.note}") for run in runs if run.note))
    return dataclasses.replace(study, runs=tuple(runs), left_out=dict(left_out), remarks=remarks)
