"""What nccl-tests writes: its table, which ``commsim run`` prints too, out of a log with anything else in it; its JSON.

A row of the table begins with a whole number and is under a header that names the columns; what launchers and log
collectors put before lines is cut off, and what else is in between is passed over. Sizes and rates are as nccl-tests
counts them: GB/s are 1e9. How many ranks a table was measured on follows from the two rates that it prints: busbw over
algbw is a function of them. Of an all-gather, an all-to-all and their like the count of elements is that of one rank.
The JSON (``-J``) is one object, with truth values as text, a padded root, and "nan" where nothing is; the environment
of the run, which may hold secrets, is never looked at.

References
----------
nccl-tests 2.19, ``src/util.cu`` and ``doc/PERFORMANCE.md``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_text
from commsim.core.operations import OPERATIONS
from commsim.core.units import count_text

from .logs.log_formats import LOG_FORMATS
from .logs.log_lines import lines_of_log
from .logs.nccl_columns import (
    NUMBER,
    aligned,
    column_names,
    halves_of,
    implied_columns,
    n_measured,
    ranks_of_count,
    rates_of,
)
from .logs.unnamed_operation import refuse_unknown, unnamed_operation
from .measurement import MAX_LOG_BYTES, Measurement, ReadingContext, check_count, ranks_between

# Programs of nccl-tests, without ``_perf``. hypercube_perf is none of our operations.
NCCL_TESTS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all_v", "broadcast": "broadcast", "reduce": "reduce",
    "gather": "gather", "scatter": "scatter", "sendrecv": "send_recv",
}  # fmt: skip

# As NCCL writes them in its logs, names of kernels, and the inspector's lines.
NCCL_FUNCTIONS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "AlltoAll": "all_to_all", "AllToAll": "all_to_all",
    "Gather": "gather", "Scatter": "scatter", "SendRecv": "send_recv", "Send": "send_recv", "Recv": "send_recv",
}  # fmt: skip

_PROGRAM = re.compile(rf"\b({'|'.join(sorted(NCCL_TESTS, key=len, reverse=True))})_perf(?:_mpi)?\b")
# What the name of a file calls an operation, as in all_reduce_h100.log.
_FILE_NAMES = NCCL_TESTS | {name: name for name in NCCL_TESTS.values()}
_IN_FILE_NAME = re.compile(rf"(?<![a-z])({'|'.join(sorted(_FILE_NAMES, key=len, reverse=True))})(?![a-z])")
_OURS = re.compile(r"^#\s*(\S+) on .*, (\d+) ranks, engine ([^\s,]+)(?:, .*)?\s*$")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)(?:\s+Group\s+(\d+))?\b(?:\s+Pid\s+\d+\s+on\s+(\S+))?")
_DEVICES = re.compile(r"^#\s+Using devices\b")
_HALVES = ("out_of_place", "in_place")


def program_operation(text: str) -> str:
    """Operation of a program such as ``./build/all_reduce_perf``; empty if it is none that is known."""
    name = Path(text).name.removesuffix("_mpi").removesuffix("_perf")
    return NCCL_TESTS.get(name, "") if "_perf" in text else ""


def require_operation(path: Path, context: ReadingContext) -> str:
    """Return the operation that the name of the file, or the user, says.

    Raises
    ------
    InputError
        If neither does.
    """
    return _operation_named(path, context) or refuse_unknown(path)


def _operation_named(path: Path, context: ReadingContext) -> str:
    """Return the operation that the user, or the name of the file, says; empty if neither does."""
    match = _IN_FILE_NAME.search(path.name)
    return context.operation or (_FILE_NAMES[match[1]] if match else "")


@dataclass(slots=True)
class _State:
    """What the lines before a row have said; `usual`: operation where no line names one, `width`: cells of a row."""

    usual: str = ""
    operation: str = ""
    algorithm: str = ""
    n_ranks: int | None = None
    columns: list[str] = field(default_factory=list)
    group_of: dict[int, int] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)
    has_rows: bool = False
    width: int = 0

    @property
    def ranks(self) -> int | None:
        """How many ranks work together: of a run that was split into groups, those in the group of the first."""
        groups = list(self.group_of.values())
        return self.n_ranks or groups.count(groups[0] if groups else 0) or None


def read_nccl_tests_text(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read a log.

    Raises
    ------
    InputError
        If nothing says which operation was measured.
    """
    text = read_text(path, MAX_LOG_BYTES)
    state, is_known = _State(usual=_operation_named(path, context)), False
    rows, health = list[Measurement](), context.health
    broken, wrong = health.dropped, health.wrong
    rates: dict[str, list[tuple[str, str]]] = {}
    counts: dict[str, set[int | None]] = {}
    for number, line in enumerate(lines_of_log(text), 1):
        if line.isspace():
            continue
        cells = line.split() or ["#"]
        state.columns = state.columns or implied_columns(cells)
        if not cells[0].isdecimal() or not state.columns:
            _learn(state, line, cells, path)
            health.hear(number, line)
        else:
            cells = aligned(state.columns, cells)
            health.cut = number if len(cells) < (state.width or len(state.columns)) else 0
            state.width = len(cells)  # an excerpt may have all rows without the half in place
            if not (state.operation or is_known):
                state.usual, is_known = unnamed_operation(text, state.usual, path, context), True
            halves, n_wrong = _row(state, cells, number, path)
            rows += halves
            check_count(path, len(rows))
            wrong += [number] if n_wrong else []
            if len(halves) + n_wrong < n_measured(state.columns, cells):
                broken.append(number)
            if halves:
                rates.setdefault(halves[0].operation, []).append(rates_of(state.columns, cells))
                counts.setdefault(halves[0].operation, set()).add(ranks_of_count(state.columns, cells))
    if not rows and not (broken or wrong):
        context.notes.append(_what_is_there(text, state))
    for lines, what in ((broken, "broken"), (wrong, "with wrong results")):
        if lines:
            context.notes.append(
                f"{path}: left out: {count_text(len(lines), 'row')}, {what}, the first in line {lines[0]}"
            )
    allowed = {name: ranks_between(name, pairs) for name, pairs in rates.items()}
    implied = {name: _implied(name, allowed[name], counts[name]) for name in rates}
    if len(set(state.group_of.values())) == 1 and any(_is_part(row, implied) for row in rows):
        n = next(implied[row.operation] for row in rows if _is_part(row, implied))
        context.notes.append(f"{path}: its rates or counts say {n} ranks; the header names only a part of them")
        rows = [dataclasses.replace(row, n_ranks=None) if _is_part(row, implied) else row for row in rows]
    unsaid = {name: None if n else allowed[name] for name, n in implied.items()}
    return [
        row if row.n_ranks else dataclasses.replace(
            row, n_ranks=implied[row.operation] or context.n_ranks, ranks_between=unsaid[row.operation],
        )
        for row in rows
    ]  # fmt: skip


def _implied(name: str, allowed: tuple[int, int] | None, counts: set[int | None]) -> int | None:
    """Return the ranks that the rates of all rows say; where these allow several, those that all counts say."""
    if allowed is not None and allowed[0] == allowed[1]:
        return allowed[0]
    said = counts - {None} if OPERATIONS[name].needs_equal_blocks else set()
    return said.pop() if len(said) == 1 else None


def _what_is_there(text: str, state: _State) -> str:
    """Return what a file has in place of rows."""
    if state.columns:
        return f"the header of a table of nccl-tests ({' '.join(state.columns[:5])} ...) without rows"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    begins = f"it begins with {first[:40]!r}" if first else "it is empty"
    return f"no header of {', '.join(one.name for one in LOG_FORMATS)} or CSV; {begins}"


def _is_part(row: Measurement, implied: Mapping[str, int | None]) -> bool:
    """Whether the header names fewer ranks than the rates of a row's operation say."""
    return (row.n_ranks or 0) < (implied[row.operation] or 0)


def _learn(state: _State, line: str, cells: list[str], path: Path) -> None:
    """Take from a line that is no row what it says about the rows after it.

    Raises
    ------
    InputError
        If one list of devices has a rank on two hosts: then every host ran by itself.
    """
    names = column_names(cells)
    if names[:1] == ["size"] and halves_of(names):
        state.columns, state.width = names, 0
    elif match := _OURS.match(line):
        state.algorithm, state.n_ranks = match[1], int(match[2])
        state.operation = _operation_of(match[1])
        state.columns = []
    elif match := _RANK.match(line):
        rank, host = int(match[1]), match[3] or ""
        if state.has_rows:  # the next run in the same log
            state.group_of, state.host_of, state.has_rows = {}, {}, False
        if host and host != state.host_of.setdefault(rank, host):
            raise InputError(
                f"{path}: rank {rank} is on {state.host_of[rank]} and on {host}: their runs print side by side, and "
                "neither is over both, as of nccl-tests that was built without MPI=1"
            )
        state.group_of[rank] = int(match[2] or 0)
    elif _DEVICES.match(line):  # of another run, whose first one gave up before its table
        state.host_of = {}
    elif match := _PROGRAM.search(line):
        state.operation, state.algorithm, state.n_ranks = NCCL_TESTS[match[1]], "", None


def _operation_of(spec: str) -> str:
    """Operation of one of our collectives; empty for one out of a user's file."""
    from collectives import COLLECTIVES

    name = spec.partition(":")[0]
    return str(COLLECTIVES[name].metadata["operation"]) if name in COLLECTIVES else ""


def _row(state: _State, cells: list[str], number: int, path: Path) -> tuple[list[Measurement], int]:
    """Out of place and in place of one line, each where it has a time; and how many of them had wrong results."""
    halves, n_wrong = [], 0
    for half, i in enumerate(halves_of(state.columns)):
        if len(cells) < i + 3 or not all(NUMBER.fullmatch(cell) for cell in (cells[0], *cells[i : i + 3])):
            continue
        state.has_rows = True
        if not _agree(*map(float, (cells[0], *cells[i : i + 2]))):
            continue
        if state.columns[i + 3 : i + 4] == ["#wrong"] and cells[i + 3 : i + 4] and cells[i + 3].strip("0.").isdigit():
            n_wrong += 1
            continue
        halves.append(Measurement(
            state.operation or state.usual, float(cells[0]), float(f"{cells[i]}e-6"),
            state.ranks, state.algorithm, in_place=half > 0, source=str(path), line=number,
        ))  # fmt: skip
    return halves, n_wrong


def _agree(size: float, micros: float, algbw: float) -> bool:
    """Whether time and rate say the same but for their rounding; in other units they are a thousand times apart."""
    rate = size / (micros + 0.5) / 1e3, size / max(micros - 0.5, 1e-3) / 1e3
    return rate[0] / 2.5 <= algbw + 0.06 and algbw - 0.06 <= rate[1] * 2.5


def read_nccl_tests_json(tree: Mapping[str, Any], path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the results of a decoded file.

    Parameters
    ----------
    tree : mapping
        The decoded file.
    path : path
        Path of the file, named in messages.
    context : ReadingContext
        What the user says of the file; receives notes.

    Raises
    ------
    InputError
        Naming line and field, if one is missing or wrong, or nothing says which operation was measured.
    """
    top = TableFields(tree, path)
    arguments = list(top.items("args", str, "text")) if "args" in top else []
    operation = next(filter(None, map(program_operation, arguments)), "") or require_operation(path, context)
    devices = top.table("config").tables("devices") if "devices" in top.table("config") else []
    n_ranks = _ranks(devices) or context.n_ranks
    results = top.tables("results")
    check_count(path, len(results))
    rows, context.health.place = list[Measurement](), "result"
    bounds = top.table("out_of_bounds")
    if str(bounds.raw("okay")).lower() == "false":
        context.health.footer, context.health.out_of_bounds = 1, bounds.whole("count", default=1)
    for i, result in enumerate(results, 1):
        for half in _HALVES:
            timing = result.table(half)
            time = _number(timing, "time")
            if str(timing.raw("nwrong")).strip("0.").isdigit():
                context.health.wrong.append(i)
                continue
            if time is None:
                context.health.dropped.append(i)
                continue
            low, high = _spread(result.table(f"{half}_per_iter"))
            rows.append(Measurement(
                operation, result.number("size"), time * 1e-6, n_ranks, in_place=half == "in_place",
                low=low, high=high, source=str(path), line=i,
            ))  # fmt: skip
    return rows


def _ranks(devices: list[TableFields]) -> int:
    """Ranks in the group of the first device."""
    groups = [device.whole("group", default=0) for device in devices]
    return groups.count(groups[0]) if groups else 0


def _number(table: TableFields, key: str) -> float | None:
    """Return a field that is a number, or text for none."""
    value = table.raw(key)
    if value is None or (isinstance(value, str) and value.strip().lower() in ("nan", "-nan", "n/a", "")):
        return None
    return table.number(key)


def _spread(times: TableFields) -> tuple[float | None, float | None]:
    """Percentiles 5 and 95 of single iterations; the least and the largest, where these are not there."""
    if "times_us" in times:
        every = times.numbers("times_us")
        if every:
            low, high = np.percentile(every, (5, 95)) * 1e-6
            return float(low), float(high)
    low_us, high_us = _number(times, "min_us"), _number(times, "max_us")
    return (None if low_us is None else low_us * 1e-6), (None if high_us is None else high_us * 1e-6)
