"""``commsim run --operation all_reduce``: every algorithm of an operation, ranked, and the crossover sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.report.answer import Part, Table, remarks

from .config import Config
from .tables import Row, parts_of

if TYPE_CHECKING:
    from commsim.core.result import Result
    from commsim.scenario.ranking import Ranking
    from commsim.scenario.scenario import Scenario

COLUMNS = ["size(B)", "rank", "algorithm", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "times_best"]
LEAST = ["algbw(GB/s)", "busbw(GB/s)"]


def ranked(config: Config, sizes: Sequence[int]) -> tuple[list[Part], list[Row], dict[str, Any]]:
    """Predict what --operation and --algorithm ask for; --collective adds to what is compared.

    Parameters
    ----------
    config : Config
        All flags.
    sizes : sequence of int, bytes
        Sizes at which the algorithms are compared.

    Returns
    -------
    list of Part, list of Row, dict
        Tables and remarks, all results, and what else the JSON has.

    Raises
    ------
    InputError
        If the operation is unknown, an algorithm is one of another operation, or none can run.
    """
    if config.operation is None:
        raise InputError("--algorithm needs --operation, such as --operation all_reduce")
    from commsim.scenario.ranking import rank

    scenario = config.scenario("")
    if config.algorithm not in (None, "best"):
        return _one_by_one(config, scenario, sizes)
    ranking = rank(
        scenario, config.operation, sizes, named=config.collective, more=_synthesized(config),
        assume_overhead=config.assumes_overhead,
    )  # fmt: skip
    plans = ranking.plans
    first = next(iter(plans.values()))
    title = f"{config.operation} on {first.network.name}, {first.schedule.n_ranks} ranks, engine {scenario.wish.engine}"
    parts = [*remarks(ranking.derived), Table(COLUMNS, _cells(ranking), title, LEAST), *remarks(ranking.remarks)]
    rows = [
        Row(result, plans[name].network, plans[name].schedule, config.datatype)
        for order in ranking.by_size.values()
        for name, result in order
    ]
    return parts, rows, _json(ranking)


def _one_by_one(
    config: Config, scenario: Scenario, sizes: Sequence[int]
) -> tuple[list[Part], list[Row], dict[str, Any]]:
    """Show the table of each algorithm that was asked for, all with the same number of ranks."""
    from commsim.scenario.contenders import algorithms_for, prepare_all, require_operation, skipped
    from commsim.scenario.solve import solve

    operation = config.operation or ""
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
    parts, rows = remarks((*scenario.remarks, *skipped(left_out))), list[Row]()
    for spec, plan in plans.items():
        of_one = dataclasses.replace(scenario, collective=spec, remarks=())
        solution = solve(of_one, sizes, plan=plan)
        parts += parts_of(solution, config.datatype, verbose=config.verbose)
        rows += [Row(result, plan.network, plan.schedule, config.datatype) for result in solution.results]
    return parts, rows, {"left_out": left_out}


def _synthesized(config: Config) -> dict[str, Any] | None:
    """Return what makes the plan of synthesized schedules, where that is asked for."""
    if not config.synthesized:
        return None
    from commsim.synthesis.ready import NAME, prepare_synthesized

    operation, seed = config.operation or "", config.seed or 0

    def make(network: Any) -> Any:
        return prepare_synthesized(operation, network, n_ranks=config.ranks, placement=config.placement, seed=seed)

    return {NAME: make}


def _json(ranking: Ranking) -> dict[str, Any]:
    rows = [
        {"size_B": size, "algorithms": [{"algorithm": name, "time_s": r.time, "times_best": _ratio(r, order[0][1])}
                                        for name, r in order]}
        for size, order in ranking.by_size.items()
    ]  # fmt: skip
    crossovers = [{"low_B": c.low, "high_B": c.high, "before": c.before, "after": c.after} for c in ranking.crossovers]
    return {"left_out": dict(ranking.left_out), "ranking": rows, "crossovers": crossovers}


def _cells(ranking: Ranking) -> list[list[str]]:
    return [
        [
            f"{size}",
            f"{i + 1}",
            name,
            f"{r.time * 1e6:.2f}",
            f"{r.algbw / 1e9:.3f}",
            f"{r.busbw / 1e9:.3f}",
            f"{_ratio(r, order[0][1]):.2f}x",
        ]
        for size, order in ranking.by_size.items()
        for i, (name, r) in enumerate(order)
    ]


def _ratio(result: Result, best: Result) -> float:
    return result.time / best.time if best.time else 1.0
