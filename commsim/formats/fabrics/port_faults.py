"""Faults that a file of a real fabric shows: cables that are slower than others like them, ports without a cable."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from commsim.core.machines.nic_names import in_order
from commsim.core.units import count_text, format_bandwidth

from .cabling import Cable

_DIGITS = re.compile(r"\d+")
_SLOWER = 0.999
_MAX_NAMES = 8


def stem(device: str) -> str:
    """Return a name without its numbers, which devices of one role share."""
    return _DIGITS.sub("#", device)


def full_rates(cables: Sequence[Cable], kinds: Mapping[str, str]) -> list[float]:
    """Rate at which each cable should run, bytes/s.

    It is what the file says of its ports, else the rate that most cables between devices of the same roles have; two
    devices have one role if their names differ in numbers only.

    Parameters
    ----------
    cables : sequence of Cable
        Cables that run.
    kinds : mapping of str to str
        ``host`` or ``switch`` by device.
    """

    def role(cable: Cable) -> tuple[str, ...]:
        return tuple(sorted(kinds[end.device] + stem(end.device) for end in (cable.a, cable.b)))

    of_role: dict[tuple[str, ...], Counter[float]] = defaultdict(Counter)
    for cable in cables:
        of_role[role(cable)][cable.rate] += 1
    usual = {key: _most(rates) for key, rates in of_role.items()}
    return [max(cable.rate, cable.full or usual[role(cable)]) for cable in cables]


def _most(rates: Counter[float]) -> float:
    """Rate of more than half of the cables; 0 where no rate has so many."""
    rate, n = rates.most_common(1)[0]
    return rate if 2 * n > rates.total() else 0.0


def is_slower(rate: float, full: float) -> bool:
    """Whether a cable runs below the rate that it should have."""
    return rate < full * _SLOWER


def told_of_slow(slow: Sequence[tuple[str, Cable, float]]) -> str:
    """Say which cables are slower.

    Parameters
    ----------
    slow : sequence of (str, Cable, float)
        Name of the link, the cable, and the rate that it should have.
    """
    names = [
        f"{name} at {cable.rate / full:.3g} of its rate ({cable.text or format_bandwidth(cable.rate)})"
        for name, cable, full in slow
    ]
    return f"{count_text(len(slow), 'cable')} slower than the others: {_first(names)}"


def told_of_down(names: Sequence[str]) -> str:
    """Say which cables are down."""
    return f"{count_text(len(names), 'cable')} down, and left out: {_first(list(names))}"


def fewer_ports(ports: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Ports that a device lacks and most devices of its role have, by device.

    Parameters
    ----------
    ports : mapping of str to set of str
        Ports with a cable by device; of hosts.
    """
    of_role: dict[str, list[str]] = defaultdict(list)
    for device in ports:
        of_role[stem(device)].append(device)
    lacking = {}
    for devices in of_role.values():
        counts = Counter(port for device in devices for port in ports[device])
        usual = {port for port, n in counts.items() if 2 * n > len(devices)}
        for device in devices:
            if missing := usual - ports[device]:
                lacking[device] = sorted(missing, key=in_order)
    return lacking


def told_of_ports_down(names: Sequence[str]) -> str:
    """Say which ports of hosts are down, where the other end of the cable is not known."""
    return f"{count_text(len(names), 'port')} down, and so without a cable: {_first(list(names))}"


def told_of_lacking(lacking: Mapping[str, Sequence[str]]) -> str:
    """Say which ports have no cable."""
    names = [f"{device}.{port}" for device, missing in lacking.items() for port in missing]
    return f"{count_text(len(names), 'port')} without a cable, though hosts like these have one: {_first(names)}"


def switches_with_fewer(cables: Sequence[Cable], kinds: Mapping[str, str]) -> str:
    """Say which switches have fewer cables than most of their role; empty where none has."""
    n: Counter[str] = Counter(end.device for cable in cables for end in (cable.a, cable.b))
    of_role: dict[str, list[str]] = defaultdict(list)
    for device, kind in kinds.items():
        if kind == "switch":
            of_role[stem(device)].append(device)
    odd = []
    for devices in of_role.values():
        usual, times = Counter(n[device] for device in devices).most_common(1)[0]
        if 2 * times > len(devices):
            odd += [f"{device} has {n[device]}, others {usual}" for device in devices if n[device] < usual]
    return f"fewer cables than other switches: {_first(odd)}" if odd else ""


def _first(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return shown + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
