"""The picture and the page of ``commsim run``: ``--draw`` and ``--report``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.cli.run_kinds import Answered, Rendering
from commsim.pages.page.write import check_page
from commsim.pages.pictures.to_files import check_drawable, draw_loads
from commsim.prediction.faults import failed_links
from commsim.prediction.inputs import load_network
from commsim.report.answer import Answer, Part, comments

if TYPE_CHECKING:
    from commsim.cli.run_flags import RunConfig


def _picture(config: RunConfig, answered: Answered) -> list[Part]:
    """Draw the network with the loads of the last result, and what its faults are."""
    whole = load_network(config.topology) if config.fail or config.scale else None
    return comments(draw_loads(answered.network, answered.results[-1], config.draw or "", whole=whole))


def _page(config: RunConfig, answered: Answered) -> list[Part]:
    """Write the page with figures of what was predicted; say what it leaves out."""
    from commsim.pages.page.write import write_report
    from commsim.pages.repeated_runs import with_runs
    from commsim.pages.study import study_of_rows
    from commsim.version import __version__

    from .replay import replay

    chosen, path = dataclasses.replace(config, **answered.chosen), config.report or ""
    failed = failed_links(load_network(config.topology), answered.network) if config.fail else []
    said = (*Answer(answered.parts).remarks, *failed)
    rows = [result.row() for result in answered.results]
    flags = {k: v for k, v in vars(chosen).items() if k not in ("json", "csv", "report", "draw")}
    study = study_of_rows(Path(path).stem, rows, {"version": __version__, **flags}, remarks=said)
    return comments(write_report(with_runs(study, *replay(chosen, rows)), path))


PICTURE = Rendering(check_drawable, _picture)
PAGE = Rendering(check_page, _page)
