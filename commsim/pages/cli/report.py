"""``commsim report`` and ``commsim plot``: a page, or one figure, of a result or a sweep and of measurements."""

from __future__ import annotations

import dataclasses
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import Flags, Verb, flag, repeated, switched
from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.remark import Remark
from commsim.report.answer import Answer, comments, remarks

if TYPE_CHECKING:
    from commsim.pages.figure import Figure
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
    "plot": """
        commsim run ring_all_reduce double_tree_all_reduce --topology star:n_hosts=4 -b 1M -e 4M --json a.json
        commsim plot busbw a.json -o busbw.pdf
        commsim plot speedup a.json --baseline ring_all_reduce -o speedup.svg
        commsim plot timeline a.json -o timeline.svg --width page
        commsim plot time a.json -o time.png --label 'y=time of one all-reduce'""",
}

KINDS = (
    "busbw", "time", "speedup", "choice", "accuracy", "cdf", "strong", "weak",
    "network", "links", "timeline", "link-timeline", "messages",
    "tiers", "loads", "racks", "slowdown", "queues", "packets", "fullest", "ways",
)  # fmt: skip


AXES = ("x", "y", "value")
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


def figure_kind(text: str) -> str:
    """Return the name of a figure; what looks like a file is refused with what was probably meant."""
    if text not in KINDS and (Path(text).suffix or Path(text).is_dir()):
        raise ArgumentTypeError(f"the kind of figure comes first, as in: commsim plot busbw {text} -o busbw.png")
    return text


class FigureFlags(Flags):
    """The figure to draw."""

    kind: str = flag(
        "kind",
        type=figure_kind,
        choices=KINDS,
        metavar="KIND",
        help=", ".join(KINDS) + " (fullest: the fullest queues over time; ways: load of a switch's uplinks)",
    )


class PlotConfig(Data, FigureFlags):
    """All flags of ``commsim plot``."""

    more: tuple[str, ...] = flag(
        "more",
        default=(),
        nargs="*",
        metavar="RESULT",
        help="more results in the same figure; a colour for each file, or each algorithm of a file",
    )
    output: str | None = flag(
        "-o", metavar="FILE", help=".pdf, .svg or .png; FILE.csv is written beside it (default: KIND.svg)"
    )
    width: str = flag(default="column", metavar="WIDTH", help="column (3.33 in), page (7 in) or inches")
    label: tuple[str, ...] = repeated(
        metavar="AXIS=TEXT", help="name of an axis: x, y or value, in place of the column's; repeatable"
    )
    run: str | None = flag(metavar="NAME", help="which of several runs of a result to draw (default: the first)")


def plot(config: PlotConfig) -> Answer:
    """Read, draw, write."""
    from commsim.pages.plots.plot import check_plot, write_plot
    from commsim.pages.plots.plot_axes import read_width

    output = config.output or f"{config.kind}.svg"
    check_plot(output)
    width = read_width(config.width)
    from commsim.pages.fabric.figures_of_packets import OF_PACKETS
    from commsim.pages.figure import NothingToDraw
    from commsim.pages.figures_of_rows import OF_ROWS
    from commsim.pages.figures_of_study import RUN_FIGURES, with_names
    from commsim.traffic.traffic_report import figure_of_messages

    if config.more and config.kind in RUN_FIGURES:
        raise InputError(f"{config.kind} shows one run: give one result, got {1 + len(config.more)}")
    study, notes = read_data(config, detail=config.kind in RUN_FIGURES or config.kind == "busbw", more=config.more)
    try:
        of_rows = OF_ROWS.get(config.kind)
        if of_rows is not None:
            figure = of_rows(study)
        elif study.figures or (config.kind in OF_PACKETS and config.run is None and study.watched):
            figure = figure_of_messages(study, config.kind)
        else:
            figure = RUN_FIGURES[config.kind](_run_of(study, config.run))
    except NothingToDraw as why:
        raise InputError(f"{config.input}: nothing to draw as {config.kind}: {why}") from None
    figure = _labelled(with_names(study, [figure])[1][0], config.label)
    csv = write_plot(figure, output, width, {**study.provenance, "figure": config.kind})
    mixed = [] if of_rows is None else _mixed(study, figure)
    own = [remark for remark in study.remarks if remark not in study.said]
    drawn = comments([*notes, f"{output}: drawn; the numbers: {csv}"])
    return Answer([*drawn, *remarks((*own, *(Remark("median-over", one, needed=True) for one in mixed), *study.said))])


def _labelled(figure: Figure, labels: Sequence[str]) -> Figure:
    """Name axes as the user wants them.

    Raises
    ------
    InputError
        If the figure has no such axis.
    """
    words = dict(figure.words)
    for text in labels:
        axis, equals, name = text.partition("=")
        axes = [role for role in AXES if role in figure.wording]
        if not equals or axis not in axes:
            raise InputError(f"--label must be AXIS=TEXT, where AXIS is {' or '.join(axes) or 'none'}, got {text!r}")
        words[axis] = name
    return dataclasses.replace(figure, words=words)


def _mixed(study: Study, figure: Figure) -> list[str]:
    """Name the parameters that vary among the rows that one point of a figure is made of."""
    from commsim.pages.rows.algorithms import ALGORITHM, CURVE, is_algorithm, varies_within

    shown = set(figure.roles.values())
    lines = []
    if CURVE in shown:
        shown |= {study.by, ALGORITHM}
        lines.append(f"--by {study.by}: a curve for each algorithm too, since no median is taken over algorithms")
    if figure.kind == "scatter":
        return lines
    if figure.roles.get("x", "") not in (*study.rows, ""):  # a number in the names of algorithms
        shown.add(ALGORITHM)
    is_told = ALGORITHM in shown  # with the parameters that vary
    names = [name for name in study.parameters if name not in shown and not (is_told and is_algorithm(name))]
    points = [column for role, column in figure.roles.items() if role not in ("y", "value") and column in study.rows]
    if figure.kind != "cdf":  # of which each row is a point
        names = [name for name in names if varies_within(study.rows, name, points)]
    what = "each curve has all values of" if figure.kind == "cdf" else "each point is the median over"
    return [*lines, f"{what} {', '.join(names)}; --by or --where COLUMN=VALUE tells them apart"] if names else lines


def _run_of(study: Study, name: str | None) -> SimulatedRun:
    if not study.runs:
        why = "; ".join(f"{run}: {reason}" for run, reason in study.left_out.items())
        raise InputError(f"no run in detail: {why or 'a sweep holds only numbers'}")
    known = {run.name: run for run in study.runs}
    if name is not None and name not in known:
        raise InputError(f"--run must be one of {', '.join(known)}, got {name!r}")
    return known[name] if name is not None else study.runs[0]


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


COMMANDS = {"report": Verb(ReportConfig, run), "plot": Verb(PlotConfig, plot)}
