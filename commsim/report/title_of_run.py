"""The title of a run's table: what was asked for and chosen, and what a narrow terminal leaves out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.core.operations import meaning_of_size
from commsim.core.units import count_text, format_size
from commsim.extensions import house
from commsim.report.hash_columns import hashes_in_title
from commsim.report.title_of_network import costs_in_title, least_in_title, placement_in_title, spreading_in_title

if TYPE_CHECKING:
    from commsim.core.result import Result
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.solve import Solution


def title_of(solution: Solution, groups: Sequence[str] = ()) -> list[str]:
    """Return the title of a solution's table in phrases: collective, network, ranks, engine, and what times include."""
    from commsim.prediction.plans.dense import Plan

    results, plan = solution.results, solution.plan
    engines = "/".join(dict.fromkeys(r.engine for r in results))
    if engines in house().reports:
        engines = f"{engines}, {house().reports[engines].told(solution.scenario.wish)}"
    what = f"{count_text(len(groups), 'group')} at once" if groups else count_text(plan.schedules[0].n_ranks, "rank")
    if solution.scenario.placement is not None:
        nodes = plan.placement.nodes[: plan.schedule.n_ranks] if isinstance(plan, Plan) else ()
        what += placement_in_title(solution.scenario.placement, plan.network, nodes)
    if isinstance(plan, Plan) and plan.chooses:
        what += choice_in_title(plan, results)
    costs = costs_in_title(plan.network, results, has_own_costs=plan.has_own_costs)
    costs += spreading_in_title(plan.network, solution.scenario.routing)
    costs += hashes_in_title(results)
    if not groups:
        costs += meaning_of_size(results[0].operation, results[0].n_ranks, sorted({r.size for r in results}))
    return [
        solution.scenario.name or results[0].collective,
        plan.network.name,
        *f"{what}, engine {engines}, {costs}".split(", "),
    ]


def choice_in_title(plan: Plan, results: Sequence[Result]) -> str:
    """Return, after a comma, what a library chooses at the largest size, and from which size on it does."""
    sizes = sorted({result.size for result in results})
    choices = [plan.choice_at(size) for size in sizes]
    if not choices[-1]:
        return ""
    first = len(choices)
    while first and choices[first - 1] == choices[-1]:
        first -= 1
    return f", {choices[-1]}" + (f" from {format_size(sizes[first])}" if first else "")


def least_of_run(solution: Solution) -> list[str]:
    """Return what a narrow terminal leaves out of the title of a solution, the least important first."""
    plan, results = solution.plan, solution.results
    said = least_in_title(plan.network, results, solution.scenario.routing, has_own_costs=plan.has_own_costs)
    meaning = meaning_of_size(results[0].operation, results[0].n_ranks, sorted({r.size for r in results}))
    return [*said, meaning] if meaning else said


def titles_beside(solutions: Sequence[Solution]) -> tuple[str, list[str]]:
    """Return the title of several solutions on one network, and what the title of each says beside it.

    Where networks have different names there is no common title.
    """
    phrases = [title_of(solution) for solution in solutions]
    if len({network for _, network, *_ in phrases}) > 1:
        return "", [f"{name} on {network}, {', '.join(rest)}" for name, network, *rest in phrases]
    common = [phrase for phrase in phrases[0][2:] if all(phrase in rest for _, _, *rest in phrases)]
    own = [", ".join((name, *(solution for solution in rest if solution not in common))) for name, _, *rest in phrases]
    return f"{count_text(len(solutions), 'collective')} on {phrases[0][1]}, {', '.join(common)}", own
