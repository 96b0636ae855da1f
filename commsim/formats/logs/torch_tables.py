"""Tables that benchmarks of PyTorch's collectives print: IBM's loops, and the all-reduce of "ML engineering".

Those of IBM have sizes in 1e6 bytes and bus bandwidths in GB/s, of all groups of a node together where several groups
run at once; some have times, too. They name no operation. The other one has sizes in KiB (older ones call them KB) and
both bandwidths, and says its ranks.

References
----------
github.com/IBM/pytorch-communication-benchmarks: ``allreduce-loop.py``, ``megatron-allgather.py`` and the others (the
sum of groups: ``factor``). github.com/stas00/ml-engineering, ``network/benchmarks/all_reduce_bench.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.operations import operation as known_operation
from commsim.core.units import count_text
from commsim.formats.measurement import MAX_LOG_BYTES, Measurement, ReadingContext, check_count
from commsim.formats.nccl_tests import require_operation

from .log_lines import lines_of_log

_SIZE, _RATE = "size(MB)", "avgbw(GB/sec)"
_GROUP = re.compile(r"group size\s*=\s*(\d{1,9})", re.ASCII)
_GROUPS = re.compile(r"groups_per_node\s*=\s*(\d{1,9})", re.ASCII)
_DIGITS = r"\d{1,12}(?:\.\d{1,9})?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TITLE = re.compile(
    rf"average bandwidth of all_reduce\b(?: with a ({_DIGITS})GB payload)?.{{0,80}}?(\d{{1,9}}) ranks", re.ASCII
)
_ROW = re.compile(rf"\|\s*(\d{{1,9}})([KMG])i?B\s*\|\s*{_DIGITS}GBps\s*\|\s*({_DIGITS})GBps\s*\|", re.ASCII)
_ALONE = re.compile(rf"\s*algbw:\s*({_DIGITS})\s*GBps", re.ASCII)
_POWERS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30}


@dataclass(slots=True)
class _TorchTable:
    """What the lines before a row have said."""

    columns: list[str] = field(default_factory=list)
    group: int | None = None
    n_groups: int = 1
    payload: float = 0.0
    n_ranks: int | None = None


def read_torch_tables(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the tables of a file, one after another.

    Raises
    ------
    InputError
        If nothing says the operation of a table that does not name it, or a rate needs a number of ranks.
    """
    table, rows, broken = _TorchTable(), list[Measurement](), list[int]()
    for number, line in enumerate(lines_of_log(read_text(path, MAX_LOG_BYTES)), 1):
        if _learned(table, line):
            continue
        try:
            row = _row(table, line, number, path, context)
        except ZeroDivisionError:  # a rate that is rounded to 0
            broken.append(number)
            continue
        if row is None:
            context.health.hear(number, line)
        else:
            rows.append(row)
            check_count(path, len(rows))
    if table.columns:
        context.notes.append(
            f"{path}: a time has PyTorch's call and a wait of the host, about 0.1 ms, which NCCL's has not"
        )
    if broken:
        many = count_text(len(broken), "row")
        context.notes.append(f"{path}: left out: {many} whose rate is 0, the first in line {broken[0]}")
    return rows


def _learned(table: _TorchTable, line: str) -> bool:
    """Take from a line what it says of the rows after it; whether it is no row."""
    if {_SIZE, _RATE} <= {*line.split()}:
        table.columns = line.split()
    elif match := _GROUP.search(line):
        table.group = int(match[1])
    elif match := _GROUPS.search(line):
        table.n_groups = max(1, int(match[1]))
    elif match := _TITLE.search(line):
        table.payload, table.n_ranks = float(match[1] or 0) * 1e9, int(match[2])
    else:
        return False
    return True


def _row(table: _TorchTable, line: str, number: int, path: Path, context: ReadingContext) -> Measurement | None:
    if match := _ROW.search(line):
        size, rate = int(match[1]) * _POWERS[match[2]], float(match[3]) * 1e9
        n_ranks = table.n_ranks or context.n_ranks
        return Measurement("all_reduce", size, size / rate, n_ranks, source=str(path), line=number)
    if table.payload and (match := _ALONE.match(line)):
        size, table.payload = table.payload, 0.0
        time = size / (float(match[1]) * 1e9)
        return Measurement("all_reduce", size, time, table.n_ranks, source=str(path), line=number)
    cells = line.split()
    if not table.columns or len(cells) != len(table.columns) or not all(map(_NUMBER.fullmatch, cells)):
        return None
    values, operation = dict(zip(table.columns, map(float, cells), strict=True)), require_operation(path, context)
    size, n_ranks = values[_SIZE] * 1e6, table.group or context.n_ranks
    times = {name[:4]: values[name] * 1e-6 for name in ("tavg(usec)", "tmin(usec)", "tmax(usec)") if name in values}
    if time := times.get("tavg", 0.0):
        low, high = times.get("tmin"), times.get("tmax")
        return Measurement(operation, size, time, n_ranks, low=low, high=high, source=str(path), line=number)
    if n_ranks is None:
        raise InputError(f"{path}, line {number}: a busbw is a time only with the number of ranks; give it: --ranks 8")
    rate = values[_RATE] * 1e9 / table.n_groups
    time = size * known_operation(operation).busbw_factor(n_ranks) / rate
    return Measurement(operation, size, time, n_ranks, source=str(path), line=number)
