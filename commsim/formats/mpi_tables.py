"""Tables of the Intel MPI Benchmarks and of ucc_perftest; sizes of one block become nccl-tests' sizes, as OSU's do.

References
----------
Intel MPI Benchmarks, github.com/intel/mpi-benchmarks at 46e8757 (2021.11): ``src_c/IMB_output.c`` (columns; ``t_pure``
of calls that do not block is the call without work beside it), ``IMB_allgather.c``, ``IMB_alltoall.c``,
``IMB_gather.c`` and ``IMB_scatter.c`` (``#bytes`` is one block of as many as there are ranks), ``IMB_reduce_scatter.c``
and ``IMB_reduce_scatter_block.c`` (so is theirs since commit df3db3a, version 2019; before, it was the whole array).
UCC, ``tools/perf/ucc_pt_benchmark.cc``: ``Size`` is one block, too; a barrier has ``N/A`` for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.units import count_text

from .logs.log_lines import lines_of_log
from .measurement import MAX_LOG_BYTES, Measurement, ReadingContext, check_count

# By their names in small letters without signs: ours, and whether the size is that of one block.
_IMB = {
    "allreduce": ("all_reduce", False), "reduce": ("reduce", False), "bcast": ("broadcast", False),
    "reducescatter": ("reduce_scatter", True), "reducescatterblock": ("reduce_scatter", True),
    "allgather": ("all_gather", True), "allgatherv": ("all_gather", True), "alltoall": ("all_to_all", True),
    "alltoallv": ("all_to_all", True), "gather": ("gather", True), "gatherv": ("gather", True),
    "scatter": ("scatter", True), "scatterv": ("scatter", True), "barrier": ("barrier", False),
    "pingpong": ("send_recv", False), "sendrecv": ("send_recv", False),
}  # fmt: skip
# Version of IMB since which sizes of reduce-scatter are blocks.
_SINCE_BLOCKS = 2019
_VERSION = re.compile(r"#\s*Intel\s?\(R\) MPI Benchmarks? (?:Suite V)?(\d{1,4})", re.ASCII)
_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(\w+)", re.ASCII)
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\d{1,9})", re.ASCII)
_COLLECTIVE = re.compile(r"\s*Collective:\s*(\w+)", re.ASCII)
_IMB_COLUMN = re.compile(r"(#bytes|#repetitions|[a-zA-Z_/]+\[[\w%]+\]|[MG]bytes/sec|Msg/sec|defects)", re.ASCII)
_NOT_THERE = "N/A"
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,12})?", re.ASCII)


@dataclass(slots=True)
class _Table:
    """What the lines before a row have said."""

    name: str = ""
    n_ranks: int | None = None
    columns: list[str] = field(default_factory=list)
    is_ucc: bool = False
    version: int = _SINCE_BLOCKS


def read_mpi_tables(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the tables of a file, one after another.

    Raises
    ------
    InputError
        If the benchmark is none that is known here, or its sizes need the number of ranks, which is not given.
    """
    table, rows, unknown, empty = _Table(), list[Measurement](), set[str](), 0
    for number, line in enumerate(lines_of_log(read_text(path, MAX_LOG_BYTES)), 1):
        cells = line.split()
        if _learned(table, line):
            continue
        if table.is_ucc:
            cells[:2] = ["0" if cell == _NOT_THERE else cell for cell in cells[:2]]
        if not cells or not table.columns or not all(map(_NUMBER.fullmatch, cells[:2])):
            continue
        key = re.sub(r"[\W_]", "", table.name).lower()
        key = key if key in _IMB else key.removeprefix("i").removesuffix("pure")
        if key not in _IMB:
            unknown.add(table.name)
        elif (row := _row(table, *_IMB[key], cells, number, path, context)) is not None:
            rows.append(row)
            check_count(path, len(rows))
        else:
            empty += 1
    if unknown and not rows:
        raise InputError(f"{path}: the benchmarks {', '.join(sorted(unknown))} are not known; known: {', '.join(_IMB)}")
    if unknown:
        context.notes.append(f"{path}: left out: {', '.join(sorted(unknown))}, which are none of our operations")
    if empty:
        context.notes.append(f"{path}: left out: {count_text(empty, 'row')}, of 0 bytes or broken")
    return rows


def _learned(table: _Table, line: str) -> bool:
    """Take from a line what it says of the rows after it; whether it is no row."""
    if match := _VERSION.match(line):
        table.version = int(match[1])
    elif match := _BENCHMARK.match(line):
        table.name, table.columns, table.is_ucc = match[1], [], False
    elif match := _PROCESSES.match(line):
        table.n_ranks = int(match[1])
    elif match := _COLLECTIVE.match(line):
        table.name, table.columns, table.is_ucc, table.n_ranks = match[1], [], True, None
    elif "#repetitions" in line:
        table.columns = _IMB_COLUMN.findall(line)
    elif table.is_ucc and re.search(r"\bavg\s+min\s+max\b", line):
        table.columns = ["count", "size", "avg", "min", "max"]
    else:
        return False
    return True


def _row(
    table: _Table, operation: str, in_blocks: bool, cells: list[str], number: int, path: Path, context: ReadingContext
) -> Measurement | None:
    """Return the measurement of a row; None of one without bytes, or that is cut."""
    values = dict(zip(table.columns, cells, strict=False))
    if len(values) < len(table.columns) or not all(map(_NUMBER.fullmatch, values.values())):
        return None
    if table.is_ucc:
        size, time, low, high = (float(values[key]) for key in ("size", "avg", "min", "max"))
    else:
        size = float(values.get("#bytes", 0))
        times = {key.partition("[")[0]: float(value) for key, value in values.items() if key.endswith("[usec]")}
        time = next((times[key] for key in ("t_avg", "t_pure", "t") if key in times), 0.0)
        low, high = times.get("t_min", time), times.get("t_max", time)
    if not time or (not size and operation != "barrier"):
        return None
    in_blocks &= table.is_ucc or operation != "reduce_scatter" or table.version >= _SINCE_BLOCKS
    n_ranks = 2 if operation == "send_recv" else table.n_ranks or context.n_ranks
    if in_blocks and n_ranks is None:
        raise InputError(
            f"{path}, line {number}: sizes of {operation} are those of one block, and the table does not contain the "
            "number of ranks; give it, as in --ranks 8"
        )
    return Measurement(
        operation, size * (n_ranks or 1) if in_blocks else size, time * 1e-6, n_ranks, low=low * 1e-6, high=high * 1e-6,
        source=str(path), line=number,
    )  # fmt: skip
