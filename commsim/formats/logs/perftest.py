"""Tables of perftest (``ib_write_bw``, ``ib_send_lat`` and their like): messages between two ports.

A rate is that of many messages under way at once, as OSU's bandwidth is; both ways together where the test sends both
ways. A latency is half of a round trip. ``MB`` are MiB, as the rate of messages beside them shows.

References
----------
perftest, github.com/linux-rdma/perftest: ``src/perftest_parameters.h`` (columns), ``src/perftest_resources.c`` (units:
0x100000 bytes and 125,000,000 bytes; the times of a read are those of the round trip).
"""

from __future__ import annotations

import re
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.formats.measurement import MAX_LOG_BYTES, Measurement, ReadingContext, check_count
from commsim.formats.osu import STREAM, without_streams

from .log_lines import lines_of_log

_TITLE = re.compile(r"\b(RDMA_Write|RDMA_Read|Send|Raw_Ethernet|Atomic\w*)\b.{0,40}?\b(?:BW|Latency|Rate)\b.{0,20}Test")
_COLUMN = re.compile(r"#bytes|#iterations|[\w.%]+(?:[ _](?:peak|average|percentile))?\[[^\]\s]{1,16}\]")
_RATE = re.compile(r"BW[ _](?:average|peak)\[(.*)\]")
# Bytes/s of one of each unit that is printed.
_UNITS = {"MB/sec": 2.0**20, "MiB/sec": 2.0**20, "Gb/sec": 1e9 / 8}
_TIMES = ("t_avg[usec]", "t_typical[usec]")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,12})?", re.ASCII)


def read_perftest(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the tables of a file, one after another.

    Raises
    ------
    InputError
        If a rate has another unit than perftest prints.
    """
    kind, ways, columns, rows, left = "", 1, list[str](), list[Measurement](), set[str]()
    for number, line in enumerate(lines_of_log(read_text(path, MAX_LOG_BYTES)), 1):
        cells = line.split()
        if title := _TITLE.search(line):
            kind, ways, columns = title[1], 2 if "Bidirectional" in line else 1, []
        elif "#bytes" in line and "#iterations" in line:
            columns = _COLUMN.findall(line)
            _check_units(columns, f"{path}, line {number}")
        elif columns and len(cells) >= len(columns) and all(map(_NUMBER.fullmatch, cells[: len(columns)])):
            values = {name.replace("_", " ", 1) if name.startswith("BW") else name: float(cell)
                      for name, cell in zip(columns, cells, strict=False)}  # fmt: skip
            row = _row(kind, ways, values, path, number)
            if isinstance(row, str):
                left.add(row)
            else:
                rows.append(row)
                check_count(path, len(rows))
        else:
            context.health.hear(number, line)
    if left:
        context.notes.append(f"{path}: left out: rows of {', '.join(sorted(left))}")
    return rows if context.streams else without_streams(rows, path, context)


def _check_units(columns: list[str], where: str) -> None:
    for name in columns:
        if (rate := _RATE.fullmatch(name)) and rate[1] not in _UNITS:
            raise InputError(f"{where}: the column {name!r} must be in {', '.join(_UNITS)}")


def _row(kind: str, ways: int, values: dict[str, float], path: Path, number: int) -> Measurement | str:
    """Return a measurement, or what a row is that is none."""
    size = values["#bytes"]
    rates = {match[0][:7]: values[name] * _UNITS[match[1]] for name in values if (match := _RATE.fullmatch(name))}
    if rates:
        rate = next((value for name in ("BW aver", "BW peak") if (value := rates.get(name, 0.0))), 0.0) / ways
        if not rate or not size:
            return "no rate or no bytes"
        return Measurement("send_recv", size, size / rate, 2, STREAM, source=str(path), line=number)
    if kind in ("RDMA_Read", "") or kind.startswith("Atomic"):
        return "reads and atomics, whose times are those of round trips" if kind else "a test without a title"
    time = next((values[name] for name in _TIMES if name in values), 0.0)
    if not time:
        return "no time"
    low, high = (values.get(f"t_{end}[usec]", time) * 1e-6 for end in ("min", "max"))
    return Measurement("send_recv", size, time * 1e-6, 2, low=low, high=high, source=str(path), line=number)
