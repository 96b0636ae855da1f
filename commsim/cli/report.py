"""``commsim report``: one offline page with the figures of a result or a sweep."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.report.table import print_remarks

from .report_data import add_data_arguments, read_data, with_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add_data_arguments(parser)
    what = "show the rows only, without playing the runs of a result again"
    parser.add_argument("--no-detail", action="store_true", help=what)
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE.html", help="where to (report.html)")


def main(args: argparse.Namespace) -> int:
    """Read, and write the page."""
    check_page(args.output)
    study = read_data(args, detail=not args.no_detail)
    _write(study, args.output)
    return 0


def check_page(path: str) -> None:
    """Refuse, before anything is computed, a file that no page can be written to.

    Raises
    ------
    InputError
        If its name does not end with .html, its folder is not there, or it is a folder itself.
    """
    if Path(path).suffix != ".html":
        raise InputError(f"{path}: a report is a file that ends with .html")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    if Path(path).is_dir():
        raise InputError(f"{path}: cannot write: Is a directory")


def report_run(args: argparse.Namespace, results: list[Any], path: str) -> None:
    """Write the page of what ``commsim run`` has just predicted."""
    from commsim import __version__
    from commsim.report.study import study_of_rows

    from .run.replay import play_again

    rows = [result.row() for result in results]
    flags = {k: v for k, v in vars(args).items() if k not in ("json", "report", "draw")}
    study = study_of_rows(Path(path).stem, rows, {"version": __version__, **flags})
    _write(with_runs(study, *play_again(args, rows, trusted=True)), path)


def _write(study: Any, path: str) -> None:
    from commsim.report.page.write import write_page

    left_out = write_page(study, path)
    print_remarks(f"left out: {name}: {why}" for name, why in left_out.items())
    print_remarks([f"{path}: written"])
