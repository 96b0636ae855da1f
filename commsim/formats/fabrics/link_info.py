"""What ``iblinkinfo`` prints of an InfiniBand fabric: each port of each node, those that are down too.

It says what a port could reach where it and its neighbour run below that.

References
----------
rdma-core, ``infiniband-diags/iblinkinfo.c``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.machines.nic_names import split_nic

from .cabling import MAX_BYTES, Cable, Cabling
from .discovered import AGGREGATION, end_of, node_names
from .port_rates import LANES, lane_rate, signal_generation

_HEADER = re.compile(r"\s*(CA|Switch|Router):\s*(?:0x([0-9a-f]+)\s+)?(.*?):?", re.ASCII)
_PORT = re.compile(
    r'\s*(?:0x(?P<guid>[0-9a-f]+)\s+(?:"(?P<own>[^"]*)"\s+)?)?(?P<lid>\d+)\s+(?P<port>\d{1,9})\[[^\]]*\]\s*==\('
    r"(?P<link>[^)]*(?:\([^)]*\))?[^)]*)\)==>\s*(?:0x(?P<far_guid>[0-9a-f]+)\s+)?"
    r'(?:(?P<far_lid>\d+)\s+(?P<far_port>\d{1,9}))?\s*(?:\[[^\]]*\])?\s*"(?P<far>[^"]*)"\s*(?:\((?P<could>[^)]*)\))?',
    re.ASCII,
)
_LINK = re.compile(r"\s*(\d{1,3})\s*X\s+(\d{1,9}(?:\.\d{1,9})?)\s*Gbps", re.IGNORECASE | re.ASCII)
_COULD_WIDTH = re.compile(r"Could be (\d{1,3})\s*X", re.IGNORECASE | re.ASCII)
_COULD_SPEED = re.compile(r"Could be (\d{1,9}(?:\.\d{1,9})?)\s*Gbps", re.IGNORECASE | re.ASCII)


@dataclass(slots=True)
class _Port:
    rate: float
    full: float
    text: str
    is_up: bool


@dataclass(slots=True)
class _Fabric:
    """Nodes by identity, what they say of their ports, and ports without a neighbour."""

    nodes: dict[str, str] = field(default_factory=dict)
    by_lid: dict[str, str] = field(default_factory=dict)
    ports: dict[frozenset[tuple[str, int]], list[_Port]] = field(default_factory=dict)
    down: list[tuple[str, int]] = field(default_factory=list)


def is_iblinkinfo(head: str) -> bool:
    """Whether the first lines of a file are of such an output."""
    return bool(re.search(r"\[[ \d]*\]\s*==\(.*\)==>", head))


def read_iblinkinfo(path: str | Path) -> Cabling:
    """Read the output, of each node or one line a port (``--line``).

    Raises
    ------
    InputError
        If a line of a port cannot be read.
    """
    lines = read_text(path, MAX_BYTES).splitlines()
    matched = [(n, line, _PORT.match(line)) for n, line in enumerate(lines, 1)]
    for n, line, port in matched:
        if "==(" in line and port is None:
            raise InputError(f"{path}, line {n}: a port is '3 17[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> 7 1[ ] "
                             f"\"name\" ( )', got {line!r}")  # fmt: skip
    fabric = _fabric(matched)
    cabling, names = Cabling(), node_names(fabric.nodes)
    used = Counter(node for key in fabric.ports for node, _ in key)
    n_sharp = 0
    for key, said in fabric.ports.items():
        if any(AGGREGATION in fabric.nodes[node] for node, _ in key):
            n_sharp += 1
            continue
        if len(key) != 2:
            raise InputError(f"{path}: {names[next(iter(key))[0]]!r} has a port that leads to itself")
        a, b = (end_of(names[node], node, port, used[node]) for node, port in sorted(key))
        slowest = min(said, key=lambda port: port.rate)
        full = max(port.full for port in said)
        cabling.add(Cable(a, b, slowest.rate, full, slowest.text, is_up=all(port.is_up for port in said)), str(path))
    cabling.down = [end_of(names[node], node, port, used[node] + 1) for node, port in fabric.down if node[0] == "H"]
    kinds = {"S": "switch", "H": "host"}
    cabling.kinds = {
        split_nic(names[node])[0] if node[0] == "H" else names[node]: kinds[node[0]]
        for node, text in fabric.nodes.items() if node[0] in kinds and AGGREGATION not in text
    }  # fmt: skip
    if n_sharp:
        cabling.told.append(f"{n_sharp} adapters in switches that reduce data (SHARP) are left out: they are no hosts")
    return cabling


def _fabric(matched: list[tuple[int, str, re.Match[str] | None]]) -> _Fabric:
    """Nodes and ports: first who has which address, then what each port leads to."""
    fabric, owners, kind, name, guid = _Fabric(), list[str](), "", "", ""
    for number, line, port in matched:
        if port is None:
            if (header := _HEADER.fullmatch(line.rstrip())) and not line.startswith((" ", "\t")):
                kind, name, guid = "S" if header[1] != "CA" else "H", header[3], header[2] or str(number)
            owners.append("")
            continue
        own = (port["own"] or name).strip()
        letter = kind or ("H" if split_nic(own)[1] else "S")
        identity = guid if port["own"] is None else own if letter == "H" else port["guid"]
        node = f"{letter}-{identity}"
        fabric.nodes[node] = own
        fabric.by_lid[port["lid"]] = node
        owners.append(node)
    for (_, _, port), node in zip(matched, owners, strict=True):
        if port is not None:
            _add(fabric, node, port)
    return fabric


def _add(fabric: _Fabric, node: str, port: re.Match[str]) -> None:
    own = (node, int(port["port"]))
    if port["far_lid"] is None:
        fabric.down.append(own)
        return
    far = fabric.by_lid.get(port["far_lid"]) or f"{'H' if split_nic(port['far'])[1] else 'S'}-{port['far']}"
    fabric.nodes.setdefault(far, port["far"].strip())
    key = frozenset((own, (far, int(port["far_port"]))))
    fabric.ports.setdefault(key, []).append(_state(port["link"], port["could"] or ""))


def _state(link: str, could: str) -> _Port:
    match = _LINK.match(link)
    if match is None or "Down" in link:
        return _Port(0.0, 0.0, "", is_up=False)
    lanes, speed = int(match[1]), signal_generation(float(match[2]))
    rate = lane_rate(lanes, speed) if speed in LANES else float(match[2]) * lanes * 1e9 / 8
    width, faster = _COULD_WIDTH.search(could), _COULD_SPEED.search(could)
    best = signal_generation(float(faster[1])) if faster else speed
    full = lane_rate(int(width[1]) if width else lanes, best) if best and (width or faster) else 0.0
    is_up = "Active" in link or "Armed" in link
    return _Port(rate, full, f"{lanes}x {speed or match[2] + 'G'}", is_up)
