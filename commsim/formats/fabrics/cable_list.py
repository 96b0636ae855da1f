"""A list of cables as CSV: what people keep, and what NetBox exports; and NetBox's cables as JSON.

A row is a cable: device, port, device, port, and if it is there a rate, a state and the kinds of the devices.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, shorten
from commsim.core.files.whole_files import read_json, read_text
from commsim.core.machines.nic_names import is_nic, split_nic

from .cable_columns import Columns, guess_columns, words_of
from .cabling import MAX_BYTES, Cable, Cabling, End
from .port_rates import port_rate

_DOWN = {"down", "disabled", "inactive", "failed", "broken", "offline", "polling", "nolink", "false", "no", "0"}
_PLANNED = {"planned", "decommissioning", "spare", "reserved"}
_RATE = re.compile(r"\d{1,2}x\w{3}\w*|\d+(?:\.\d+)?\s*[GMT]\w*(?:/s)?|[A-Z]{3}\d*", re.IGNORECASE | re.ASCII)
_NO_RATE = re.compile(r"0(\.0*)?\s*\D*|none|n/?a|-+|down|unknown|auto", re.IGNORECASE | re.ASCII)
_MODELS = {"": "", "host": "host", "server": "host", "node": "host", "compute": "host", "gpu": "host", "ca": "host",
           "switch": "switch", "leaf": "switch", "spine": "switch", "tor": "switch", "core": "switch"}  # fmt: skip
_MAX_LINE = 2**16


def delimiter_of(line: str) -> str:
    """Return what separates the columns of a line: the comma, the semicolon or the tab that is in it most often."""
    return max(",;\t", key=line.count)


def is_cable_list(head: str) -> bool:
    """Whether the first lines of a file are a list of cables, with a header or without."""
    rows = _rows(head.rpartition("\n")[0] if head.count("\n") > 1 else head)
    if not rows:
        return False
    try:
        guess_columns(rows[0][1], "")
    except InputError:
        return _is_bare(rows[0][1])
    return True


def _rows(text: str) -> list[tuple[int, list[str]]]:
    """Return number and cells of each row that is not empty and no remark."""
    lines = text.splitlines()
    kept = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not kept or max(map(len, kept)) > _MAX_LINE:
        return []
    reader = csv.reader(io.StringIO(text), delimiter=delimiter_of(kept[0]), skipinitialspace=True)
    try:
        return [
            (reader.line_num, [cell.strip() for cell in cells])
            for cells in reader if any(map(str.strip, cells)) and not cells[0].lstrip().startswith("#")
        ]  # fmt: skip
    except csv.Error:  # such as a quoted cell of many lines
        return []


def _is_bare(cells: Sequence[str]) -> bool:
    """Whether a row is a cable without a header before it: device, port, device, port, and a rate."""
    if not 4 <= len(cells) <= 5 or not all(cells[:4]) or cells[0] == cells[2]:
        return False
    is_rated = len(cells) == 5 and bool(_RATE.fullmatch(cells[4]))
    return is_rated or is_nic(cells[1]) or is_nic(cells[3])


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
    if "termination_a_id" in names:
        raise InputError(f"{path}: this export of NetBox has numbers of ports, no names (termination_a_id); export the "
                         "table of cables as it is shown, or api/dcim/cables/?format=json")  # fmt: skip
    columns = _bare_columns(len(names)) if bare else guess_columns(names, str(path))
    cabling = Cabling()
    if bare:
        cabling.told.append("no header: columns are taken for device, port, device, port, rate")
    else:
        cabling.told.append(columns.told(names))
    body = rows if bare else rows[1:]
    unit = columns.unit or _unit_by_size(columns, body, cabling)
    planned = 0
    for number, cells in body:
        where = f"{path}, line {number}"
        state = _state(columns, cells)
        if state == "planned":
            planned += 1
            continue
        cabling.add(_cable(columns, cells, unit, where, is_up=state != "down"), where)
        _kinds(cabling, columns, cells)
    if planned:
        cabling.told.append(f"{planned} cables that are planned or taken away are left out")
    cabling.kinds = {device: kind for device, kind in cabling.kinds.items() if kind}
    return cabling


def _bare_columns(n: int) -> Columns:
    return Columns({"a": 0, "b": 2}, {"a": 1, "b": 3}, rate=[4] if n > 4 else [])


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


def _cable(columns: Columns, cells: Sequence[str], unit: float, where: str, *, is_up: bool) -> Cable:
    a, b = (_read_end(columns, cells, end, where) for end in "ab")
    written = [text for i in columns.rate if (text := _cell(cells, i))]
    width = next((text for i in columns.width if (text := _cell(cells, i))), "")
    if width and written and written[0].isalpha():
        lanes = re.sub(r"\D", "", width) or "4"
        written = [f"{lanes}x {written[0]}"]
    rates = [port_rate(text, where, unit) for text in written if not _NO_RATE.fullmatch(text)]
    full = [port_rate(text, where, unit) for i in columns.full if (text := _cell(cells, i))]
    lanes_of = re.match(r"(\d{1,2})x\s*([A-Za-z]+\d*)", written[0]) if written else None
    if lanes_of and int(lanes_of[1]) < 4 and not full and rates:  # ports have four lanes
        full = [rates[0] * 4 / int(lanes_of[1])]
    text = written[0] if lanes_of else ""
    return Cable(a, b, min(rates, default=0.0), max(full, default=0.0), text, is_up)


def _read_end(columns: Columns, cells: Sequence[str], end: str, where: str) -> End:
    device = _cell(cells, columns.device[end])
    port = _cell(cells, columns.port[end]) if end in columns.port else ""
    if not device or not device.isprintable():
        raise InputError(f"{where}: a cable has a device at both ends, got {shorten(repr(','.join(cells)))}")
    host, nic = split_nic(device)
    if nic and not is_nic(port):  # one device for each NIC, as node07-mlx5_3
        return End(host, nic)
    return End(device, port)


def _state(columns: Columns, cells: Sequence[str]) -> str:
    for i in columns.state:
        text = re.sub(r"\W", "", _cell(cells, i)).lower()
        if text in _PLANNED:
            return "planned"
        if text in _DOWN or text.startswith("down"):
            return "down"
    return "down" if any(_cell(cells, i).lower() == "down" for i in columns.rate) else "up"


def _kinds(cabling: Cabling, columns: Columns, cells: Sequence[str]) -> None:
    for end in "ab":
        device = _cell(cells, columns.device[end])
        device = split_nic(device)[0] if split_nic(device)[1] else device
        said = words_of(_cell(cells, columns.kind[end])) if end in columns.kind else []
        kind = next((_MODELS[word] for word in said if _MODELS.get(word)), "") or columns.implied.get(end, "")
        if kind and cabling.kinds.setdefault(device, kind) != kind:
            cabling.kinds[device] = ""  # columns called server and switch that hold both


def is_netbox(tree: object) -> bool:
    """Whether a file of JSON has cables of NetBox's interface for programs."""
    rows = tree.get("results") if isinstance(tree, Mapping) else tree
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], Mapping) and "a_terminations" in rows[0]


def read_netbox(path: str | Path) -> Cabling:
    """Read ``api/dcim/cables/?format=json``.

    Raises
    ------
    InputError
        If an end has no device, such as a circuit's.
    """
    tree: Any = read_json(path, MAX_BYTES)
    rows = tree.get("results") if isinstance(tree, Mapping) else tree
    if not isinstance(rows, list):
        raise InputError(f"{path}: expected a list of cables, or an object with results, which is one")
    cabling, planned, others = Cabling(), 0, 0
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{path}: results[{i}] must be an object, got {type(row).__name__}")
        if _value(row.get("status")) in _PLANNED:
            planned += 1
            continue
        ends = [[_netbox_end(one) for one in _terminations(row, side)] for side in "ab"]
        if any(end is None for side in ends for end in side) or not all(ends):
            others += 1
            continue
        for a, b in zip(*ends, strict=False):
            if a is not None and b is not None:
                cabling.add(Cable(a, b), f"{path}: results[{i}]")
    if planned:
        cabling.told.append(f"{planned} cables that are planned or taken away are left out")
    if others:
        cabling.told.append(f"{others} cables that do not join interfaces of two devices are left out")
    return cabling


def _terminations(row: Mapping[str, Any], side: str) -> list[Any]:
    found = row.get(f"{side}_terminations")
    return found if isinstance(found, list) else []


def _value(of: Any) -> str:
    return str(of.get("value", "")) if isinstance(of, Mapping) else str(of or "")


def _netbox_end(one: Any) -> End | None:
    of = one.get("object") if isinstance(one, Mapping) else None
    device = of.get("device") if isinstance(of, Mapping) else None
    is_port = isinstance(one, Mapping) and one.get("object_type") == "dcim.interface"
    if not is_port or not isinstance(of, Mapping) or not isinstance(device, Mapping) or "name" not in device:
        return None
    name, port = str(device.get("name") or device.get("display")), str(of.get("name", ""))
    host, nic = split_nic(name)
    return End(host, nic) if nic and not is_nic(port) else End(name, port)
