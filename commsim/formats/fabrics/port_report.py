"""The report of ports that ``ibnetdiscover -p`` prints: a line for each port, with its neighbour if it has one.

Both ends of a cable have a line each. A node is known by its LID; a port without a neighbour is down.

References
----------
rdma-core, ``infiniband-diags/ibnetdiscover.c``, ``dump_ports_report``.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.machines.nic_names import split_nic
from commsim.core.spec import is_whole

from .cabling import MAX_BYTES, Cable, Cabling
from .discovered import AGGREGATION, end_of, node_names
from .port_rates import LANES, lane_rate

_END = r"(CA|SW|RT|\?\?)\s+(\d+)\s+(\d{1,9})\s+0x([0-9a-fA-F]+)"
_LINK = r"\s+(\d{1,3}|\?+)x?\s+([A-Z0-9]+|\?+)"
_CABLE = re.compile(rf"{_END}{_LINK}\s+-\s+{_END}\s+\(\s*'(.*?)'\s+-\s+'(.*?)'\s*\)\s*", re.ASCII)
_DOWN = re.compile(rf"{_END}{_LINK}\s+'(.*)'\s*", re.ASCII)
# Expressions with two names take the square of a line's length.
_MAX_LINE = 2048
_KINDS = {"CA": "host", "SW": "switch", "RT": "switch"}


class _NumberedPort(NamedTuple):
    node: str
    number: int


def is_port_report(head: str) -> bool:
    """Whether the first lines of a file are of such a report."""
    return bool(re.search(rf"^{_END}{_LINK}\s+(?:-\s+(?:CA|SW|RT)|')", head, re.MULTILINE | re.ASCII))


def read_port_report(path: str | Path) -> Cabling:
    """Read the report.

    Raises
    ------
    InputError
        If a line is no port, or a port leads to itself.
    """
    nodes, kinds, links = dict[str, str](), dict[str, str](), dict[frozenset[_NumberedPort], tuple[float, float, str]]()
    down = list[_NumberedPort]()
    for number, line in enumerate(read_text(path, MAX_BYTES).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        said = (_CABLE.fullmatch(line) or _DOWN.fullmatch(line)) if len(line) <= _MAX_LINE else None
        if said is None:
            raise InputError(f"{path}, line {number}: a port is \"CA 7 1 0x1 4x NDR - SW 3 1 0x2 ( 'node01 mlx5_0' - "
                             f"'leaf01' )\", got {line!r}")  # fmt: skip
        own = _port(said, 0, said[11] if said.re is _CABLE else said[7], nodes, kinds)
        if said.re is _DOWN:
            down.append(own)
            continue
        far = _port(said, 6, said[12], nodes, kinds)
        if own == far:
            raise InputError(f"{path}, line {number}: {nodes[own.node]!r} has a port that leads to itself")
        links[frozenset((own, far))] = _rates(said[5], said[6])
    return _cabling(str(path), nodes, kinds, links, down)


def _port(
    said: re.Match[str], first: int, name: str, nodes: dict[str, str], kinds: dict[str, str]
) -> _NumberedPort:  # fmt: skip
    """Return an end of a line, and learn its node's name and kind: a CA's ports are nodes, as its LIDs are."""
    kind, lid = said[first + 1], said[first + 2]
    node = f"{'H' if kind == 'CA' else 'S'}-{lid}"
    nodes.setdefault(node, name.strip())
    kinds.setdefault(node, _KINDS.get(kind, ""))
    return _NumberedPort(node, int(said[first + 3]))


def _rates(lanes: str, speed: str) -> tuple[float, float, str]:
    """Return the rate of a cable, that of four lanes, and how it is written; 0 of what is not known."""
    if not is_whole(lanes) or speed.upper() not in LANES:
        return 0.0, 0.0, f"{lanes}x {speed}"
    rate = lane_rate(int(lanes), speed.upper())
    return rate, lane_rate(4, speed.upper()) if int(lanes) < 4 else 0.0, f"{lanes}x {speed}"


def _cabling(
    path: str, nodes: dict[str, str], kinds: dict[str, str],
    links: dict[frozenset[_NumberedPort], tuple[float, float, str]], down: list[_NumberedPort],
) -> Cabling:  # fmt: skip
    cabling, names, n_sharp = Cabling(), node_names(nodes), 0
    used = Counter(port.node for ends in links for port in ends)
    for ends, (rate, full, text) in links.items():
        if any(AGGREGATION in nodes[port.node] for port in ends):
            n_sharp += 1
            continue
        a, b = (end_of(names[port.node], port.node, port.number, used[port.node]) for port in sorted(ends))
        cabling.add(Cable(a, b, rate, full, text), path)
    cabling.down = [
        end_of(names[port.node], port.node, port.number, used[port.node] + 1) for port in down if port.node[0] == "H"
    ]
    cabling.kinds = {split_nic(names[node])[0] if node[0] == "H" else names[node]: kind
                     for node, kind in kinds.items() if kind and AGGREGATION not in nodes[node]}  # fmt: skip
    if n_sharp:
        cabling.told.append(f"{n_sharp} adapters in switches that reduce data (SHARP) are left out: they are no hosts")
    return cabling
