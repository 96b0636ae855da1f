"""What tables with questions come to: errors by size, class and operation, coverage, and the naive rule beside them."""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nccl_tables.asked import Asked, predicted_rows, read_asked
from benchmarks.nccl_tables.peaks import read_peaks
from commsim.core.files.whole_files import write_json
from commsim.report.terminal import print_table

LARGE, LARGEST = 2**20, 2**28
GPUS_OF_A_BOX = 8
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
HEAD = ["rows of", "tables", "rows", "median", "p90", "largest", "signed", "inside", "NICs: median", "nearer"]
Row = dict[str, Any]
Question = Callable[[Row], bool]


def print_asked(folder: Path, only: str = "", json: str | None = None, *, with_rows: bool = False) -> int:
    """Predict a folder's tables and print what they come to.

    Parameters
    ----------
    folder : Path
        Folder whose index says questions.
    only : str
        Pattern of the tables' names; empty for all.
    json : str, optional
        File for all rows.
    with_rows : bool
        Whether every row is printed.
    """
    tables = [one for one in (*read_asked(folder), *read_peaks(folder)) if matches(one.id, only)]
    if not tables:
        print(f"error: no table of {folder} has a name like {only}", file=sys.stderr)
        return 2
    rows, unknown = predicted_rows(tables)
    if with_rows:
        for row in rows:
            times = f"{row['measured'] * 1e6:.5g} us measured, {row['predicted'] * 1e6:.5g} predicted"
            print(f"{row['table']} {row['bytes']} B: {times} ({row['algorithm']}, {error_of(row):+.1%})")
    of_tables = [(name, [row for row in rows if row["table"] == name]) for name in dict.fromkeys(_names(rows))]
    print_table(["table", *HEAD[1:]], [_line(name, some) for name, some in of_tables if some[0]["class"] != "peaks"],
                "errors by table, healthy or not")  # fmt: skip
    lines = [_line(name, some) for name, some in classes(rows, tables) if some]
    print_table(HEAD, lines, "healthy tables, default settings; NICs: bytes over the rate of the NICs")
    for name, why in unknown.items():
        print(f"# not predicted: {name}: {why}")
    if json:
        write_json(json, {"schema": 2, "rows": rows, "unknown": unknown})
    return 0


def matches(name: str, only: str) -> bool:
    """Whether a name has a text, or is like a pattern with ``*``."""
    return not only or only in name or fnmatch.fnmatch(name, only)


def classes(rows: Iterable[Row], tables: Iterable[Asked]) -> list[tuple[str, list[Row]]]:
    """Return the lines that are asked for: names, and their rows."""
    by_id = {table.id: table for table in tables}
    healthy = [row for row in rows if row["healthy"] == "yes"]
    peaks = [row for row in healthy if row["class"] == "peaks"]
    runs = [row for row in healthy if row["class"] not in ("peaks", "mpi")]
    mpi = [row for row in healthy if row["class"] == "mpi"]
    found = []
    for name, some in (("NCCL, RCCL and MPI", runs + mpi), ("NCCL and RCCL", runs), ("MPI", mpi)):
        found += _by_size(name, some)
    eight = [row for row in runs if is_eight_hopper(by_id[row["table"]])]
    found += _by_size("several machines of 8 Hopper", eight)
    for operation in OPERATIONS:
        found += _by_size(operation, [row for row in runs if row["operation"] == operation])
    for kind in dict.fromkeys(row["class"] for row in runs):
        found += _by_size(f"class {kind}", [row for row in runs if row["class"] == kind])
    found.append(("peaks of shapes", peaks))
    found += [(f"peaks, {name}", [row for row in peaks if row["operation"] == name]) for name in OPERATIONS]
    return found


def is_eight_hopper(table: Asked) -> bool:
    """Whether a table is of several machines of 8 H100 or H200 with InfiniBand or RoCE."""
    is_rdma = re.search("IB|RoCE", table.network) and "IB_DISABLE=1" not in table.network
    return bool(table.n_nodes > 1 and table.per_node == GPUS_OF_A_BOX and re.match("H[12]00", table.gpu) and is_rdma)


def error_of(row: Row, of: str = "predicted") -> float:
    """Return the relative error of a row's time; not a number where nothing is predicted."""
    return float("nan") if row[of] is None else float(row[of] / row["measured"] - 1)


def is_inside(row: Row) -> bool | None:
    """Whether a row lies in its interval; None without one."""
    return None if row["low"] is None else bool(row["low"] <= row["measured"] <= row["high"])


def _by_size(name: str, rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    return [
        (f"{name}, from 1 MiB", [row for row in rows if row["bytes"] >= LARGE]),
        (f"{name}, below", [row for row in rows if row["bytes"] < LARGE]),
        (f"{name}, from 256 MiB", [row for row in rows if row["bytes"] >= LARGEST]),
    ]


def _line(name: str, rows: Sequence[Row]) -> list[str]:
    signed = np.array([error_of(row) for row in rows])
    size, inside = np.abs(signed), [found for row in rows if (found := is_inside(row)) is not None]
    naive = np.abs([error_of(row, "nics") for row in rows])
    both = ~np.isnan(naive)
    return [
        name, str(len({row["table"] for row in rows})), str(len(rows)), _percent(np.median(size)),
        _percent(np.percentile(size, 90)), _percent(size.max()), f"{np.median(signed):+.1%}",
        f"{np.mean(inside):.0%} of {len(inside)}" if inside else "-",
        _percent(np.median(naive[both])) if both.any() else "-",
        f"{np.mean(size[both] < naive[both]):.0%} of {both.sum()}" if both.any() else "-",
    ]  # fmt: skip


def _names(rows: Iterable[Row]) -> list[str]:
    return [row["table"] for row in rows]


def _percent(share: float) -> str:
    return f"{share:.1%}"
