"""``commsim run --operation all_reduce``: every algorithm of an operation, ranked, and the crossover sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import counted
from commsim.report.answer import remarks
from commsim.report.terminal import progress

from .config import Config
from .tables import Answered, Row, answered_by, answered_of

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.scenario import Plan
    from commsim.scenario.ranking import Ranking
    from commsim.scenario.scenario import Scenario

NAME = "synthesized"


def answer_ranking(config: Config, sizes: Sequence[int]) -> Answered:
    """Rank all algorithms of --operation; --collective adds to what is compared.

    Parameters
    ----------
    config : Config
        All flags.
    sizes : sequence of int, bytes
        Sizes at which the algorithms are compared.

    Raises
    ------
    InputError
        If the operation is unknown, an algorithm is one of another operation, or none can run.
    """
    from commsim.report.tables_of_questions import parts_of_ranking
    from commsim.scenario.ranking import rank

    scenario = config.scenario("")
    ranking = rank(
        scenario, config.operation or "", sizes, named=config.collective, more=_synthesized(config, scenario),
        assume_overhead=config.assumes_overhead,
    )  # fmt: skip
    plans = ranking.plans
    first = next(iter(plans.values()))
    n_ranks = counted(first.schedule.n_ranks, "rank")
    title = f"{config.operation} on {first.network.name}, {n_ranks}, engine {scenario.wish.engine}"
    parts = parts_of_ranking(ranking, title)
    rows = [
        Row(result, plans[name].network, plans[name].schedule, config.datatype)
        for order in ranking.by_size.values()
        for name, result in order
    ]
    return answered_of(config, parts, rows, rows[0].network, more=_json(ranking))


def answer_algorithms(config: Config, sizes: Sequence[int]) -> Answered:
    """Show the table of each algorithm of --operation that was asked for, all with the same number of ranks."""
    from commsim.scenario.contenders import algorithms_for, prepare_all, require_operation, skipped
    from commsim.scenario.solve import solve

    scenario, operation = config.scenario(""), config.operation or ""
    scenario.wish.require_engine("--operation")
    named = (*([] if config.algorithm == "all" else [config.algorithm or ""]), *config.collective)
    for spec in named:
        require_operation(spec, operation)
    every = algorithms_for(operation, scenario.network) if config.algorithm == "all" else []
    specs = list(dict.fromkeys((*every, *named)))
    plans, left_out = prepare_all(
        specs, scenario.network, n_ranks=scenario.n_ranks, named=named,
        probe=lambda _, plan: plan.run(plan.data.size if plan.data and plan.data.size else sizes[0], scenario.wish),
        **scenario.placing,
    )  # fmt: skip
    for spec in named:
        if spec in left_out:
            raise InputError(left_out[spec])
    plans |= {name: make(scenario.network) for name, make in _synthesized(config, scenario).items()}
    said = remarks((*scenario.remarks, *skipped(left_out)))
    of_one = {spec: dataclasses.replace(scenario, collective=spec, remarks=()) for spec in plans}
    solutions = [solve(of_one[spec], sizes, plan=plan) for spec, plan in progress(list(plans.items()), operation)]
    return dataclasses.replace(answered_by(config, solutions, said), more={"left_out": left_out})


def _synthesized(config: Config, scenario: Scenario) -> dict[str, Callable[[Network], Plan]]:
    """Return what makes the plan of synthesized schedules on a network, where that is asked for."""
    if not config.synthesized:
        return {}
    from commsim.scenario.build import plan_collective

    # synthesized schedules pin their routes
    asked = dataclasses.replace(scenario, collective=f"{NAME}_{config.operation}", routing=None)
    return {NAME: lambda network: plan_collective(dataclasses.replace(asked, network=network))}


def _json(ranking: Ranking) -> dict[str, Any]:
    from commsim.report.tables_of_questions import ratio

    rows = [
        {"size_B": size, "algorithms": [
            {"algorithm": name, "time_s": r.time, "times_best": ratio(r.time, order[0][1].time)} for name, r in order
        ]}
        for size, order in ranking.by_size.items()
    ]  # fmt: skip
    crossovers = [{"low_B": c.low, "high_B": c.high, "before": c.before, "after": c.after} for c in ranking.crossovers]
    return {"left_out": dict(ranking.left_out), "ranking": rows, "crossovers": crossovers}
