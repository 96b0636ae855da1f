"""What ``commsim run`` says of several collectives of one operation, and of the lower bound: ``--bound``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commsim.cli.run_kinds import Answered, Rendering
from commsim.core.remark import Remark
from commsim.core.units import format_size
from commsim.prediction.bounds.limited_by import limit_of
from commsim.prediction.plans.dense import Plan
from commsim.ranking.contenders import launch_in_title, launch_of, priced_apart, with_launch
from commsim.ranking.rank_algorithms import TIE, fastest_first
from commsim.ranking.synthesis.over_bound import about_bound
from commsim.ranking.tables_of_questions import table_of_ranking
from commsim.report.answer import Part, remarks

if TYPE_CHECKING:
    from commsim.cli.run_flags import RunConfig
    from commsim.core.result import Result
    from commsim.prediction.solve import Solution


def _bounds(_: RunConfig, answered: Answered) -> list[Part]:
    """Return the ratio of each time to the lower bound."""
    several = len(answered.solutions) > 1
    known = ((one.scenario.name if several else "", one.plan, one.results) for one in answered.solutions)
    return remarks(
        line for name, plan, some in known if isinstance(plan, Plan) for line in about_bound(plan, some, name)
    )


def ranked(config: RunConfig, solutions: Sequence[Solution]) -> list[Part]:
    """Rank collectives of one operation in one table, and name the sizes where the fastest changes."""
    operations = {one.results[0].operation for one in solutions if one.results}
    named = {one.scenario.name or str(one.scenario.collective): one for one in solutions}
    found = {name: {r.size: r for r in one.results} for name, one in named.items()}
    sizes = sorted(set.intersection(*(set(one) for one in found.values())))
    if len(operations) != 1 or len(named) < 2 or config.group or not sizes:
        return []
    dense = {name: one.plan for name, one in named.items() if isinstance(one.plan, Plan)}
    launch = launch_of(dense.values())
    for name, plan in dense.items():
        found[name] = {size: with_launch(plan, result, launch) for size, result in found[name].items()}
    by_size = {int(size): fastest_first((name, of[size]) for name, of in found.items()) for size in sizes}
    apart = priced_apart(dense, sizes[0]) if dense else []
    title = f"{operations.pop()}: {len(found)} collectives, the fastest first{launch_in_title(launch)}"
    table = table_of_ranking(by_size, title)
    limits = [limit_of(named[name].plan, result) for order in by_size.values() for name, result in order]
    if any(limits):
        rows = [[*row, str(limit or "-")] for row, limit in zip(table.rows, limits, strict=True)]
        least = [*table.least, "limited_by"]
        table = dataclasses.replace(table, columns=[*table.columns, "limited_by"], rows=rows, least=least)
    return [table, *remarks([*_changes(config, by_size), *apart])]


def _changes(config: RunConfig, by_size: Mapping[int, Sequence[tuple[str, Result]]]) -> list[Remark]:
    """Name the sizes between which another one of the collectives that are compared is the fastest."""
    fastest: list[tuple[str, float, float]] = []  # with its first and its last size
    for size, order in by_size.items():
        level = [name for name, result in order if result.time <= order[0][1].time * (1 + TIE)]
        if fastest and fastest[-1][0] in level:
            fastest[-1] = (*fastest[-1][:2], size)
        else:
            fastest.append((level[0], size, size))
    if len(fastest) < 2:
        return []
    first, *others = fastest
    told = [
        f"{first[0]} up to {format_size(first[2])}",
        *(f"{name} from {format_size(low)}" for name, low, _ in others),
    ]
    finer = "-i" if config.stepbytes is not None else "-f"
    more = f"more sizes ({finer}) say it more closely"
    return [Remark("best", f"fastest at these sizes: {', '.join(told)}", needed=True, details=more)]


BOUND = Rendering(lambda _: None, _bounds)
