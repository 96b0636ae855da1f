"""Tables of the OSU micro-benchmarks, whose sizes are those of one rank's message; here they become nccl-tests' sizes.

``Size`` is what a rank gives to MPI: the whole array of an all-reduce, a reduce-scatter or a broadcast, but one block
of an all-gather, an all-to-all, a gather or a scatter, which nccl-tests counts times the ranks. The tests of operations
with other sizes for each rank (``osu_alltoallv``) give all ranks the same, and so are those of equal blocks. MB are
1e6 bytes.

References
----------
OSU micro-benchmarks 7.4, ``c/util/osu_util_mpi.c`` and ``c/mpi/collective``.
"""

from __future__ import annotations

import re
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.units import count_text

from .logs.log_lines import lines_of_log
from .measurement import MAX_LOG_BYTES, Measurement, ReadingContext, check_count

_TITLE = re.compile(
    r"\s*#?\s*OSU (?:(?:MPI|NCCL|xCCL)(?:-(?:CUDA MANAGED|\S{1,20}))?\s+|(?=MPI_))(.{1,80}?)\s+(?:Test|Benchmark)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\b(?:latency|persistent|non-blocking|personalized|exchange)\b", re.IGNORECASE)
_PAIRS = re.compile(r"pairs:\s*([1-9]\d{0,8})\b", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,12})?", re.ASCII)
# By OSU's name: ours, and whether the size is that of one block of as many as there are ranks.
_OPERATIONS = {
    "allreduce": ("all_reduce", False), "reduce": ("reduce", False), "bcast": ("broadcast", False),
    "broadcast": ("broadcast", False), "reduce_scatter": ("reduce_scatter", False),
    "reduce_scatter_block": ("reduce_scatter", False), "barrier": ("barrier", False),
    "allgather": ("all_gather", True), "allgatherv": ("all_gather", True), "all-to-all": ("all_to_all", True),
    "alltoall": ("all_to_all", True), "alltoallv": ("all_to_all", True), "all-to-allv": ("all_to_all", True),
    "all-to-all-v": ("all_to_all", True), "gather": ("gather", True), "gatherv": ("gather", True),
    "scatter": ("scatter", True),
    "scatterv": ("scatter", True), "": ("send_recv", False),
    "multi": ("send_recv", False),
}  # fmt: skip
# Messages that do not wait for each other, and how many ways the printed rate adds up.
_WAYS = {"bandwidth": 1, "bi-directional bandwidth": 2, "multiple bandwidth / message rate": 1}
STREAM = "stream"
_TIMES = ("pure comm.", "avg latency", "latency", "overall")
_RATES = ("bandwidth", "mb/s")
_UNITS = ("us", "MB/s", "%", "Messages/s")
_SPREAD = ("min latency", "avg latency", "max latency")
# The column of ``-c``; says Pass or Fail.
_VERDICT = "validation"


def read_osu(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read one table, or several one after another.

    Raises
    ------
    InputError
        If the benchmark is none that is known here, or its sizes need the number of ranks which is not given.
    """
    name, pairs, columns, rows, broken = "without a title", 1, list[str](), list[Measurement](), list[int]()
    printed = ""  # the row before
    for number, line in enumerate(lines_of_log(read_text(path, MAX_LOG_BYTES)), 1):
        cells = line.split()
        if title := _TITLE.match(line):
            name, pairs, columns = " ".join(_WORDS.sub("", title[1]).lower().split()), 1, []
        elif match := _PAIRS.search(line):
            pairs = int(match[1])
        elif re.search(r"\bSize\b", line) or (line.startswith("#") and "Latency(us)" in line.replace(" ", "")):
            columns = _split_columns(line, f"{path}, line {number}")
        elif cells and columns and _NUMBER.fullmatch(cells[0]):
            numbers = _numbers(columns, cells)
            if numbers is None or (not line.endswith("\n") and _is_cut(cells[-1], printed)):
                broken.append(number)
                context.health.wrong += [number] if "Fail" in cells else []
                continue
            printed = cells[-1]
            rows.append(_row(name, pairs, columns[0], numbers, number, path, context))
            check_count(path, len(rows))
        else:
            context.health.hear(number, line)
    rows = rows if context.streams else without_streams(rows, path, context)
    if broken:
        rows_of = count_text(len(broken), "row")
        context.health.dropped += broken
        context.notes.append(f"{path}: left out: {rows_of}, failed or broken, the first in line {broken[0]}")
    return rows


def without_streams(rows: list[Measurement], path: Path, context: ReadingContext) -> list[Measurement]:
    """Leave out rates of messages that do not wait for each other, at sizes up to which the file has latencies too."""
    waits = [row.size for row in rows if row.operation == "send_recv" and row.algorithm != STREAM]
    left = [row for row in rows if row.algorithm != STREAM or row.size > max(waits, default=-1.0)]
    if len(left) < len(rows):
        context.notes.append(
            f"{path}: left out: {count_text(len(rows) - len(left), 'row')} of bandwidth, up to the largest size of the "
            "latencies in the same file"
        )
    return left


def _is_cut(last: str, before: str) -> bool:
    """Whether the end of a file is inside its last number: OSU prints as many decimals in each row."""
    return len(last.partition(".")[2]) < len(before.partition(".")[2])


def _split_columns(line: str, where: str) -> list[str]:
    """Names of the columns, which are apart by two blanks or a tab where a name has a blank in it.

    Raises
    ------
    InputError
        If times are not in microseconds, or rates not in MB/s: OSU prints no others.
    """
    parts = re.split(r"\s{2,}|\t|(?<=\))\s+", line.lstrip("# ").rstrip())
    for part in parts:
        unit = re.search(r"\(([^()]*)\)\s*$", part)
        if unit and unit[1] not in _UNITS:
            raise InputError(f"{where}: the column {part.strip()[:60]!r} must be in {', '.join(_UNITS)}")
    return [re.sub(r"\s*\(.*", "", part).strip().lower() for part in parts if part.strip()]


def _numbers(columns: list[str], cells: list[str]) -> dict[str, str] | None:
    """Numbers by column, as printed; None of a row that is incomplete, or whose result was wrong."""
    fields = dict(zip(columns, cells, strict=False))
    if len(cells) < len(columns) or fields.pop(_VERDICT, "Pass") != "Pass":
        return None
    if not all(map(_NUMBER.fullmatch, fields.values())):
        return None
    spread = [float(fields[column]) for column in _SPREAD if column in fields]
    return fields if spread == sorted(spread) else None


def _row(
    name: str, pairs: int, first: str, cells: dict[str, str], number: int, path: Path, context: ReadingContext
) -> Measurement:
    if name in _WAYS:
        printed = next((cells[column] for column in _RATES if column in cells), "0")
        size, rate = float(cells[first]), float(printed) * 1e6 / (_WAYS[name] * pairs)
        if not rate:
            raise InputError(f"{path}, line {number}: a rate must be more than 0, got 0")
        return Measurement("send_recv", size, size / rate, 2, STREAM, source=str(path), line=number)
    known = name if name in _OPERATIONS else name.removeprefix("i")  # Iallreduce does not wait
    if known not in _OPERATIONS:
        raise InputError(f"{path}, line {number}: the benchmark {name!r} is not known; known: {_known_text()}")
    operation, in_blocks = _OPERATIONS[known]
    n_ranks = 2 if operation == "send_recv" else context.n_ranks
    if in_blocks and n_ranks is None:
        raise InputError(
            f"{path}: sizes of {operation} are those of one block, and OSU's tables do not contain the number of"
            f" ranks; give it, as in --ranks 8"
        )
    size = 0.0 if operation == "barrier" else float(cells[first]) * ((n_ranks or 1) if in_blocks else 1)
    times = {column: float(f"{cell}e-6") for column, cell in cells.items() if column != first or operation == "barrier"}
    time = next((times[want] for want in _TIMES if want in times), None)
    if time is None:
        raise InputError(f"{path}, line {number}: none of its columns is a time; known: {', '.join(_TIMES)}")
    return Measurement(
        operation, size, time, n_ranks, low=times.get("min latency"), high=times.get("max latency"), source=str(path),
        line=number,
    )  # fmt: skip


def _known_text() -> str:
    return ", ".join(sorted({*_OPERATIONS, *_WAYS} - {""}))
