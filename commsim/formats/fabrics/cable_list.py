"""A list of cables as CSV or as a table of Markdown: what people keep, and what NetBox exports.

A row is a cable: device, port, device, port, and if they are there a rate, a latency, a state and the devices' kinds.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.machines.nic_names import is_nic, split_nic
from commsim.core.units import parse_time

from .cable_columns import Columns, guess_columns, words_of
from .cabling import MAX_BYTES, MAX_NAME, Cable, Cabling, End
from .port_rates import port_rate

_DOWN = {"down", "disabled", "inactive", "failed", "broken", "offline", "polling", "nolink", "false", "no", "0"}
PLANNED = {"planned", "decommissioning", "spare", "reserved"}
_RATE = re.compile(r"\d{1,2}x\w{3}\w*|\d+(?:\.\d+)?\s*[GMT]\w*(?:/s)?|[A-Z]{3}\d*", re.IGNORECASE | re.ASCII)
_NO_RATE = re.compile(r"0(\.0*)?\s*\D*|none|n/?a|-+|down|unknown|auto", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"\d+(?:\.\d+)?\s*[pnum]?s", re.IGNORECASE | re.ASCII)
_NO_TIME = re.compile(r"|none|n/?a|-+|unknown", re.IGNORECASE)
_MODELS = {"": "", "host": "host", "server": "host", "node": "host", "compute": "host", "gpu": "host", "ca": "host",
           "switch": "switch", "leaf": "switch", "spine": "switch", "tor": "switch", "core": "switch"}  # fmt: skip
_MAX_LINE = 2**16
# How one cell holds a device and its port: leaf01[3], node07:mlx5_3, leaf01 Ethernet1/1, leaf01/3.
_JOINED = (r"([^\[\]]+?)\s*\[([^\[\]]+)\]", r"([^:]+):(.+)", r"([^|]+)\|(.+)", r"(\S*\d\S*)\s+(\S.*)", r"([^/]+)/(.+)")
# What ports are called beside the names of NICs, so that rack1:leaf01 is no port of rack1.
_PORT = re.compile(r"\s*(?:\d|e?th|swp|[a-z]{2}-\d|hu|p(?:ort)?[-_ ]?\d)", re.IGNORECASE | re.ASCII)
# Columns called link hold a state or a number of the cable; of a state there are few.
_MOST_STATES = 8
# Column of NetBox's export for import, which names no port.
_NUMBERS = "termination_a_id"
# Lines that are looked at for the header: what stands before it is a title.
_BEFORE_HEADER = 8


def delimiter_of(line: str) -> str:
    """Return what separates the columns of a line: the comma, the semicolon or the tab that is in it most often."""
    return max(",;\t", key=line.count)


def is_cable_list(head: str) -> bool:
    """Whether the first lines of a file are a list of cables, with a header or without."""
    rows = _rows(head.rpartition("\n")[0] if head.count("\n") > 1 else head)
    if not rows:
        return False
    return _is_first(rows[0][1])


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """Return number and cells of each row that is not empty and no remark."""
    lines = text.splitlines()
    kept = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not kept or max(map(len, kept)) > _MAX_LINE:
        return []
    if kept[0].lstrip().startswith("|"):
        return _markdown_rows(lines)
    delimiter = delimiter_of(max(kept[:_BEFORE_HEADER], key=lambda line: line.count(delimiter_of(line))))
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [
            (reader.line_num, [cell.strip() for cell in cells])
            for cells in reader if any(map(str.strip, cells)) and not cells[0].lstrip().startswith("#")
        ]  # fmt: skip
    except csv.Error:  # such as a quoted cell of many lines
        return []
    first = next((i for i, (_, cells) in enumerate(rows[:_BEFORE_HEADER]) if _is_first(cells)), 0)
    return rows[first:]


def _is_first(cells: Sequence[str]) -> bool:
    """Whether a row names the columns of cables, or is a cable without a header before it."""
    if _NUMBERS in cells:
        return True
    if not any(re.search(r"[A-Za-z]", cell) for cell in cells):
        return False
    try:
        guess_columns(cells, "")
    except InputError:
        return _is_bare(cells)
    return True


def _markdown_rows(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return number and cells of the rows of a table between bars, without the line below its header."""
    cells = [(number, [cell.strip() for cell in line.strip().strip("|").split("|")])
             for number, line in enumerate(lines, 1) if line.lstrip().startswith("|")]  # fmt: skip
    return [(number, row) for number, row in cells if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]


def _is_bare(cells: Sequence[str]) -> bool:
    """Whether a row is a cable without a header before it: device, port, device, port, a rate and a latency."""
    if not 4 <= len(cells) <= 6 or not all(cells[:4]) or cells[0] == cells[2]:
        return False
    is_rated = len(cells) > 4 and bool(_RATE.fullmatch(cells[4]))
    if len(cells) == 6:
        return is_rated and bool(_TIME.fullmatch(cells[5]))
    return is_rated or any(is_nic(cell) and re.search(r"\d", cell) is not None for cell in (cells[1], cells[3]))


def read_cable_list(path: str | Path) -> Cabling:
    """Read a list.

    Raises
    ------
    InputError
        If its columns are not known, or a row has no device, or a rate that is none.
    """
    rows = _rows(read_text(path, MAX_BYTES))
    if not rows:
        raise InputError(f"{path}: lists no cable")
    names = rows[0][1]
    bare = _is_bare(names)
    if _NUMBERS in names:
        raise InputError(f"{path}: this export of NetBox has numbers of ports, no names (termination_a_id); export the "
                         "table of cables as it is shown, or api/dcim/cables/?format=json")  # fmt: skip
    columns = _bare_columns(len(names)) if bare else guess_columns(names, str(path))
    cabling = Cabling()
    body = rows if bare else rows[1:]
    if bare:
        taken = ("device", "port", "device", "port", "rate", "latency")[: max(5, len(names))]
        cabling.told.append(f"no header: columns are taken for {', '.join(taken)}")
    else:
        _check_header(columns, rows, path)
        cabling.told.append(columns.told(names))
    columns.state = [i for i in columns.state if len({_cell(cells, i) for _, cells in body}) <= _MOST_STATES]
    joined = "" if columns.port else _joined(columns, body)
    if joined:
        cabling.told.append("no column of ports: the cells of devices hold them, too")
    unit = columns.unit or _unit_by_size(columns, body, cabling)
    planned = 0
    for number, cells in body:
        where = f"{path}, line {number}"
        state = _state(columns, cells)
        if state == "planned":
            planned += 1
            continue
        cabling.add(_cable(columns, cells, unit, where, joined, is_up=state != "down"), where)
        _kinds(cabling, columns, cells, joined)
    if planned:
        cabling.told.append(f"{planned} cables that are planned or taken away are left out")
    cabling.kinds = {device: kind for device, kind in cabling.kinds.items() if kind}
    return cabling


def _bare_columns(n: int) -> Columns:
    return Columns({"a": 0, "b": 2}, {"a": 1, "b": 3}, rate=[4] if n > 4 else [], latency=[5] if n > 5 else [])


def _check_header(columns: Columns, rows: Sequence[tuple[int, list[str]]], path: str | Path) -> None:
    """Refuse a cable that would be taken for the header: ``leaf0`` has the word of a column, and is a device below."""
    number, names = rows[0]
    devices = {_cell(cells, i) for _, cells in rows[1:] if cells != names for i in columns.device.values()}
    if same := [name for i in columns.device.values() if (name := names[i]) in devices]:
        raise InputError(
            f"{path}, line {number}: {same[0]} is a device, not the name of a column: write a header above the first "
            "cable, such as a_device,a_port,b_device,b_port,rate"
        )


def _cell(cells: Sequence[str], column: int) -> str:
    return cells[column] if column < len(cells) else ""


def _unit_by_size(columns: Columns, rows: Sequence[tuple[int, list[str]]], cabling: Cabling) -> float:
    """Choose the unit of numbers without one, by how large the largest is."""
    numbers = [float(cell) for _, cells in rows for i in (*columns.rate, *columns.full)
               if re.fullmatch(r"\d{1,15}(\.\d+)?", cell := _cell(cells, i))]  # fmt: skip
    if not numbers:
        return 1e9
    unit, name = next(
        (unit, name) for most, unit, name in ((5e3, 1e9, "Gb/s"), (5e6, 1e6, "Mb/s"), (5e9, 1e3, "kb/s"),
                                              (float("inf"), 1.0, "b/s")) if max(numbers) < most
    )  # fmt: skip
    cabling.told.append(f"rates without a unit are taken for {name}")
    return unit


def _joined(columns: Columns, rows: Sequence[tuple[int, list[str]]]) -> str:
    """Return the expression by which every end is a device and its port in one cell; empty if none is.

    An end without its port is a list of cables between devices; then each device has several.
    """
    ends = {_cell(cells, column) for _, cells in rows for column in columns.device.values()}
    if max(map(len, ends), default=0) > 2 * MAX_NAME:  # expressions take the square of a cell's length
        return ""
    return next((form for form in _JOINED if all(_has_port(re.fullmatch(form, end)) for end in ends)), "")


def _has_port(parts: re.Match[str] | None) -> bool:
    return parts is not None and (is_nic(parts[2].strip()) or _PORT.match(parts[2]) is not None)


def _cable(columns: Columns, cells: Sequence[str], unit: float, where: str, joined: str, *, is_up: bool) -> Cable:
    a, b = (_read_end(columns, cells, end, where, joined) for end in "ab")
    written = [text for i in columns.rate if (text := _cell(cells, i))]
    width = next((text for i in columns.width if (text := _cell(cells, i))), "")
    if width and written and written[0].isalpha():
        lanes = re.sub(r"\D", "", width) or "4"
        written = [f"{lanes}x {written[0]}"]
    written = [_with_point(text) for text in written]
    rates = [port_rate(text, where, unit) for text in written if not _NO_RATE.fullmatch(text)]
    full = [port_rate(_with_point(text), where, unit) for i in columns.full if (text := _cell(cells, i))]
    lanes_of = re.match(r"(\d{1,2})x\s*([A-Za-z]+\d*)", written[0]) if written else None
    if lanes_of and int(lanes_of[1]) < 4 and not full and rates:  # ports have four lanes
        full = [rates[0] * 4 / int(lanes_of[1])]
    text = written[0] if lanes_of else ""
    latency = _latency(columns, cells, where)
    return Cable(a, b, min(rates, default=0.0), max(full, default=0.0), text, is_up, latency)


def _latency(columns: Columns, cells: Sequence[str], where: str) -> float | None:
    """Return the latency that a row says, of its first column that says one; None if none does."""
    said = [text for i in columns.latency if not _NO_TIME.fullmatch(text := _with_point(_cell(cells, i)))]
    if not said:
        return None
    return parse_time(said[0] if said[0][-1].isalpha() else f"{said[0]}{columns.time_unit}", f"{where}: latency")


def _with_point(rate: str) -> str:
    """Return a rate with a decimal point in place of a comma, which only tables with other separators have."""
    return re.sub(r"(?<=\d),(?=\d{1,2}(?!\d))", ".", rate)


def _read_end(columns: Columns, cells: Sequence[str], end: str, where: str, joined: str = "") -> End:
    device = _cell(cells, columns.device[end])
    port = _cell(cells, columns.port[end]) if end in columns.port else ""
    if not device or not device.isprintable():
        raise InputError(f"{where}: a cable has a device at both ends, got {','.join(cells)!r}")
    if joined and (parts := re.fullmatch(joined, device)):
        return End(parts[1].strip(), parts[2].strip())
    host, nic = split_nic(device)
    if nic and not is_nic(port):  # one device for each NIC, as node07-mlx5_3
        return End(host, nic)
    return End(device, port)


def _state(columns: Columns, cells: Sequence[str]) -> str:
    for i in columns.state:
        text = re.sub(r"\W", "", _cell(cells, i)).lower()
        if text in PLANNED:
            return "planned"
        if text in _DOWN or text.startswith("down"):
            return "down"
    return "down" if any(_cell(cells, i).lower() == "down" for i in columns.rate) else "up"


def _kinds(cabling: Cabling, columns: Columns, cells: Sequence[str], joined: str) -> None:
    for end in "ab":
        device = _read_end(columns, cells, end, "", joined).device
        said = words_of(_cell(cells, columns.kind[end])) if end in columns.kind else []
        kind = next((_MODELS[word] for word in said if _MODELS.get(word)), "") or columns.implied.get(end, "")
        if kind and cabling.kinds.setdefault(device, kind) != kind:
            cabling.kinds[device] = ""  # columns called server and switch that hold both
