"""Which devices of a list of cables are hosts, and which are switches: as the file says, else by their names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from commsim.core.errors import InputError
from commsim.core.machines.nic_names import in_order, is_nic
from commsim.core.units import count_text, first_of

from .cabling import Cabling, End

_SWITCH = re.compile(
    r"(?:^|[^a-z])(?:leaf|spine|core|switch|sw|tor|agg|super|fabric|rail|pod|es?w|ls|ss|qm\d|sn\d|dcs)", re.IGNORECASE
)
_HOST = re.compile(
    r"(?:^|[^a-z])(?:node|host|server|srv|gpu|dgx|hgx|compute|cn|worker|slurm|trn|rank|h|n)(?:[^a-z]|$)", re.IGNORECASE
)
_MANY = 3  # neighbours that only a switch has, where nothing else tells


def device_kinds(cabling: Cabling, source: str) -> dict[str, str]:
    """Return ``host`` or ``switch`` by device, and tell what was guessed.

    Parameters
    ----------
    cabling : Cabling
        What a file says; what is guessed is appended to its ``told``.
    source : str
        The file, for messages.

    Raises
    ------
    InputError
        If no device would be a host.
    """
    ports = _ports(cabling)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for cable in cabling.cables:
        neighbours[cable.a.device].add(cable.b.device)
        neighbours[cable.b.device].add(cable.a.device)
    kinds = dict(cabling.kinds)
    why: Counter[str] = Counter()
    for device in sorted(ports, key=in_order):
        if device not in kinds:
            kinds[device], reason = _guess(device, ports[device], neighbours[device])
            why[reason] += 1
    if "host" not in kinds.values():
        raise InputError(
            f"{source}: {first_of(sorted(kinds, key=in_order))} are all taken for switches: none has a name or ports "
            "of a host (node07, mlx5_3); name the kinds in columns a_type and b_type"
        )
    if why:
        n = Counter(kinds.values())
        by = " and ".join(why)
        counts = f"{count_text(n['host'], 'host')}, {count_text(n['switch'], 'switch', 'switches')}"
        cabling.told.append(f"devices: {counts}, told apart by {by}")
    return kinds


def _ports(cabling: Cabling) -> dict[str, set[str]]:
    ports: dict[str, set[str]] = defaultdict(set)
    ends: list[End] = [*cabling.down, *(end for cable in cabling.cables for end in (cable.a, cable.b))]
    for end in ends:
        ports[end.device].add(end.port)
    return ports


def _guess(device: str, ports: set[str], neighbours: set[str]) -> tuple[str, str]:
    """Return a kind, and what it was taken from."""
    if ports and all(map(is_nic, ports)):
        return "host", "names of NICs"
    if _SWITCH.search(device):
        return "switch", "their names"
    if _HOST.search(device):
        return "host", "their names"
    return ("switch" if len(neighbours) >= _MANY else "host"), "how many neighbours they have"
