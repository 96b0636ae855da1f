"""What ``commsim run`` makes of an answer beside its table: the bound, a picture, OSU's table, a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from commsim.report.answer import Answer, Part, comments, remarks

from .config import RunConfig
from .tables import RunTables

Render: TypeAlias = Callable[[RunConfig, RunTables], list[Part]]


def renderings_of(config: RunConfig) -> list[Render]:
    """Return the renderings that the flags ask for.

    Raises
    ------
    InputError
        If a file of theirs cannot be written.
    """
    renderings = [name for name in RENDERINGS if getattr(config, name)]
    for name in renderings:
        RENDERINGS[name][0](getattr(config, name))
    return [RENDERINGS[name][1] for name in renderings]


def _bounds(_: RunConfig, answered: RunTables) -> list[Part]:
    """Return the ratio of each time to the lower bound."""
    from commsim.prediction.plans.dense import Plan
    from commsim.ranking.synthesis.over_bound import about_bound

    several = len(answered.solutions) > 1
    known = (
        (solution.scenario.name if several else "", solution.plan, solution.results) for solution in answered.solutions
    )
    return remarks(
        line for name, plan, some in known if isinstance(plan, Plan) for line in about_bound(plan, some, name)
    )


def _check_picture(path: str) -> None:
    from commsim.cli.flags.outputs import check_drawable

    check_drawable(path)


def _picture(config: RunConfig, answered: RunTables) -> list[Part]:
    """Draw the network with the loads of the last result, and what its faults are."""
    from commsim.cli.flags.outputs import draw_loads
    from commsim.prediction.inputs import load_network

    whole = load_network(config.topology) if config.fail or config.scale else None
    return comments(draw_loads(answered.network, answered.results[-1], config.draw or "", whole=whole))


def _check_osu_table(path: str) -> None:
    from commsim.core.files.whole_files import check_writable

    check_writable(Path(path))


def _osu_table(config: RunConfig, answered: RunTables) -> list[Part]:
    """Write the table that an OSU micro-benchmark would print."""
    from commsim.core.files.whole_files import replacing
    from commsim.formats.measured_text import osu_text

    with replacing(config.osu or "") as file:
        file.write(osu_text(answered.results).encode())
    return []


def _check_page(path: str) -> None:
    from commsim.pages.page.write import check_page

    check_page(path)


def _page(config: RunConfig, answered: RunTables) -> list[Part]:
    """Write the page with figures."""
    from commsim.pages.cli.report import report_run
    from commsim.prediction.faults import failed_links
    from commsim.prediction.inputs import load_network

    chosen = dataclasses.replace(config, **answered.chosen)
    failed = failed_links(load_network(config.topology), answered.network) if config.fail else []
    said = (*Answer(answered.parts).remarks, *failed)
    return comments(report_run(chosen, answered.results, config.report or "", said))


# By flag: what refuses a file that cannot be written, and what renders.
RENDERINGS: dict[str, tuple[Callable[..., None], Render]] = {
    "bound": (lambda _: None, _bounds),
    "draw": (_check_picture, _picture),
    "osu": (_check_osu_table, _osu_table),
    "report": (_check_page, _page),
}
