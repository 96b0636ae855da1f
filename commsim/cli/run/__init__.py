"""``commsim run``: predict how long collectives take, in the table of nccl-tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.report.answer import Answer, Part, remarks
from commsim.report.table import progress

from ..flags import Verb
from .config import Config, without_effect
from .tables import Row, json_row, parts_of, resolved_network, rows_of

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.scenario.solve import Solution

_CONFLICTS = (
    ("osu", ("group", "operation"), "--osu is the table of one collective"),
    ("group", ("operation", "algorithm"), "--group goes with --collective, not with --operation or --algorithm"),
    ("compressor", ("group", "operation", "algorithm"), "--compressor goes with --collective alone"),
    ("flap", ("compressor",), "--flap is not modelled with --compressor"),
    ("bound", ("compressor", "group", "operation"),
     "--bound goes with --collective alone; commsim bound ranks the algorithms of an operation"),
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What was asked for, solved.

    Parameters
    ----------
    parts : list of Part
        Tables and remarks.
    rows : list of Row
        All results.
    network : Network
        Network with its faults and costs.
    more : dict
        Further keys of the JSON.
    solutions : tuple of Solution
        Solutions of single collectives.
    """

    parts: list[Part]
    rows: list[Row]
    network: Network
    more: dict[str, Any]
    solutions: tuple[Solution, ...] = ()


def run(config: Config) -> Answer:
    """Predict what the flags ask for."""
    sizes = config.sizes()
    check(config)
    if config.jobs is not None:
        from .together import answer_jobs

        return answer_jobs(config)
    answered = (_ranking if config.is_ranking else _collectives)(config, sizes)
    parts = [*remarks(without_effect(config)), *answered.parts]
    for flag, render in RENDERINGS.items():
        if getattr(config, flag):
            parts += render(config, answered)
    flags = config.flags("report") | _resolved(config, answered)
    more = answered.more | {"network": resolved_network(answered.network)}
    return Answer(parts, [json_row(row) for row in answered.rows], flags, more)


def _ranking(config: Config, sizes: Sequence[int]) -> Answered:
    from .operation import ranked

    parts, rows, more = ranked(config, sizes)
    return Answered(parts, rows, rows[0].network, more)


def _collectives(config: Config, sizes: Sequence[int]) -> Answered:
    from commsim.scenario.inputs import load_network
    from commsim.scenario.solve import solve

    network, parts, rows, solutions = load_network(config.topology), list[Part](), list[Row](), []
    for spec in config.collective or (None,):
        scenario = config.scenario(spec, network)
        solution = solve(scenario, sizes, over=functools.partial(progress, what=scenario.name))
        parts += parts_of(solution, config.datatype, config.group, config.verbose)
        rows += rows_of(solution, config.datatype, config.group)
        solutions.append(solution)
    return Answered(parts, rows, solutions[0].scenario.network, {}, tuple(solutions))


def _resolved(config: Config, answered: Answered) -> dict[str, Any]:
    """Return the flags that were chosen where they were not given: collective and engine."""
    if not answered.solutions:
        return {"engine": config.engine or "flow"}
    names = tuple(solution.scenario.name for solution in answered.solutions)
    return {"collective": names, "engine": config.engine or "flow", "operation": None}


def _bounds(config: Config, answered: Answered) -> list[Part]:  # noqa: ARG001
    """Return the ratio of each time to the lower bound."""
    from ..bound import distance

    return [part for solution in answered.solutions for part in distance(solution.plan, solution.results)]


def _picture(config: Config, answered: Answered) -> list[Part]:
    """Draw the network with the loads of the last result."""
    from commsim.report.network_picture import draw_network
    from commsim.report.paint import write_picture

    picture, notes = draw_network(answered.network, answered.rows[-1].result)
    write_picture(picture, config.draw or "")
    return remarks(f"{config.draw}: {line}" for line in (*notes, "drawn"))


def _osu_table(config: Config, answered: Answered) -> list[Part]:
    """Write the table that an OSU micro-benchmark would print."""
    from commsim.files.whole_files import replacing
    from commsim.formats.measured_text import osu_text

    with replacing(config.osu or "") as file:
        file.write(osu_text([row.result for row in answered.rows]).encode())
    return []


def _page(config: Config, answered: Answered) -> list[Part]:
    """Write the page with figures."""
    from ..report import report_run

    said = Answer(answered.parts).remarks
    chosen = dataclasses.replace(config, **_resolved(config, answered))
    return remarks(report_run(chosen, [row.result for row in answered.rows], config.report or "", said))


# What else is made of an answer, by flag.
RENDERINGS: dict[str, Callable[[Config, Answered], list[Part]]] = {
    "bound": _bounds, "draw": _picture, "osu": _osu_table, "report": _page,
}  # fmt: skip


def check(config: Config) -> None:
    """Refuse, before anything is computed, flags that do not go together, and files that cannot be written."""
    if config.draw:
        from ..flags.outputs import check_drawable

        check_drawable(config.draw)
    if config.report:
        from ..report import check_page

        check_page(config.report)
    if config.osu:
        from pathlib import Path

        from commsim.files.whole_files import check_writable

        check_writable(Path(config.osu))
    for wanted, others, why in _CONFLICTS:
        if getattr(config, wanted) and any(getattr(config, other) for other in others):
            raise InputError(why)
    if config.osu and len(config.collective) > 1:
        raise InputError("--osu is the table of one collective")
    if config.synthesized and config.operation is None:
        raise InputError("--synthesized goes with --operation, such as --operation all_reduce")


COMMANDS = {"run": Verb(Config, run)}
