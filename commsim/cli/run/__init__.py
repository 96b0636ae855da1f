"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from commsim.cli.flags import Verb
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.remark import Remark
from commsim.core.units import format_size
from commsim.prediction.read import JOBS_ONLY
from commsim.report.answer import Answer, Part, remarks
from commsim.report.terminal import progress

from .config import Config, without_effect
from .tables import Answered, answered_by, resolved_network

if TYPE_CHECKING:
    from commsim.prediction.solve import Solution

    from .renderings import Render

RENDERED = ("bound", "draw", "osu", "report")
SIZES = ("size", "minbytes", "maxbytes", "stepfactor", "stepbytes")
# Relative difference of times that are the same.
SAME = 1e-9
NO_BOUND = "--bound goes with --collective alone; commsim bound ranks the algorithms of an operation"
OF_ONE_COLLECTIVE = "--osu is the table of one collective"


class Refused(NamedTuple):
    """Flags that have no meaning for a question.

    Parameters
    ----------
    flags : tuple of str
        Names of the flags.
    why : str
        Reason; ``{}`` is the flag that was given.
    when : callable, optional
        Function from all flags to whether these have no meaning. Default: they never have one.
    """

    flags: tuple[str, ...]
    why: str
    when: Callable[[Config], bool] | None = None


OF_RANKINGS: tuple[Refused, ...] = (
    Refused(("group",), "--group goes with --collective, not with --operation or --algorithm"),
    Refused(("compressor",), "--compressor goes with --collective alone"),
    Refused(("osu",), OF_ONE_COLLECTIVE),
)
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


class Kind(NamedTuple):
    """A kind of question.

    Parameters
    ----------
    is_asked : callable
        Function from the flags to whether they ask it.
    answer : callable
        Function from the flags and the sizes in bytes to the answer.
    refused : tuple of Refused
        Flags that have no meaning for it.
    """

    is_asked: Callable[[Config], bool]
    answer: Callable[[Config, Sequence[int]], Answered]
    refused: tuple[Refused, ...]


def run(config: Config) -> Answer:
    """Predict what the flags ask for."""
    sizes = config.sizes()
    kind = next(kind for kind in KINDS if kind.is_asked(config))
    for refused in kind.refused:
        for given in config.given(*refused.flags) if refused.when is None or refused.when(config) else ():
            raise InputError(refused.why.format(given))
    renderings = _renderings(config)
    answered = kind.answer(config, sizes)
    parts = [*remarks(without_effect(config)), *answered.parts]
    for render in renderings:
        parts += render(config, answered)
    more = answered.more | {"network": resolved_network(answered.network)}
    return Answer(parts, answered.rows, config.flags("report") | answered.chosen, more)


def _renderings(config: Config) -> list[Render]:
    """Return what else is made of the answer; a file that cannot be written is refused before anything is computed."""
    if not config.given(*RENDERED):
        return []
    from .renderings import renderings_of

    return renderings_of(config)


def _jobs(config: Config, _: Sequence[int]) -> Answered:
    from commsim.jobs.cli.together import answer_jobs

    return answer_jobs(config)


def _ranking(config: Config, sizes: Sequence[int]) -> Answered:
    from commsim.ranking.cli.operation import answer_ranking

    return answer_ranking(config, sizes)


def _algorithms(config: Config, sizes: Sequence[int]) -> Answered:
    from commsim.ranking.cli.operation import answer_algorithms

    return answer_algorithms(config, sizes)


def _collectives(config: Config, sizes: Sequence[int]) -> Answered:
    from commsim.prediction.inputs import load_network
    from commsim.prediction.solve import solve

    network = load_network(config.topology)
    scenarios = [config.scenario(spec, network) for spec in config.collective or (None,)]
    solutions: list[Solution] = []
    left_out: dict[str, NoClosedFormError] = {}
    for one in scenarios:
        try:
            solutions.append(solve(one, sizes, over=functools.partial(progress, what=one.name)))
        except NoClosedFormError as error:  # the others may have one
            left_out[one.name] = error
    if not solutions:
        raise next(iter(left_out.values()))
    skipped = [Remark("skipped", f"skipped: {name}: {error}", needed=True) for name, error in left_out.items()]
    ranked, unlike = list[Part](), list[Remark]()
    if len(solutions) > 1:
        unlike, ranked = _unlike(solutions), _ranked(config, solutions)
    answered = answered_by(config, solutions, remarks(skipped), brief=bool(ranked) and len(sizes) == 1)
    answered = dataclasses.replace(answered, parts=[*answered.parts, *ranked, *remarks(unlike)])
    names = tuple(one.scenario.name for one in solutions)
    return dataclasses.replace(answered, chosen=answered.chosen | {"collective": names, "operation": None})


def _unlike(solutions: Sequence[Solution]) -> list[Remark]:
    """Describe that collectives that are compared have different numbers of ranks, since servers need some of them."""
    from collectives import COLLECTIVES

    schedules = [schedule for one in solutions for schedule in one.plan.schedules[:1]]
    n_ranks = [schedule.n_ranks for schedule in schedules]
    if len(set(n_ranks)) < 2:
        return []
    fewer = dict.fromkeys(one.name for one in schedules if one.n_helpers and one.n_ranks < max(n_ranks))
    beside = [
        f"{name}:colocated=true"
        for name in fewer
        if name in COLLECTIVES and "colocated" in COLLECTIVES[name].parameters
    ]
    numbers = ", ".join(map(str, dict.fromkeys(n_ranks)))
    told = f"compared with different numbers of ranks, {numbers}: --ranks {min(n_ranks)} gives all the same"
    more = f"{' and '.join(beside)} puts the helpers beside ranks" if beside else ""
    return [Remark("ranks-differ", told, max(n_ranks) / min(n_ranks) - 1, needed=True, details=more)]


def _ranked(config: Config, solutions: Sequence[Solution]) -> list[Part]:
    """Rank collectives of one operation in one table, and name the sizes where the fastest changes."""
    from commsim.prediction.bounds.limited_by import limit_of
    from commsim.prediction.plans.dense import Plan
    from commsim.ranking.contenders import priced_apart
    from commsim.ranking.tables_of_questions import table_of_ranking

    operations = {one.results[0].operation for one in solutions if one.results}
    named = {one.scenario.name or str(one.scenario.collective): one for one in solutions}
    found = {name: {r.size: r for r in one.results} for name, one in named.items()}
    sizes = sorted(set.intersection(*(set(one) for one in found.values())))
    if len(operations) != 1 or len(named) < 2 or config.group or not sizes:
        return []
    by_size = {
        int(size): sorted(((name, of[size]) for name, of in found.items()), key=lambda one: (one[1].time, one[0]))
        for size in sizes
    }
    dense = {name: one.plan for name, one in named.items() if isinstance(one.plan, Plan)}
    apart = priced_apart(dense, sizes[0]) if dense else []
    table = table_of_ranking(by_size, f"{operations.pop()}: {len(found)} collectives, the fastest first")
    limits = [limit_of(named[name].plan, result) for order in by_size.values() for name, result in order]
    if any(limits):
        rows = [[*row, str(limit or "-")] for row, limit in zip(table.rows, limits, strict=True)]
        least = [*table.least, "limited_by"]
        table = dataclasses.replace(table, columns=[*table.columns, "limited_by"], rows=rows, least=least)
    times = {name: {size: result.time for size, result in of.items()} for name, of in found.items()}
    return [table, *remarks([*_changes(config, times, sizes), *apart])]


def _changes(config: Config, times: Mapping[str, Mapping[float, float]], sizes: Sequence[float]) -> list[Remark]:
    """Name the sizes between which another one of the collectives that are compared is the fastest."""
    fastest: list[tuple[str, float, float]] = []  # with its first and its last size
    for size in sizes:
        least = min(one[size] for one in times.values())
        level = [name for name, one in times.items() if one[size] <= least * (1 + SAME)]
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


# The first kind that is asked is answered. What a kind of work does not honour, its plan refuses.
KINDS = (
    Kind(
        lambda config: config.jobs is not None, _jobs,
        (Refused(("algorithm", "synthesized", "datatype", *SIZES, *RENDERED),
                 JOBS_ONLY),),
    ),
    Kind(lambda config: config.compares, _ranking, (*OF_RANKINGS, Refused(("bound",), NO_BOUND))),
    Kind(lambda config: config.is_ranking, _algorithms, OF_RANKINGS),
    Kind(lambda _: True, _collectives, OF_COLLECTIVES),
)  # fmt: skip

COMMANDS = {"run": Verb(Config, run)}
