"""``commsim plot``: one figure of a result or a sweep and of measurements, with the CSV of its numbers."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, Verb, flag, repeated
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.report.answer import Answer, comments, remarks

if TYPE_CHECKING:
    from commsim.pages.figure import Figure
    from commsim.pages.simulated_run import SimulatedRun
    from commsim.pages.study import Study
from .report import Data, read_data

EXAMPLES = {
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


def run(config: PlotConfig) -> Answer:
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


COMMANDS = {"plot": Verb(PlotConfig, run)}
