"""A network of the cables that a file lists.

Each NIC of a node is a host of the network, so that a machine can take its place (``dgx-h100@fabric.csv``); the NICs of
a node are of one machine. Hosts, switches and cables are in the order of their names, so that one fabric in several
files is one network.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.nic_names import in_order
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.core.remark import Remark
from commsim.core.units import count_text
from topologies import LINK_LATENCY

from .cabling import Cable, Cabling, End, check_end
from .device_kinds import device_kinds
from .port_faults import (
    fewer_ports,
    full_rates,
    is_slower,
    switches_with_fewer,
    told_of_down,
    told_of_lacking,
    told_of_ports_down,
    told_of_slow,
)  # fmt: skip

# Code of the remarks on what of a fabric is down or slow.
FAULTS = "port-faults"


@dataclass(frozen=True, slots=True)
class FabricOptions:
    """What the user says beside a file.

    Parameters
    ----------
    rate : float, bytes/s, optional
        Rate of cables without one.
    latency : float, s
        Latency of each cable of which the file says none.
    healthy : bool
        Whether slower cables get the rate that they should have, and those that are down are up.
    """

    rate: float | None = None
    latency: float = LINK_LATENCY
    healthy: bool = False


def network_of_cables(name: str, cabling: Cabling, options: FabricOptions) -> Network:
    """Return the network.

    Parameters
    ----------
    name : str
        The file, for messages and as the network's name.
    cabling : Cabling
        What the file says.
    options : FabricOptions
        What the user says.

    Raises
    ------
    InputError
        If there is no cable, none is up, or a rate is missing.
    """
    if not cabling.cables:
        raise InputError(f"{name}: lists no cable")
    for end in (*cabling.down, *map(End, cabling.kinds)):  # of devices without a cable
        check_end(end, name)
    kinds = device_kinds(cabling, name)
    cables = [_with_rate(cable, options, name) for cable in cabling.cables]
    up = [cable for cable in cables if cable.is_up or options.healthy]
    if not up:
        raise InputError(f"{name}: no cable is up of {len(cables)}; {name}:healthy=true takes them for up")
    ports = _ports_of_hosts(cabling, cables, kinds)
    lacking = fewer_ports(ports)
    for device, missing in lacking.items():
        ports[device] |= set(missing)
    node_of, hosts, machine = _hosts(ports)
    switches = sorted((device for device, kind in kinds.items() if kind == "switch"), key=in_order)
    taken = set(hosts)
    names = [*hosts, *(f"switch-{device}" if device in taken else device for device in switches)]
    number = {end: i for i, end in enumerate(node_of)} | {End(d): len(hosts) + i for i, d in enumerate(switches)}

    def node(end: End) -> int:
        return number[end if kinds[end.device] == "host" else End(end.device)]

    def link(cable: Cable) -> str:
        a, b = sorted((node(cable.a), node(cable.b)))
        return f"{names[a]}:{names[b]}"

    up = sorted(up, key=lambda cable: (*sorted((node(cable.a), node(cable.b))), _key(cable)))
    ends = np.sort([[node(cable.a), node(cable.b)] for cable in up], axis=1).reshape(-1, 2)
    full = full_rates(up, kinds)
    slow = [(link(c), c, rate) for c, rate in zip(up, full, strict=True) if is_slower(c.rate, rate)]
    down = [link(c) for c in cables if not c.is_up]
    told = _told(slow, down, lacking, cables, kinds, options)
    if dead := [names[number[end]] for end in cabling.down if kinds.get(end.device) == "host"]:
        told.append(told_of_ports_down(dead))
    rates = np.array(full if options.healthy else [c.rate for c in up])
    latencies = np.array([options.latency if c.latency is None else c.latency for c in up])
    src, dst = both_ways(ends[:, 0], ends[:, 1])
    n = len(names)
    return Network(
        name, names, np.where(np.arange(n) < len(hosts), HOST, SWITCH), src, dst, np.tile(rates, 2),
        np.tile(latencies, 2), machine=[*machine, *[-1] * len(switches)], told=_remarks(told, cabling),
    )  # fmt: skip


def _with_rate(cable: Cable, options: FabricOptions, name: str) -> Cable:
    rate = cable.rate or cable.full or options.rate
    if rate is None and cable.is_up:
        raise InputError(f"{name}: the cable {cable.a} to {cable.b} has no rate; give one to all that have none: "
                         f"{name}:rate=400Gbps")  # fmt: skip
    return dataclasses.replace(cable, rate=rate or 0.0)


def _key(cable: Cable) -> tuple[object, ...]:
    """Order of cables side by side: by their ports."""
    return tuple(sorted(in_order(end.port) for end in (cable.a, cable.b)))


def _ports_of_hosts(cabling: Cabling, cables: list[Cable], kinds: Mapping[str, str]) -> dict[str, set[str]]:
    ports: dict[str, set[str]] = defaultdict(set)
    for end in [*cabling.down, *(end for cable in cables for end in (cable.a, cable.b))]:
        if kinds.get(end.device) == "host":
            ports[end.device].add(end.port)
    return ports


def _hosts(ports: Mapping[str, set[str]]) -> tuple[list[End], list[str], list[int]]:
    """Return ends of hosts, names of their nodes, and the machine of each; one with a single NIC keeps its name."""
    ends, names, machine = list[End](), list[str](), list[int]()
    several = any(len(own) > 1 for own in ports.values())
    short = Counter(device.partition(".")[0] for device in ports)
    called = {d: d.partition(".")[0] if short[d.partition(".")[0]] == 1 else d.replace(".", "_") for d in ports}
    for m, device in enumerate(sorted(ports, key=in_order)):
        for port in sorted(ports[device], key=in_order):
            ends.append(End(device, port))
            names.append(f"{called[device]}.{port}" if port and several else device)
            machine.append(m if several else -1)
    return ends, names, machine


def _remarks(faults: list[str], cabling: Cabling) -> tuple[Remark, ...]:
    """Return what is said: faults before what was guessed."""
    again = f"{count_text(cabling.n_again, 'row')} of cables that are listed already, left out"
    of = ((FAULTS, faults), ("network-file", [*cabling.told, *[again] * bool(cabling.n_again)]))
    return tuple(Remark(code, text, needed=True) for code, texts in of for text in texts)


def _told(
    slow: list[tuple[str, Cable, float]], down: list[str], lacking: Mapping[str, list[str]], cables: list[Cable],
    kinds: Mapping[str, str], options: FabricOptions,
) -> list[str]:  # fmt: skip
    told = [told_of_slow(slow)] if slow else []
    told += [told_of_down(down)] if down else []
    told += [told_of_lacking(lacking)] if lacking else []
    running = [cable for cable in cables if cable.is_up]
    if fewer := switches_with_fewer(running, kinds):
        told.append(fewer)
    if options.healthy and (slow or down):
        told = [f"healthy=true, as if mended: {text}" for text in told]
    return told
