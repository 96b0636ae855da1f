"""A program that was emulated: its page, with the calls of each rank and the loads of links, and its timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.trace_events import process_name, thread_name, write_events
from commsim.core.result import Result
from commsim.emulation.emulate import Emulation
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import FigureTable, number_column, table_of_rows, word_column
from commsim.pages.figures_of_runs import loads
from commsim.pages.lanes import PICOSECOND, Slices, in_lanes
from commsim.pages.study import Study

# Calls that a figure shows, and that a timeline holds: the first of the program.
MAX_SHOWN, MAX_WRITTEN = 5_000, 1_000_000
__all__ = ["study_of_program", "write_calls"]


def study_of_program(title: str, emulation: Emulation, provenance: Mapping[str, str]) -> Study:
    """Gather what a page shows.

    Parameters
    ----------
    title : str
        Title of the page.
    emulation : Emulation
        What was emulated, with its records.
    provenance : mapping of str to str
        Version and command.
    """
    rows, figures, left_out = table_of_rows([row.columns() for row in emulation.rows]), list[Figure](), dict[str, str]()
    if emulation.records:
        figures.append(_calls(emulation))
    else:
        left_out["calls"] = "the program called nothing"
    if emulation.link_bytes.any():
        result = Result(
            "program", "custom", "flow", len(emulation.ends), 0.0, emulation.time, emulation.time, emulation.link_bytes
        )
        figures.append(loads(emulation.network, result, title))
    else:
        left_out["network"] = "nothing was sent over a link"
    return Study(
        title, rows, provenance=provenance, remarks=emulation.remarks, left_out=left_out, figures=tuple(figures),
        listed=tuple(rows),
    )  # fmt: skip


def write_calls(emulation: Emulation, path: str | Path) -> int:
    """Write what each rank called when as trace events, for Perfetto and chrome://tracing; return their number.

    Raises
    ------
    InputError
        If there are too many calls, or the file cannot be written.
    """
    if len(emulation.records) > MAX_WRITTEN:
        raise InputError(f"{path}: a timeline holds {MAX_WRITTEN} calls, and the program has {len(emulation.records)}")
    return write_events(path, _events(emulation))


def _slices(emulation: Emulation, n: int) -> Slices:
    """Put the first calls on lanes of their ranks."""
    records = emulation.records[:n]
    rank = np.array([record.rank for record in records], np.int64)
    start, end = (np.array([getattr(record, name) for record in records]) for name in ("start", "end"))
    return in_lanes(rank, start, end, np.arange(len(records)))


def _events(emulation: Emulation) -> Iterator[dict[str, Any] | str]:
    slices = _slices(emulation, MAX_WRITTEN)
    for rank in np.unique(slices.track).tolist():
        yield process_name(rank, f"rank {rank}")
    for rank, lane in slices.lanes()[0].tolist():
        yield thread_name(rank, lane, "calls" if not lane else f"calls, {lane + 1} at once")
    for rank, lane, start, end, number in zip(
        slices.track.tolist(), slices.lane.tolist(), slices.start.tolist(), slices.end.tolist(),
        slices.transfer.tolist(), strict=True,
    ):  # fmt: skip
        record = emulation.records[number]
        about = {"size_B": record.n_bytes, "site": record.site, "algorithm": record.algorithm}
        yield {"name": record.operation, "ph": "X", "pid": rank, "tid": lane, "ts": start * 1e-6,
               "dur": (end - start) * 1e-6, "args": about}  # fmt: skip


def _calls(emulation: Emulation) -> Figure:
    """Show when each rank waited for which call."""
    slices = _slices(emulation, MAX_SHOWN)
    records = [emulation.records[number] for number in slices.transfer.tolist()]
    table = FigureTable.of((
        word_column("rank", [f"rank {record.rank}" for record in records]),
        number_column("level", slices.lane, ""),
        number_column("start_s", slices.start * PICOSECOND),
        number_column("end_s", slices.end * PICOSECOND),
        word_column("operation", [record.operation for record in records]),
        word_column("site", [record.site or "-" for record in records]),
        number_column("size_B", [record.n_bytes for record in records]),
        number_column("last", [record.end == emulation.time for record in records], ""),
    ))  # fmt: skip
    more = f" The first {MAX_SHOWN} of {len(emulation.records)} calls." if len(emulation.records) > MAX_SHOWN else ""
    roles = {"y": "rank", "level": "level", "x": "start_s", "end": "end_s", "by": "operation", "mark": "last"}
    caption = f"A bar is a call of a rank, from its beginning until it is complete; what ends last is outlined.{more}"
    return Figure("calls", "spans", "Calls of each rank", caption, table, roles, {"x": "virtual time"})
