"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Verb
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.extensions import house
from commsim.report.answer import Answer, LazyRows, Lines, Part, Remarks, remarks, without
from commsim.report.table_of_run import RunRow, json_row, parts_of, rows_of
from commsim.report.terminal import progress
from commsim.report.titles import titles_beside

from .run_flags import RunConfig, without_effect
from .run_kinds import OF_ONE_COLLECTIVE, RENDERED, Answered, Kind, Refused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commsim.core.network import Network
    from commsim.prediction.solve import Solution


EXAMPLES = {
    "run": """
        commsim run ring_all_reduce --topology star:n_hosts=8 -b 1M -e 64M
        commsim run nccl --topology dgx-h100@star:machines=4 -b 1G -e 1G
        commsim run --operation all_reduce --topology fat_tree:k=4 -b 64M -e 64M
        commsim run direct_all_to_all --topology leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4 --fail \
            switch:spine0 --draw load.svg
        commsim run ring_all_reduce --topology star:n_hosts=4 --engine packet --preset uec -b 64K -e 64K""",
}

OF_COLLECTIVES: tuple[Refused, ...] = (
    Refused(("algorithm",), "--algorithm needs --operation, such as --operation all_reduce"),
    Refused(("synthesized",), "--synthesized goes with --operation, such as --operation all_reduce"),
    Refused(
        ("bound",), "--bound does not go with --group: it is of one collective alone", lambda config: bool(config.group)
    ),
    Refused(
        ("bound",),
        "--bound does not go with --compressor: it is of data that is not compressed",
        lambda config: config.compressor is not None,
    ),
    Refused(("osu",), OF_ONE_COLLECTIVE, lambda config: bool(config.group) or len(config.collective) > 1),
)


def run(config: RunConfig) -> Answer:
    """Predict what the flags ask for."""
    sizes = config.sizes()
    kind: Kind = house().questions[config.question] if config.question else COLLECTIVES
    for refused in kind.refused:
        flags = config.given(*refused.flags)
        if flags and (refused.when is None or refused.when(config)):
            raise InputError(refused.why.format(flags[0]))
    renderings = {name: house().renderings[name] for name in RENDERED if getattr(config, name)}
    for name, one in renderings.items():
        one.check(getattr(config, name))  # a file that cannot be written is refused before anything is computed
    answered = kind.answer(config, sizes)
    unused = without_effect(config) if config.given("iters", "warmup_iters") else []
    parts = [*remarks(unused), *answered.parts]
    codes = {one.code for part in parts if isinstance(part, Remarks) for one in part.items}
    if SIZE_UNUSED in codes and not config.asks_sizes:  # of the usual size it is no news
        parts = without(parts, SIZE_UNUSED)
    for one in renderings.values():
        parts += one.render(config, answered)
    more = answered.more | {"network": functools.partial(resolved_network, answered.network)}
    return Answer(parts, answered.rows, config.flags("report") | answered.chosen, more)


def _collectives(config: RunConfig, sizes: Sequence[int]) -> Answered:
    from commsim.prediction.inputs import load_network
    from commsim.prediction.solve import solve

    network = load_network(config.topology)
    scenarios = [config.scenario(spec, network) for spec in config.collective or (None,)]
    solutions: list[Solution] = []
    left_out: dict[str, NoClosedFormError] = {}
    for scenario in scenarios:
        try:
            solutions.append(solve(scenario, sizes, over=functools.partial(progress, what=scenario.work.title)))
        except NoClosedFormError as error:  # the others may have one
            left_out[scenario.work.title] = error
    if not solutions:
        raise next(iter(left_out.values()))
    skipped = [Remark("skipped", f"skipped: {name}: {error}", needed=True) for name, error in left_out.items()]
    ranked, unlike = list[Part](), list[Remark]()
    if len(solutions) > 1:
        unlike = _unlike(solutions)
        rank = house().services.get("ranking of collectives")
        ranked = rank(config, solutions) if rank else []
    answered = answered_by(config, solutions, remarks(skipped), brief=bool(ranked) and len(sizes) == 1)
    answered = dataclasses.replace(answered, parts=[*answered.parts, *ranked, *remarks(unlike)])
    names = tuple(solution.scenario.work.title for solution in solutions)
    return dataclasses.replace(answered, chosen=answered.chosen | {"collective": names, "operation": None})


def _unlike(solutions: Sequence[Solution]) -> list[Remark]:
    """Describe that collectives that are compared have different numbers of ranks, since servers need some of them."""
    from collectives import COLLECTIVES

    schedules = [schedule for solution in solutions for schedule in solution.plan.schedules[:1]]
    n_ranks = [schedule.n_ranks for schedule in schedules]
    if len(set(n_ranks)) < 2:
        return []
    fewer = dict.fromkeys(
        schedule.name for schedule in schedules if schedule.n_helpers and schedule.n_ranks < max(n_ranks)
    )
    beside = [
        f"{name}:colocated=true"
        for name in fewer
        if name in COLLECTIVES and "colocated" in COLLECTIVES[name].parameters
    ]
    numbers = ", ".join(map(str, dict.fromkeys(n_ranks)))
    text = f"compared with different numbers of ranks, {numbers}: --ranks {min(n_ranks)} gives all the same"
    more = f"{' and '.join(beside)} puts the helpers beside ranks" if beside else ""
    return [Remark("ranks-differ", text, max(n_ranks) / min(n_ranks) - 1, needed=True, details=more)]


def answered_by(
    config: RunConfig, solutions: Sequence[Solution], notes: Sequence[Part] = (), *, brief: bool = False
) -> Answered:
    """Return the table of each solution, below what is said of all.

    Parameters
    ----------
    config : RunConfig
        Flags.
    solutions : sequence of Solution
        Solutions of single collectives, or of one that groups run.
    notes : sequence of Part
        Remarks on all of them.
    brief : bool
        Whether only ``-v`` shows the table of each.
    """
    parts, rows = [*notes], list[RunRow]()
    common, titles = titles_beside(solutions) if len(solutions) > 1 else ("", [""])
    parts += [Lines((f"# {common}",))] if common else []
    for solution, title in zip(solutions, titles, strict=True):
        own = rows_of(solution, config.datatype, config.group)
        parts += parts_of(solution, own, config.group, config.verbose, title, brief)
        rows += own
    first = solutions[0].scenario
    known = config.engine in house().reports
    more = house().reports[config.engine].more(first.wish) if known else {}
    results, chosen = [row.result for row in rows], {"engine": config.engine or "flow"}
    return Answered(parts, LazyRows(json_row, rows), results, first.network, more, solutions, chosen)


def resolved_network(network: Network) -> dict[str, Any]:
    """Return what a specification has become, with defaults, faults and costs: for the JSON of a prediction."""
    return {
        "name": network.name,
        "n_nodes": network.n_nodes,
        "n_links": network.n_links,
        "routing": network.routing,
        "bandwidth_Bps": _extremes(network.bandwidth),
        "latency_s": _extremes(network.latency),
        "overhead_s": float(network.overhead.max(initial=0.0)),
        "gamma_s_per_B": float(network.gamma.max(initial=0.0)),
        "hardware": network.hardware,
    }


def _extremes(values: NDArray[np.float64]) -> list[float]:
    """Return the smallest and the largest, or nothing of nothing."""
    return [float(values.min()), float(values.max())] if values.size else []


COLLECTIVES = Kind(_collectives, OF_COLLECTIVES)

COMMANDS = {"run": Verb(RunConfig, run)}
