"""InfraGraph, which ASTRA-sim 3 reads: machines with their insides where links have rates, else the fabric alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import CPU, GPU, MEMORY, NIC, SWITCH, Network, both_ways
from commsim.core.remark import Remark
from commsim.core.units import first_of
from topologies import LINK_LATENCY

from .cabled_network import FabricOptions, network_of_cables
from .cabling import Cable, Cabling, End
from .infragraph_tree import GraphDevice, Infrastructure, Part, read_tree

_KINDS = {"cpu": CPU, "xpu": GPU, "nic": NIC, "memory": MEMORY, "switch": SWITCH}
Node = tuple[str, int, Part | None]


def read_infragraph(path: str | Path) -> Network:
    """Read a network.

    A device without GPUs, NICs and memory is a switch. Where links inside of machines have no bandwidth, each NIC is a
    host of the fabric, and a machine of ours can be put in its place: ``dgx-h100@cluster.infragraph.yaml``.

    Raises
    ------
    InputError
        If the file is wrong, or a link between instances has no bandwidth.
    """
    tree = read_tree(path)
    unrated = sorted({
        link for device in tree.devices.values() if device.is_machine for _, _, link in device.edges
        if link not in device.links or device.links[link].rate is None
    })  # fmt: skip
    machines = [device for device in tree.devices.values() if device.is_machine]
    has_gpus = any("xpu" in device.kinds.values() for device in machines)
    if not tree.edges and (unrated or not has_gpus):
        raise InputError(f"{path}: no edge joins instances, and links inside of devices have no bandwidth: "
                         f"{first_of(unrated) or 'there are none'}")  # fmt: skip
    if unrated or not has_gpus:
        return _fabric(path, tree, unrated)
    return _whole(path, tree)


def _label(instance: str, i: int) -> str:
    return f"{instance}-{i}" if instance[-1:].isdigit() else f"{instance}{i}"


def _fabric(path: str | Path, tree: Infrastructure, unrated: list[str]) -> Network:
    """Return the fabric between instances: each NIC is a host."""
    cabling = Cabling()
    latency = [tree.links[link].latency for *_, link in tree.edges if link in tree.links]
    for a, b, link in tree.edges:
        near, far = (End(_label(name, i), f"{part}{k}") for name, i, (part, k) in (a, b))
        cabling.add(Cable(near, far, _rate(path, tree, link), text=link), str(path))
    for name, (device, count) in tree.instances.items():
        kind = "host" if tree.devices[device].is_machine else "switch"
        cabling.kinds |= {_label(name, i): kind for i in range(count)}
    if any(_has_inside(device) for device in tree.devices.values() if device.is_machine) and unrated:
        cabling.told.append(
            f"insides of machines are left out: their links have no bandwidth ({first_of(unrated)}); put a machine of "
            "ours on the fabric, MACHINE@FILE"
        )
    known = [one for one in latency if one is not None]
    used = {end.device for cable in cabling.cables for end in (cable.a, cable.b)}
    cabling.kinds = {device: kind for device, kind in cabling.kinds.items() if device in used}
    options = FabricOptions(latency=max(known, default=LINK_LATENCY))
    return network_of_cables(Path(path).stem.removesuffix(".infragraph"), cabling, options)


def _has_inside(device: GraphDevice) -> bool:
    """Whether more is inside than one GPU with its NIC."""
    return sum(device.counts.values()) > 2


def _rate(path: str | Path, tree: Infrastructure, link: str) -> float:
    if link not in tree.links or tree.links[link].rate is None:
        raise InputError(f"{path}: the link {link!r} between instances has no bandwidth")
    return tree.links[link].rate or 0.0


def _whole(path: str | Path, tree: Infrastructure) -> Network:
    """Return the network with the insides of machines."""
    nodes: dict[Node, int] = {}
    names: list[str] = []
    kinds: list[int] = []
    machine: list[int] = []
    place: dict[tuple[str, int, Part], Node] = {}
    n_machines = 0
    for instance, (device_name, count) in tree.instances.items():
        device = tree.devices[device_name]
        kept = _kept(device)
        for i in range(count):
            label = _label(instance, i)
            if not device.is_machine:
                nodes[instance, i, None] = len(names)
                names.append(label)
                kinds.append(SWITCH)
                machine.append(-1)
                continue
            for part, kind in kept.items():
                nodes[instance, i, part] = len(names)
                names.append(f"{label}.{part[0]}{part[1]}")
                kinds.append(kind)
                machine.append(n_machines)
            place |= {(instance, i, part): (instance, i, at) for part, at in _merged(device, kept).items()}
            n_machines += 1
    ends, rates, latencies = _links(path, tree, nodes, place)
    order = sorted(range(len(names)), key=lambda i: (kinds[i] != GPU, machine[i] < 0))
    rank = np.argsort(order)
    src, dst = both_ways(rank[[a for a, _ in ends]], rank[[b for _, b in ends]])
    told = [Remark("network-file", "links count alike in routing: InfraGraph has no preference of NVLink", needed=True)]
    return Network(
        Path(path).stem.removesuffix(".infragraph"), [names[i] for i in order], [kinds[i] for i in order], src, dst,
        np.tile(rates, 2), np.tile(latencies, 2), machine=[machine[i] for i in order], told=tuple(told),
    )  # fmt: skip


def _kept(device: GraphDevice) -> dict[Part, int]:
    """Components that are nodes, and their kinds: what forwards between several others is a switch."""
    degree = Counter(part for a, b, _ in device.edges for part in (a, b))
    return {
        (name, k): _KINDS.get(kind, SWITCH)
        for name, kind in device.kinds.items() for k in range(device.counts[name])
        if kind in _KINDS or degree[name, k] > 1
    }  # fmt: skip


def _merged(device: GraphDevice, kept: dict[Part, int]) -> dict[Part, Part]:
    """Node that each component is a part of: itself, or the neighbour of a port that leads to only one."""
    near: dict[Part, Part] = {}
    for a, b, _ in device.edges:
        near.setdefault(a, b)
        near.setdefault(b, a)
    every = [(name, k) for name, n in device.counts.items() for k in range(n)]
    return {part: part if part in kept else near[part] for part in every if part in kept or near.get(part) in kept}


def _links(
    path: str | Path, tree: Infrastructure, nodes: dict[Node, int], place: dict[tuple[str, int, Part], Node]
) -> tuple[list[tuple[int, int]], list[float], list[float]]:
    ends, rates, latencies = list[tuple[int, int]](), list[float](), list[float]()

    def add(a: Node, b: Node, rate: float, latency: float | None) -> None:
        if nodes[a] != nodes[b]:
            ends.append((nodes[a], nodes[b]))
            rates.append(rate)
            latencies.append(LINK_LATENCY if latency is None else latency)

    for instance, (device_name, count) in tree.instances.items():
        device = tree.devices[device_name]
        for i in range(count if device.is_machine else 0):
            for a, b, name in device.edges:
                if (instance, i, a) in place and (instance, i, b) in place:
                    link = device.links[name]
                    add(place[instance, i, a], place[instance, i, b], link.rate or 0.0, link.latency)
    for x, y, name in tree.edges:
        at = [place.get(end, (end[0], end[1], None)) for end in (x, y)]
        for end, node in zip((x, y), at, strict=True):
            if node not in nodes:
                raise InputError(f"{path}: {end[0]}[{end[1]}] {end[2][0]}[{end[2][1]}] is joined to nothing inside")
        add(at[0], at[1], _rate(path, tree, name), tree.links[name].latency)
    return ends, rates, latencies
