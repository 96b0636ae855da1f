"""``commsim report``: a page of a result or a sweep and of measurements; what ``commsim plot`` reads, too."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Flags, Verb, flag, repeated, switched
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.remark import Remark
from commsim.report.answer import Answer, comments

if TYPE_CHECKING:
    from commsim.pages.figure_tables import FigureTable
    from commsim.pages.simulated_run import SimulatedRun
    from commsim.pages.study import Study

EXAMPLES = {
    "report": """
        commsim run ring_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim report a.json
        commsim report a.json --no-detail -o rows.html
        commsim report a.json --show-ranks 0,2-3 -o ranks.html
        commsim report a.json --rename ring_all_reduce=ring -o ring.html""",
}


RANKS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class Data(Flags):
    """What ``commsim report`` and ``commsim plot`` read."""

    input: str = flag(
        "input", metavar="RESULT|SWEEP", help="JSON that `commsim run --json` wrote, or the folder of a sweep"
    )
    measured: tuple[str, ...] = repeated(metavar="FILE", help="measurements of nccl-tests, OSU, ...; repeatable")
    operation: str | None = flag(
        choices=OPERATIONS,
        metavar="NAME",
        help="operation of the measurements, if they do not name it; if they do, show only rows of this operation",
    )
    ranks: int | None = flag(metavar="N", help="number of ranks, for measurements without it, such as OSU's")
    baseline: str = flag(
        default="", metavar="NAME", help="algorithm to compare with (default: names that begin with ring)"
    )
    by: str = flag(default="", metavar="COLUMN", help="column whose values get a colour each (default: collective)")
    where: tuple[str, ...] = repeated(
        metavar="COLUMN=VALUE,...", help="show only rows with these values; also !=, <, <=, >, >=; repeatable"
    )
    rename: tuple[str, ...] = repeated(metavar="OLD=NEW", help="show a label OLD as NEW; repeatable")
    show_ranks: str | None = flag(
        metavar="0,5,8-11",
        help="ranks to show in the timeline, in addition to the first to finish, a middle one and the last",
    )


class ReportConfig(Data):
    """All flags of ``commsim report``."""

    no_detail: bool = switched(help="show the rows only; do not simulate the runs of a result again")
    output: str = flag("-o", default="report.html", metavar="FILE.html", help="file to write")


def run(config: ReportConfig) -> Answer:
    """Read, and write the page."""
    from commsim.pages.page.write import check_page

    check_page(config.output)
    study, notes = read_data(config, detail=not config.no_detail)
    from commsim.pages.page.write import write_report

    return Answer(comments((*notes, *write_report(study, config.output))))


def read_data(config: Data, *, detail: bool, more: Sequence[str] = ()) -> tuple[Study, list[str]]:
    """Read the input and the measurements; with detail, simulate the runs of a result again.

    Returns
    -------
    Study, list of str
        And what of the measurements was left out.

    Raises
    ------
    InputError
        If something cannot be read.
    """
    from commsim.cli.run_flags import config_of
    from commsim.pages.repeated_runs import with_runs
    from commsim.pages.rows.study_files import read_study, read_together
    from commsim.pages.study import RowSelection

    from .replay import replay, with_watched

    choice = RowSelection(config.baseline, config.by, config.where, config.rename)
    if more:
        return _with_measured(read_together((config.input, *more), choice), config)
    study, run_flags = read_study(config.input, choice)
    if detail and run_flags and "config_hash" not in run_flags:  # a sweep that was exported has no flags
        rows = _rows(study.rows)
        flags = config_of(run_flags, config.input)
        runs, left_out = replay(flags, rows)
        study = with_runs(study, runs, left_out)
        if flags.given("jobs", "group") and run_flags.get("engine") == "packet":
            study = with_watched(study, flags, rows, config.input)
        study = dataclasses.replace(study, remarks=(*study.remarks, *_failed(run_flags, runs)))
    if detail and study.figures and not run_flags:  # the messages of commsim traffic
        from commsim.core.files.whole_files import read_tree
        from commsim.traffic.cli.traffic import traffic_again

        study = traffic_again(study, read_tree(config.input)["config"], config.input)
    if config.show_ranks is not None:
        study = dataclasses.replace(study, runs=_showing(study.runs, config.show_ranks))
    return _with_measured(study, config)


def _failed(run_flags: Mapping[str, Any], runs: Sequence[SimulatedRun]) -> list[Remark]:
    """Name the links that had failed in runs that were simulated again."""
    from commsim.prediction.faults import failed_links
    from commsim.prediction.inputs import load_network

    if not runs or not run_flags.get("fail"):
        return []
    return failed_links(load_network(run_flags["topology"]), runs[0].prepared.network)


def _showing(runs: Sequence[SimulatedRun], text: str) -> tuple[SimulatedRun, ...]:
    """Set the ranks that the timeline of each run shows.

    Raises
    ------
    InputError
        If the text is no list of ranks, a run has no such rank, or no run is given.
    """
    if not runs:
        raise InputError("--show-ranks needs runs in detail, but none is given")
    shown: dict[int, None] = {}
    for part in text.split(","):
        match = RANKS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last:
            raise InputError(f"--show-ranks is a list of ranks such as 0,5,8-11, got {text!r}")
        fewest = min(run.prepared.schedule.n_ranks for run in runs)
        if last >= fewest:
            raise InputError(f"--show-ranks: ranks are 0 to {fewest - 1}, got {part.strip()}")
        shown |= dict.fromkeys(range(first, last + 1))
    return tuple(dataclasses.replace(run, shown_ranks=tuple(shown)) for run in runs)


def _with_measured(study: Study, config: Data) -> tuple[Study, list[str]]:
    """Add measurements; return what of them was left out too."""
    if not config.measured:
        for name in config.given("operation", "ranks"):
            raise InputError(f"{name} is about measurements; it goes with --measured")
        return study, []
    from commsim.formats.measured import read_measured
    from commsim.pages.rows.measured_rows import measured_table

    notes: list[str] = []
    rows = [
        row
        for path in config.measured
        for row in read_measured(path, operation=config.operation or "", n_ranks=config.ranks, notes=notes)
    ]
    return dataclasses.replace(study, measured=measured_table(rows, study)), notes


def _rows(table: FigureTable) -> list[dict[str, Any]]:
    """Return the columns that tell one run from the others."""
    names = [name for name in ("collective", "size_B", "time_s") if name in table]
    columns = [table[n].text() if table[n].labels is not None else table[n].values.tolist() for n in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


COMMANDS = {"report": Verb(ReportConfig, run)}
