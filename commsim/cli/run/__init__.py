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

from .config import RunConfig, without_effect
from .tables import RunTables, answered_by, resolved_network

if TYPE_CHECKING:
    from commsim.prediction.solve import Solution

    from .renderings import Render

RENDERED = ("bound", "draw", "osu", "report")
SIZES = ("size", "minbytes", "maxbytes", "stepfactor", "stepbytes")
# Relative difference of times that are the same.
SAME = 1e-9
NO_BOUND = "--bound goes with --collective alone; commsim bound ranks the algorithms of an operation"
OF_ONE_COLLECTIVE = "--osu is the table of one collective"


class FlagRefusal(NamedTuple):
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
    when: Callable[[RunConfig], bool] | None = None


OF_RANKINGS: tuple[FlagRefusal, ...] = (
    FlagRefusal(("group",), "--group goes with --collective, not with --operation or --algorithm"),
    FlagRefusal(("compressor",), "--compressor goes with --collective alone"),
    FlagRefusal(("osu",), OF_ONE_COLLECTIVE),
)
OF_COLLECTIVES: tuple[FlagRefusal, ...] = (
    FlagRefusal(("algorithm",), "--algorithm needs --operation, such as --operation all_reduce"),
    FlagRefusal(("synthesized",), "--synthesized goes with --operation, such as --operation all_reduce"),
    FlagRefusal(
        ("bound",), "--bound does not go with --group: it is of one collective alone", lambda config: bool(config.group)
    ),
    FlagRefusal(
        ("bound",),
        "--bound does not go with --compressor: it is of data that is not compressed",
        lambda config: config.compressor is not None,
    ),
    FlagRefusal(("osu",), OF_ONE_COLLECTIVE, lambda config: bool(config.group) or len(config.collective) > 1),
)


class QuestionKind(NamedTuple):
    """A kind of question.

    Parameters
    ----------
    is_asked : callable
        Function from the flags to whether they ask it.
    answer : callable
        Function from the flags and the sizes in bytes to the answer.
    refused : tuple of FlagRefusal
        Flags that have no meaning for it.
    """

    is_asked: Callable[[RunConfig], bool]
    answer: Callable[[RunConfig, Sequence[int]], RunTables]
    refused: tuple[FlagRefusal, ...]


def run(config: RunConfig) -> Answer:
    """Predict what the flags ask for."""
    sizes = config.sizes()
    kind = next(kind for kind in KINDS if kind.is_asked(config))
    for refused in kind.refused:
        for flag in config.given(*refused.flags) if refused.when is None or refused.when(config) else ():
            raise InputError(refused.why.format(flag))
    renderings = _renderings(config)
    answered = kind.answer(config, sizes)
    parts = [*remarks(without_effect(config)), *answered.parts]
    for render in renderings:
        parts += render(config, answered)
    more = answered.more | {"network": resolved_network(answered.network)}
    return Answer(parts, answered.rows, config.flags("report") | answered.chosen, more)


def _renderings(config: RunConfig) -> list[Render]:
    """Return what else is made of the answer; a file that cannot be written is refused before anything is computed."""
    if not config.given(*RENDERED):
        return []
    from .renderings import renderings_of

    return renderings_of(config)


def _jobs(config: RunConfig, _: Sequence[int]) -> RunTables:
    from commsim.jobs.cli.together import answer_jobs

    return answer_jobs(config)


def _ranking(config: RunConfig, sizes: Sequence[int]) -> RunTables:
    from commsim.ranking.cli.operation import answer_ranking

    return answer_ranking(config, sizes)


def _algorithms(config: RunConfig, sizes: Sequence[int]) -> RunTables:
    from commsim.ranking.cli.operation import answer_algorithms

    return answer_algorithms(config, sizes)


def _collectives(config: RunConfig, sizes: Sequence[int]) -> RunTables:
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
        unlike, ranked = _unlike(solutions), _ranked(config, solutions)
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


def _ranked(config: RunConfig, solutions: Sequence[Solution]) -> list[Part]:
    """Rank collectives of one operation in one table, and name the sizes where the fastest changes."""
    from commsim.prediction.bounds.limited_by import limit_of
    from commsim.prediction.plans.dense import Plan
    from commsim.ranking.contenders import priced_apart
    from commsim.ranking.tables_of_questions import table_of_ranking

    operations = {solution.results[0].operation for solution in solutions if solution.results}
    named = {solution.scenario.name or str(solution.scenario.collective): solution for solution in solutions}
    results_by_name = {name: {r.size: r for r in solution.results} for name, solution in named.items()}
    sizes = sorted(set.intersection(*(set(one) for one in results_by_name.values())))
    if len(operations) != 1 or len(named) < 2 or config.group or not sizes:
        return []
    by_size = {
        int(size): sorted(
            ((name, of[size]) for name, of in results_by_name.items()), key=lambda one: (one[1].time, one[0])
        )
        for size in sizes
    }
    dense = {name: solution.plan for name, solution in named.items() if isinstance(solution.plan, Plan)}
    apart = priced_apart(dense, sizes[0]) if dense else []
    table = table_of_ranking(by_size, f"{operations.pop()}: {len(results_by_name)} collectives, the fastest first")
    limits = [limit_of(named[name].plan, result) for order in by_size.values() for name, result in order]
    if any(limits):
        rows = [[*row, str(limit or "-")] for row, limit in zip(table.rows, limits, strict=True)]
        least = [*table.least, "limited_by"]
        table = dataclasses.replace(table, columns=[*table.columns, "limited_by"], rows=rows, least=least)
    times = {name: {size: result.time for size, result in of.items()} for name, of in results_by_name.items()}
    return [table, *remarks([*_changes(config, times, sizes), *apart])]


def _changes(config: RunConfig, times: Mapping[str, Mapping[float, float]], sizes: Sequence[float]) -> list[Remark]:
    """Name the sizes between which another one of the collectives that are compared is the fastest."""
    fastest: list[tuple[str, float, float]] = []  # with its first and its last size
    for size in sizes:
        least = min(time[size] for time in times.values())
        level = [name for name, time in times.items() if time[size] <= least * (1 + SAME)]
        if fastest and fastest[-1][0] in level:
            fastest[-1] = (*fastest[-1][:2], size)
        else:
            fastest.append((level[0], size, size))
    if len(fastest) < 2:
        return []
    first, *others = fastest
    lines = [
        f"{first[0]} up to {format_size(first[2])}",
        *(f"{name} from {format_size(low)}" for name, low, _ in others),
    ]
    finer = "-i" if config.stepbytes is not None else "-f"
    more = f"more sizes ({finer}) say it more closely"
    return [Remark("best", f"fastest at these sizes: {', '.join(lines)}", needed=True, details=more)]


# The first kind that is asked is answered. What a kind of work does not honour, its plan refuses.
KINDS = (
    QuestionKind(
        lambda config: config.jobs is not None, _jobs,
        (FlagRefusal(("algorithm", "synthesized", "datatype", *SIZES, *RENDERED),
                 JOBS_ONLY),),
    ),
    QuestionKind(lambda config: config.compares, _ranking, (*OF_RANKINGS, FlagRefusal(("bound",), NO_BOUND))),
    QuestionKind(lambda config: config.is_ranking, _algorithms, OF_RANKINGS),
    QuestionKind(lambda _: True, _collectives, OF_COLLECTIVES),
)  # fmt: skip

COMMANDS = {"run": Verb(RunConfig, run)}
