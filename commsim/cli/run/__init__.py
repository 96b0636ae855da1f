"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.cli.flags import Verb
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.extensions import house
from commsim.report.answer import Answer, Part, Remarks, remarks, without
from commsim.report.terminal import progress

from .answered import Answered, answered_by, resolved_network
from .config import RunConfig, without_effect
from .kinds import OF_ONE_COLLECTIVE, RENDERED, Kind, Refused

if TYPE_CHECKING:
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
    parts = [*remarks(without_effect(config)), *answered.parts]
    codes = {one.code for part in parts if isinstance(part, Remarks) for one in part.items}
    if SIZE_UNUSED in codes and not config.asks_sizes:  # of the usual size it is no news
        parts = without(parts, SIZE_UNUSED)
    for one in renderings.values():
        parts += one.render(config, answered)
    more = answered.more | {"network": resolved_network(answered.network)}
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
            solutions.append(solve(scenario, sizes, over=functools.partial(progress, what=scenario.name)))
        except NoClosedFormError as error:  # the others may have one
            left_out[scenario.name] = error
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
    names = tuple(solution.scenario.name for solution in solutions)
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


COLLECTIVES = Kind(_collectives, OF_COLLECTIVES)

COMMANDS = {"run": Verb(RunConfig, run)}
