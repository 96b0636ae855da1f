"""Studies of files: the JSON of a command, a saved result, the folder of a sweep."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError, printable
from commsim.core.extras import needs
from commsim.core.files.fields import TableFields
from commsim.core.files.result_file import read_result
from commsim.core.files.whole_files import read_tree
from commsim.core.remark import Remark, read_remarks
from commsim.pages.figure_tables import FigureTable, table_of_arrow, table_of_rows
from commsim.pages.rows.algorithms import with_specs
from commsim.pages.study import (
    EVERYTHING,
    NAMES_PREDICTED,
    PREDICTED,
    RowSelection,
    Study,
    made_by,
    make_study,
    study_of_rows,
)

# What each message of ``commsim traffic`` has.
MESSAGE = {"received_s", "finished_s", "slowdown"}
_NOT_NEGATIVE = {"size_B", "n_ranks", *PREDICTED} - {*NAMES_PREDICTED}


def read_study(path: str | Path, choice: RowSelection = EVERYTHING) -> tuple[Study, dict[str, Any]]:
    """Read rows, without any run in detail.

    Parameters
    ----------
    path : path
        JSON of ``commsim run``, a saved result, or the directory of a sweep.
    choice : RowSelection
        What is shown.

    Returns
    -------
    Study, dict
        And the configuration of the run; empty for a sweep.

    Raises
    ------
    InputError
        If it is none of these, or a name is not among its columns.
    """
    path = Path(path)
    if path.is_dir():
        table, provenance = _read_sweep(path)
        return make_study(path.name, table, {"input": path.name, **provenance}, choice, _said_of(path)), {}
    if path.suffix == ".npz":
        return make_study(path.name, table_of_rows([read_result(path).row()]), {"input": path.name}, choice), {}
    if path.suffix != ".json":
        raise InputError(f"{path}: a report is made of the .json that `commsim run --json` wrote, or a sweep's folder")
    tree = read_tree(path)
    if tree.get("kind") == "result":
        return make_study(path.name, table_of_rows([read_result(path).row()]), {"input": path.name}, choice), {}
    config, rows = results_of(tree, path)
    remarks = read_remarks(tree.get("remarks"), str(path))
    if all(row.keys() >= MESSAGE for row in rows):
        return _of_messages(path, rows, config, choice), {}
    return study_of_rows(path.name, rows, config, choice, remarks), config


def read_together(paths: Sequence[str], choice: RowSelection = EVERYTHING) -> Study:
    """Read the rows of several results; column ``result`` has its file, and the algorithm if there are several.

    Parameters
    ----------
    paths : sequence of str
        JSON files of ``commsim run``.
    choice : RowSelection
        What is shown; by default each file has its colour.

    Raises
    ------
    InputError
        If one is no such file, or two have one name.
    """
    names = [printable(Path(path).stem) for path in paths]
    if len(set(names)) < len(names):
        names = [printable(path) for path in paths]
    of_file, remarks = list[list[dict[str, Any]]](), dict[Remark, None]()
    for path, name in zip(paths, names, strict=True):
        if Path(path).suffix != ".json":
            raise InputError(f"{path}: several results are .json files that `commsim run --json` wrote")
        tree = read_tree(path)
        config, read = results_of(tree, Path(path))
        of_file.append([{**row, "result": name} for row in with_specs(read, config)])
        remarks |= dict.fromkeys(read_remarks(tree.get("remarks"), path))
    if any(len({str(row.get("collective")) for row in read}) > 1 for read in of_file):
        for row in itertools.chain.from_iterable(of_file):  # a curve for each algorithm, not the median over them
            row["result"] = f"{row['result']} {row.get('collective', '')}".rstrip()
    chosen = dataclasses.replace(choice, by=choice.by or "result")
    rows = list(itertools.chain.from_iterable(of_file))
    return study_of_rows(" and ".join(names), rows, {}, chosen, list(remarks))


def _of_messages(
    path: Path, rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any], choice: RowSelection
) -> Study:
    """Make a study of the messages that ``commsim traffic`` wrote: their times and slowdowns.

    Raises
    ------
    InputError
        If a time or slowdown is no number, or rows are to be chosen.
    """
    from commsim.pages.fabric.figures_of_messages import slowdown_figure, times_figure, times_table

    if choice != EVERYTHING:
        raise InputError(f"{path}: holds messages of `commsim traffic`, which are all shown")
    for i, row in enumerate(rows):
        fields = TableFields(dict(row), path, ("results", i))
        for name in MESSAGE:
            if fields.number(name) < 0:
                fields.refuse(name, "a finite number of at least 0")
    received, finished, slowdown = (
        np.array([float(row[name]) for row in rows]) for name in ("received_s", "finished_s", "slowdown")
    )
    table = times_table(received, finished, slowdown)
    why = {"queues, packets, fullest, ways": "the file has no times of queues; use commsim traffic --report"}
    figures = (times_figure(received, finished), slowdown_figure(slowdown))
    about = {"input": path.name, **made_by("traffic", config)}
    return Study(printable(path.name), table, provenance=about, figures=figures, listed=tuple(table), left_out=why)


def results_of(tree: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the configuration and the rows of a command's JSON.

    Raises
    ------
    InputError
        If they are not there, or a number is none.
    """
    config, rows = tree.get("config"), tree.get("results")
    if tree.get("schema") != 1 or not isinstance(config, dict) or not isinstance(rows, list):
        raise InputError(f"{path}: expected schema 1 with a config and results, as `commsim run --json` writes it")
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: results must be a list of at least one table")
    for i, row in enumerate(rows):
        for name in _NOT_NEGATIVE & row.keys():
            if not _is_amount(row[name]):
                TableFields(row, path, ("results", i)).refuse(name, "a finite number of at least 0")
    return config, rows


def _is_amount(value: Any) -> bool:
    """Whether a result can be this: nothing, or a number that is neither negative nor without bound."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (is_number and 0 <= value < sys.float_info.max)


def _read_sweep(path: Path) -> tuple[FigureTable, dict[str, str]]:
    try:
        from commsim.sweep.table import read_table

        table = read_table(path)
    except ImportError as error:
        raise InputError(needs(f"{path}: reading a sweep needs pyarrow", "data", f" ({error})")) from None
    stamped = json.loads((table.schema.metadata or {}).get(b"commsim", b"{}"))
    return table_of_arrow(table), {
        f"sweep: {key}": value if isinstance(value, str) else json.dumps(value) for key, value in stamped.items()
    }


def _said_of(path: Path) -> tuple[Remark, ...]:
    from commsim.sweep.remarks import remarks_of

    return remarks_of(path)
