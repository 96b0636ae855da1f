"""What ``commsim report`` and ``commsim plot`` read: a result or a sweep, measurements, and runs in detail."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.report.table import print_remarks

if TYPE_CHECKING:
    from commsim.report.columns import Table
    from commsim.report.study import Study


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what both verbs read."""
    add = parser.add_argument
    add("input", metavar="RESULT|SWEEP", help="JSON that `commsim run --json` wrote, or the folder of a sweep")
    add(
        "--measured",
        action="append",
        default=[],
        metavar="FILE",
        help="real measurements: nccl-tests, OSU, ...; repeat",
    )
    add("--operation", choices=OPERATIONS, metavar="NAME", help="of measurements that do not say it; else only these")
    add("--ranks", type=int, metavar="N", help="of measurements that do not say it, as OSU's do not")
    add("--baseline", default="", metavar="NAME", help="algorithm to compare with (those whose name begins with ring)")
    add("--by", default="", metavar="COLUMN", help="column whose values get a colour each (collective)")


def read_data(args: argparse.Namespace, *, detail: bool) -> Study:
    """Read the input and the measurements; with detail, play the runs of a result again.

    Raises
    ------
    InputError
        If something cannot be read.
    """
    from commsim.report.study import read_study

    from .run.replay import arguments_of, play_again

    study, config = read_study(args.input, baseline=args.baseline, by=args.by)
    if detail and config:
        rows = _rows(study.rows)
        runs, left_out = play_again(arguments_of(config, args.input), rows, trusted=False)
        study = with_runs(study, runs, left_out)
    return _with_measured(study, args)


def with_runs(study: Study, runs: Sequence[Any], left_out: Mapping[str, str]) -> Study:
    """Add runs in detail, and the line rate of their network."""
    from commsim.report.study import with_line_rate

    from .run.replay import line_rate

    if runs:
        study = with_line_rate(study, line_rate(runs[0].prepared))
    return dataclasses.replace(study, runs=tuple(runs), left_out=dict(left_out))


def _with_measured(study: Study, args: argparse.Namespace) -> Study:
    """Add measurements, and say what of them was left out."""
    if not args.measured:
        for flag in ("operation", "ranks"):
            if getattr(args, flag) is not None:
                raise InputError(f"--{flag} is about measurements; it goes with --measured")
        return study
    from commsim.formats.measured import read_measured

    notes: list[str] = []
    rows = [
        row
        for path in args.measured
        for row in read_measured(path, operation=args.operation or "", n_ranks=args.ranks, notes=notes)
    ]
    print_remarks(notes)
    return dataclasses.replace(study, measured=_measured_table(rows, study))


def _measured_table(rows: Sequence[Any], study: Study) -> Table:
    from commsim.core.operations import operation
    from commsim.report.columns import Table, distinct, number_column, word_column

    usual = distinct(study.rows["n_ranks"]).tolist() if "n_ranks" in study.rows else []
    ranks = [row.n_ranks or (int(usual[0]) if len(usual) == 1 else None) for row in rows]
    factor = [
        np.nan if n is None else operation(row.operation).busbw_factor(n) for row, n in zip(rows, ranks, strict=True)
    ]
    size, time, low, high = (
        np.array([np.nan if (v := getattr(row, name)) is None else v for row in rows], np.float64)
        for name in ("size", "time", "low", "high")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        busbw = [np.where(t > 0, size / t * np.array(factor), np.nan) for t in (time, high, low)]
    return Table.of((
        word_column("operation", [row.operation for row in rows]),
        word_column("collective", [row.algorithm or None for row in rows]),
        word_column("source", [row.source for row in rows]),
        number_column("n_ranks", [np.nan if n is None else n for n in ranks]),
        number_column("size_B", size),
        number_column("time_s", time),
        number_column("p5_s", low),
        number_column("p95_s", high),
        *(number_column(f"busbw{name}_Bps", v) for name, v in zip(("", "_low", "_high"), busbw, strict=True)),
    ))  # fmt: skip


def _rows(table: Table) -> list[dict[str, Any]]:
    """Return the columns that tell one run from the others."""
    names = [name for name in ("collective", "size_B", "time_s") if name in table]
    columns = [table[n].text() if table[n].labels is not None else table[n].values.tolist() for n in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
