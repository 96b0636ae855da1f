"""Published training steps beside our prediction, row by row.

python -m benchmarks.steps --data DIR [--data DIR2] [--json FILE] [--page FILE.md] [--before FILE.json] [--rows]

DIR has ``megatron_bridge.csv``, ``mlperf_steps.csv``, ``published.csv``, ``steps.csv`` (own rows: flags of the command
as columns, and ``tokens_per_s_per_gpu``), or some of them. Each row is a configuration
that `commsim workload step` predicts on the GPU's machines behind one switch, with the calibrations of the package.
Rows on which something was calibrated are marked `fitted`; a row that cannot be predicted says why.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.steps.page import blind_groups, read_before, summary, write_page
from benchmarks.steps.predictions import NAIVE, Predicted, line_errors, predictions, with_blind
from benchmarks.steps.pushes import Push, push_rows
from benchmarks.steps.setups import read_setups
from benchmarks.steps.slices import Slices, slice_rows
from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_json
from commsim.report.terminal import print_table


def main(arguments: Iterable[str] | None = None) -> int:
    """Predict the rows of a folder; 2 where it cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, action="append", metavar="DIR", help="folder of the files")
    parser.add_argument("--before", metavar="FILE.json", help="rows that an earlier version wrote, for the page")
    parser.add_argument("--json", metavar="FILE", help="write all rows")
    parser.add_argument("--page", metavar="FILE.md", help="write the page of the documentation")
    parser.add_argument("--rows", action="store_true", help="print every row")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    try:
        rows = with_blind(predictions([one for folder in asked.data for one in read_setups(folder)]))
        slices, left = slice_rows(asked.data[0])
        pushes, unread = push_rows(asked.data[0])
        left += unread
        _print(rows, slices, pushes, left, every=asked.rows)
        if asked.json:
            write_json(asked.json, {"rows": _json(rows, slices, pushes)})
        if asked.page:
            write_page(asked.page, rows, slices, pushes, read_before(asked.before))
    except InputError as error:
        print(f"benchmarks.steps: error: {error}", file=sys.stderr)
        return 2
    return 0


def _json(rows: list[Predicted], slices: list[Slices], pushes: list[Push]) -> list[dict[str, Any]]:
    told = [one.row() for one in rows if "MaxText" not in one.setup.text or not slices]
    return [*told, *(one.row() for one in slices), *(one.row() for one in pushes)]


def _print(rows: list[Predicted], slices: list[Slices], pushes: list[Push], left: list[str], *, every: bool) -> None:
    lines = line_errors(rows)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, one in enumerate(rows):
        groups[one.setup.file, one.kind].append(i)
    cells = []
    for (file, kind), members in sorted(groups.items()):
        errors = [abs(rows[i].error) for i in members]
        line = [abs(lines[i]) for i in members if i in lines]
        numbers = [f"{np.median(errors):.1%}", f"{max(errors):.1%}", f"{np.median(line):.1%}" if line else "-"]
        cells.append([file, kind, str(len(members)), *(numbers if kind != "left out" else ["-", "-", "-"])])
    print_table(["file", "what differs from the calibrated row", "rows", "median", "worst", "line"], cells)
    left += [
        f"{one.setup.file}: {one.setup.text[:60]}: {one.setup.left_out}"
        for one in rows
        if one.setup.left_out and "MaxText" not in one.setup.left_out
    ]
    for name, some in blind_groups(rows).items():
        errors = [abs(one.blind_error) for one in some]
        rule = [abs(one.naive_error) for one in some]
        print(f"without any row of the model, {name}: {summary(errors)}; {NAIVE:.0%} of the peak: {summary(rule)}")
    for one in rows if every else ():
        why = one.setup.left_out or f"{one.error:+.1%}"
        print(f"{one.kind:12} {one.setup.model:18} {one.setup.gpu:6} {why:10} {one.setup.text[:110]}")
    for found in slices:
        print(
            f"{found.model} {found.chip} x {found.slices}: loses {found.lost:.1%}, predicted {found.predicted_lost:.1%}"
        )
    for push in pushes:
        print(f"{push.what}: {push.error:+.1%}{' (fitted)' if push.fitted else ''}")
    for text in left:
        print(f"left out: {text}")
