"""Measured exchanges of experts beside our predictions, row by row.

python -m benchmarks.experts --data DIR [--json FILE] [--page FILE.md]

DIR has an ``all_to_all.csv``. The links of each row are simulated by the flow engine on the machines of its GPU, on one
switch, and the package's constants of its kernel are added, as ``commsim run`` does; nothing is fitted here. Errors are
sizes of relative errors of the time. The bounds are those that are asked for: median 10 %, 90th percentile 25 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experts.answers import Answer, answer
from benchmarks.experts.page import page
from benchmarks.experts.tables import read_rows
from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_json
from commsim.report.terminal import print_table

MEDIAN, NINETIETH = 0.10, 0.25
COLUMNS = ["rows of", "fitted", "tables", "rows", "median", "90th", "within"]


def _sum(answers: Sequence[Answer]) -> tuple[float, float]:
    errors = np.abs([one.error for one in answers])
    return float(np.median(errors)), float(np.percentile(errors, 90))


def _lines(groups: Iterable[tuple[str, list[Answer]]]) -> list[list[str]]:
    lines = []
    for name, some in groups:
        median, ninetieth = _sum(some)
        good = "yes" if median <= MEDIAN and ninetieth <= NINETIETH else "NO"
        fitted = {one.fitted for one in some}
        lines.append([
            name, "yes" if fitted == {True} else "no" if fitted == {False} else "partly",
            str(len({one.row.table for one in some})), str(len(some)), f"{median:.1%}", f"{ninetieth:.1%}", good,
        ])  # fmt: skip
    return lines


def _grouped(answers: Sequence[Answer], key: Any) -> list[tuple[str, list[Answer]]]:
    groups: dict[str, list[Answer]] = {}
    for one in answers:
        groups.setdefault(key(one), []).append(one)
    return list(groups.items())


def _class(one: Answer) -> str:
    row, n = one.row, one.row.number
    where = f"EP {n['ranks']}" if row["mode"].startswith("NVLink") else f"{n['nodes']} x {n['ranks'] // n['nodes']}"
    return f"{row['system'].removeprefix('NVIDIA ')}, {where}, {row['mode']}, {row['operation']}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print errors of classes of rows, and write what is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.experts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with all_to_all.csv")
    parser.add_argument("--json", metavar="FILE", help="also write all rows as JSON")
    parser.add_argument("--page", metavar="FILE.md", help="also write every table, errors and constants as a page")
    flags = parser.parse_args(argv)
    try:
        rows, refused = read_rows(Path(flags.data))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    answers = list[Answer]()
    for row in rows:
        try:
            answers.append(answer(row))
        except InputError as error:
            refused[row.table] = str(error)
    if answers:
        groups = _grouped(answers, lambda one: f"{_class(one)}{'' if one.fitted else ', held back'}")
        print_table(COLUMNS, _lines(groups), "errors of classes of tables; held back: nothing was fitted on them")
        held = [one for one in answers if not one.fitted]
        sums = [("all", answers), ("all that nothing was fitted on", held)]
        print_table(COLUMNS, _lines((name, some) for name, some in sums if some), "all rows")
    for remark in dict.fromkeys(one.remark for one in answers if one.remark):
        print(f"# {remark}")
    for table, why in refused.items():
        print(f"# not predicted: {table}: {why}")
    if answers and flags.page:
        Path(flags.page).write_text(page(answers, refused, _grouped, _class), encoding="utf-8")
    if flags.json:
        write_json(flags.json, {"schema": 1, "rows": [one.json() for one in answers], "not_predicted": refused})
    return 0
