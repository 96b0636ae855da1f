"""What ``ibnetdiscover`` prints of an InfiniBand fabric: each node, and each of its ports that has a cable.

It leaves out ports that are down. A cable that runs at fewer lanes or an older speed has that rate.

References
----------
rdma-core, ``infiniband-diags/ibnetdiscover.c``.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.machines.nic_names import split_nic
from commsim.core.spec import is_whole

from .cabling import MAX_BYTES, Cable, Cabling, End
from .port_rates import LANES, lane_rate

_NODE = re.compile(r'(?:Switch|Ca|Rt|Router)\s+(\d+)\s+"([SHR]-[0-9a-fA-F]+)"\s*#\s*"([^"]*)"', re.ASCII)
_PORT = re.compile(
    r'\[(\d{1,9})\](?:\[ext \d+\])?(?:\s*\([0-9a-fA-F]+\))?\s+"([SHR]-[0-9a-fA-F]+)"\[(\d{1,9})\](?:\[ext \d+\])?'
    r'(?:\s*\([0-9a-fA-F]+\))?\s*#(?:\s*lid \d+ lmc \d+)?\s*"([^"]*)"\s*lid \d+\s+(\d{1,3}|\?+)x?\s*([A-Za-z0-9]+|\?+)',
    re.ASCII,
)
_SYSTEM = re.compile(r"(?:MF\d+;)?([^:;]+):[^/]+(/.*)?")
# The switch's own adapter that reduces data (SHARP), which is no host.
AGGREGATION = "Aggregation Node"
_KINDS = {"S": "switch", "H": "host", "R": "switch"}


def is_ibnetdiscover(head: str) -> bool:
    """Whether the first lines of a file are of such an output."""
    return bool(re.search(r'^(?:switch|ca)guid=0x|^(?:Switch|Ca)\s+\d+\s+"[SH]-', head, re.MULTILINE))


def read_ibnetdiscover(path: str | Path) -> Cabling:
    """Read the output.

    Raises
    ------
    InputError
        If a line of a port cannot be read, or stands before any node.
    """
    nodes: dict[str, str] = {}
    ports: dict[frozenset[tuple[str, int]], list[tuple[int, str]]] = {}
    own, left_out = "", 0
    for number, line in enumerate(read_text(path, MAX_BYTES).splitlines(), 1):
        if node := _NODE.match(line):
            own = node[2]
            nodes[own] = node[3].strip()
        elif line.startswith("["):
            port = _PORT.match(line)
            if port is None or not own:
                raise InputError(f"{path}, line {number}: a port is '[1] \"S-...\"[2] # \"name\" lid 3 4xEDR' below "
                                 f"its node, got {line!r}")  # fmt: skip
            nodes.setdefault(port[2], port[4].strip())
            key = frozenset(((own, int(port[1])), (port[2], int(port[3]))))
            ports.setdefault(key, []).append((int(port[5]) if is_whole(port[5]) else 0, port[6].upper()))
    cabling = Cabling()
    names = node_names(nodes)
    used = Counter(guid for key in ports for guid, _ in key)
    for key, said in ports.items():
        if any(AGGREGATION in nodes[guid] for guid, _ in key):
            left_out += 1
            continue
        if len(key) != 2:
            raise InputError(f"{path}: {nodes[next(iter(key))[0]]!r} has a port that leads to itself")
        a, b = (end_of(names[guid], guid, port, used[guid]) for guid, port in sorted(key))
        rate, text = min((lane_rate(lanes, speed) if speed in LANES else 0.0, f"{lanes}x {speed}")
                         for lanes, speed in said)  # fmt: skip
        full = max((lane_rate(4, speed) for lanes, speed in said if speed in LANES and lanes < 4), default=0.0)
        cabling.add(Cable(a, b, rate, full, text), str(path))
    cabling.kinds = {_device(names[guid]): _KINDS[guid[0]] for guid in nodes if AGGREGATION not in nodes[guid]}
    if left_out:
        cabling.told.append(f"{left_out} adapters in switches that reduce data (SHARP) are left out: they are no hosts")
    return cabling


def node_names(nodes: dict[str, str]) -> dict[str, str]:
    """Return a name for each node that no other has: the description, a switch's without its model.

    Parameters
    ----------
    nodes : dict of str to str
        Description by identity, which begins with S for switches.
    """
    names = {guid: _plain(text) if guid.startswith(("S", "R")) else text for guid, text in nodes.items()}
    n = Counter(names.values())
    return {
        guid: name if name and n[name] == 1 and "Mellanox Technologies" not in name else _unique(name, guid)
        for guid, name in names.items()
    }


def _plain(text: str) -> str:
    """Name of a switch such as ``MF0;leaf01:MQM8700/U1``: leaf01; of a part of a larger one with the part."""
    match = _SYSTEM.fullmatch(text)
    if match is None:
        return text
    part = (match[2] or "").removesuffix("/U1").strip("/").replace("/", "-")
    return f"{match[1]}-{part}" if part else match[1]


def _unique(name: str, guid: str) -> str:
    host, nic = split_nic(name)
    end = guid[-8:]
    if guid.startswith("H") and nic:
        return f"{host} {nic}_{end}"  # two HCAs of one host that are called alike
    return f"{name.replace(' ', '-')}-{end}" if name and guid.startswith("H") else guid


def _device(name: str) -> str:
    return split_nic(name)[0]


def end_of(name: str, guid: str, port: int, n_used: int) -> End:
    """Return the end of a cable: a host's NIC, with its port where it uses several, or a switch's port.

    Parameters
    ----------
    name : str
        Name of the node.
    guid : str
        Identity, which begins with H for hosts.
    port : int
        Number of the port.
    n_used : int
        Ports of the node that have a cable.
    """
    if not guid.startswith("H"):
        return End(name, str(port))
    host, nic = split_nic(name)
    if n_used > 1:
        return End(host, f"{nic}p{port}" if nic else f"p{port}")
    return End(host, nic)
