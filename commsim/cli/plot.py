"""``commsim plot``: one figure of a result or a sweep for a paper, and the CSV behind it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.report.table import print_remarks

from .report_data import add_data_arguments, read_data

if TYPE_CHECKING:
    from commsim.report.figure import Figure
    from commsim.report.simulated_run import SimulatedRun
    from commsim.report.study import Study

KINDS = (
    "busbw", "time", "speedup", "choice", "accuracy", "cdf", "strong", "weak",
    "network", "links", "timeline", "link-timeline", "messages",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_data_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=".pdf, .svg or .png; FILE.csv beside it")
    parser.add_argument(
        "--width", default="column", metavar="WIDTH", help="column (3.33 in), page (7 in) or inches (column)"
    )
    parser.add_argument("--run", metavar="NAME", help="of several runs in a result, the one to draw (the first)")


def main(args: argparse.Namespace) -> int:
    """Read, draw, write."""
    from commsim.report.plot import check_plot, write_plot
    from commsim.report.plot_axes import read_width

    check_plot(args.output)
    width = read_width(args.width)
    from commsim.report.all_figures import OF_ROWS, OF_RUNS
    from commsim.report.figure import NothingToDraw

    study = read_data(args, detail=args.kind in OF_RUNS or args.kind == "busbw")
    try:
        of_rows = OF_ROWS.get(args.kind)
        figure = of_rows(study) if of_rows is not None else OF_RUNS[args.kind](_chosen(study, args.run))
    except NothingToDraw as why:
        raise InputError(f"{args.input}: nothing to draw as {args.kind}: {why}") from None
    beside = write_plot(figure, args.output, width, {**study.provenance, "figure": args.kind})
    print(f"# {args.output}: drawn; the numbers: {beside}")
    mixed = () if of_rows is None else _mixed(study, figure)
    if mixed:
        print_remarks([f"each point sums up all values of {', '.join(mixed)}"])
    return 0


def _mixed(study: Study, figure: Figure) -> list[str]:
    """Parameters that vary among the rows that one point of a figure is made of."""
    if figure.kind == "scatter":
        return []
    shown = set(figure.roles.values())
    how = "collective" in shown
    return [name for name in study.parameters if name not in shown and not (how and name.startswith("collective."))]


def _chosen(study: Study, name: str | None) -> SimulatedRun:
    if not study.runs:
        why = "; ".join(f"{run}: {reason}" for run, reason in study.left_out.items())
        raise InputError(f"there is no run in detail: {why or 'a sweep holds only numbers'}")
    known = {run.name: run for run in study.runs}
    if name is not None and name not in known:
        raise InputError(f"--run must be one of {', '.join(known)}, got {name!r}")
    return known[name] if name is not None else study.runs[0]
