"""``commsim run --operation all_reduce``: every algorithm of an operation, ranked, and the crossover sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.cli.run import answered_by
from commsim.cli.run_flags import RunConfig
from commsim.cli.run_kinds import OF_ONE_COLLECTIVE, Answered, Kind, Refused
from commsim.core.operations import meaning_of_size
from commsim.core.units import count_text
from commsim.report.answer import LazyRows, remarks
from commsim.report.table_of_run import RunRow, json_row

if TYPE_CHECKING:
    pass

NO_BOUND = "--bound goes with --collective alone; commsim bound ranks the algorithms of an operation"
OF_RANKINGS: tuple[Refused, ...] = (
    Refused(("group",), "--group goes with --collective, not with --operation or --algorithm"),
    Refused(("compressor",), "--compressor goes with --collective alone"),
    Refused(("osu",), OF_ONE_COLLECTIVE),
)


def answer_ranking(config: RunConfig, sizes: Sequence[int]) -> Answered:
    """Rank all algorithms of --operation; --collective adds to what is compared.

    Parameters
    ----------
    config : RunConfig
        All flags.
    sizes : sequence of int, bytes
        Sizes at which the algorithms are compared.

    Raises
    ------
    InputError
        If the operation is unknown, an algorithm is one of another operation, or none can run.
    """
    from commsim.packets.aggregated.plan_aggregated import AggregatedPlan
    from commsim.prediction.bounds.limited_by import limit_of
    from commsim.ranking.contenders import launch_in_title
    from commsim.ranking.rank_algorithms import rank
    from commsim.ranking.tables_of_questions import parts_of_ranking
    from commsim.report.titles import (
        costs_in_title,
        least_in_title,
        placement_in_title,
        spreading_in_title,
    )  # fmt: skip

    scenario = config.scenario("")
    ranking = rank(
        scenario, config.operation or "", sizes, named=config.collective, synthesized=config.synthesized,
    )  # fmt: skip
    plans = ranking.plans
    first = next(iter(plans.values()))
    n_ranks = count_text(first.schedule.n_ranks, "rank")
    if not scenario.is_left:
        n_ranks += placement_in_title(
            scenario.placement, first.network, first.placement.nodes[: first.schedule.n_ranks]
        )
    title = f"{config.operation} on {first.network.name}, {n_ranks}, engine {scenario.wish.engine}"
    costly = next((plan for plan in plans.values() if not isinstance(plan, AggregatedPlan)), first)
    ranked = [one for order in ranking.by_size.values() for _, one in order]
    title += f", {costs_in_title(costly.network, ranked)}{spreading_in_title(first.network, scenario.routing)}"
    title += launch_in_title(ranking.launch)
    meaning = meaning_of_size(config.operation or "", first.schedule.n_ranks, sizes)
    least = [*least_in_title(costly.network, ranked, scenario.routing), *filter(None, (meaning,))]
    parts = parts_of_ranking(ranking, title + meaning, lambda: least)
    rows = [
        RunRow(
            result,
            plans[name].network,
            plans[name].schedule,
            config.datatype,
            key=name,
            limit=limit_of(plans[name], result),
        )
        for order in ranking.by_size.values()
        for name, result in order
    ]
    results, chosen = [row.result for row in rows], {"engine": config.engine or "flow"}
    return Answered(parts, LazyRows(json_row, rows), results, rows[0].network, ranking.tree(), chosen=chosen)


def answer_algorithms(config: RunConfig, sizes: Sequence[int]) -> Answered:
    """Show the table of each algorithm of --operation that was asked for, all with the same number of ranks."""
    from commsim.ranking.contenders import skipped
    from commsim.ranking.rank_algorithms import solve_each

    scenario, operation = config.scenario(""), config.operation or ""
    specs = [] if config.algorithm == "all" else [config.algorithm or "", *config.collective]
    solutions, left_out = solve_each(
        scenario, operation, sizes, algorithms=specs, named=specs or config.collective, synthesized=config.synthesized,
    )  # fmt: skip
    notes = remarks((*scenario.remarks, *skipped(left_out)))
    return dataclasses.replace(answered_by(config, solutions, notes), more={"left_out": left_out})


RANKING = Kind(answer_ranking, (*OF_RANKINGS, Refused(("bound",), NO_BOUND)))
ALGORITHMS = Kind(answer_algorithms, OF_RANKINGS)
