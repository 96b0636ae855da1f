"""Write a network as InfraGraph: hosts, switches and machines are devices, each name without its number an instance."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.network import CPU, GPU, HOST, MEMORY, NIC, SWITCH, Network
from commsim.core.network_queries import partners
from commsim.formats.markup import write_yaml

_CHOICES = {HOST: "nic", SWITCH: "switch", GPU: "xpu", CPU: "cpu", NIC: "nic", MEMORY: "memory"}
_NUMBERED = re.compile(r"(.*?)-?(\d+)", re.ASCII)
# What the names of InfraGraph do not hold.
_NOT_NAMED = re.compile(r"[^\sa-zA-Z0-9_()<>\[\]-]", re.ASCII)
MAX_EDGES = 200_000
# Instance and its number, component and its number.
Place = tuple[str, int, str, int]


def write_infragraph(network: Network, path: str | Path) -> tuple[str, ...]:
    """Write a network; YAML, or JSON where the name of the file ends so. Return what was lost.

    Raises
    ------
    InputError
        If a link goes one way only, or there are too many.
    """
    tree, notes = infragraph_of(network)
    text = json.dumps(tree, indent=1) if str(path).endswith(".json") else write_yaml([tree])
    with replacing(path) as out:
        out.write(text.encode())
    return notes


def infragraph_of(network: Network) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the tree of a file, and what was lost."""
    other = partners(network)
    lower = np.flatnonzero(np.arange(network.n_links) < other)
    alike = (network.bandwidth == network.bandwidth[other]) & (network.latency == network.latency[other])
    if len(lower) * 2 != network.n_links or not alike.all():
        raise InputError(f"{network.name}: an edge of InfraGraph goes both ways, and a link has no way back like it")
    if len(lower) > MAX_EDGES:
        raise InputError(f"{network.name}: {len(lower)} cables; InfraGraph is written with up to {MAX_EDGES}")
    places, devices, renamed = _places(network)
    links: dict[tuple[float, float], str] = {}
    ports: dict[int, int] = defaultdict(int)
    edges = []
    for link in lower.tolist():
        a, b = int(network.src[link]), int(network.dst[link])
        if network.machine[a] == network.machine[b] >= 0:
            continue
        about = (float(network.bandwidth[link]), float(network.latency[link]))
        name = links.setdefault(about, f"link{len(links)}")
        ends = {f"ep{k}": _end(network, places, ports, node) for k, node in ((1, a), (2, b))}
        edges.append({**ends, "scheme": "one2one", "link": name})
    _insides(network, lower.tolist(), places, devices)
    counts = _instances(places)
    for node, n in ports.items():
        components = devices[_device_of(network, places, node)]["components"]
        ours = next((one for one in components if one["name"] == "port"), None)
        if ours is not None:
            ours["count"] = max(ours["count"], n)
    instances = [
        {"name": instance, "device": _device_of(network, places, node), "count": count}
        for instance, (count, node) in counts.items()
    ]
    tree = {
        "name": _NOT_NAMED.sub("_", network.name), "devices": list(devices.values()), "instances": instances,
        "edges": edges, "links": [_link(name, *about) for about, name in links.items()],
    }  # fmt: skip
    notes = [f"{renamed} names do not count from 0, and get a number"] if renamed else []
    if (network.metric != network.metric[:1]).any():
        notes.append("which links routing prefers (metric) is lost: InfraGraph has no field for it")
    if network.hardware:
        notes.append(f"facts of the machines are lost: {network.hardware}")
    return tree, tuple(notes)


def _places(network: Network) -> tuple[list[Place], dict[str, dict[str, Any]], int]:
    """Return instance and component of each node, the devices so far, and how many names were changed."""
    boxes = _boxes(network)
    stems: dict[tuple[str, bool, int], dict[str, int]] = defaultdict(dict)
    for box, kind, m in zip(boxes, network.kind.tolist(), network.machine.tolist(), strict=True):
        match = _NUMBERED.fullmatch(box)
        key = (match[1] if match and match[1] else box, m >= 0, -1 if m >= 0 else kind)
        stems[key].setdefault(box, int(match[2]) if match else -1)
    of_box: dict[tuple[str, bool, int], tuple[str, int]] = {}
    renamed = 0
    taken: set[str] = set()
    for (stem, inside, kind), of in stems.items():
        name = re.sub(r"[^A-Za-z0-9_-]", "_", stem) or "node"
        while name in taken or name[-1].isdigit():
            name += "_"
        taken.add(name)
        in_order = sorted(of, key=lambda box: of[box])
        is_counted = [of[box] for box in in_order] == list(range(len(of)))
        renamed += 0 if is_counted else len(of)
        for i, box in enumerate(in_order):
            of_box[box, inside, kind] = (name, i)
    places, devices, parts = list[Place](), dict[str, dict[str, Any]](), _parts(network)
    for node, (box, kind, m) in enumerate(zip(boxes, network.kind.tolist(), network.machine.tolist(), strict=True)):
        instance, i = of_box[box, m >= 0, -1 if m >= 0 else kind]
        if m < 0:
            part = ("asic", 0) if kind == SWITCH else ("nic", 0)
            devices.setdefault("switch" if kind == SWITCH else "host", _plain_device(is_switch=kind == SWITCH))
        else:
            part = parts[node]
        places.append((instance, i, *part))
    return places, devices, renamed


def _boxes(network: Network) -> list[str]:
    """Return the machine of each node of one, by what the names of all of its nodes begin with; else the name."""
    names: dict[int, set[str]] = defaultdict(set)
    for name, m in zip(network.nodes, network.machine.tolist(), strict=True):
        names[m].add(name.partition(".")[0])
    called = {m: next(iter(of)) if len(of) == 1 else f"machine{m}" for m, of in names.items()}
    return [called[m] if m >= 0 else name for name, m in zip(network.nodes, network.machine.tolist(), strict=True)]


def _parts(network: Network) -> dict[int, tuple[str, int]]:
    """Return component and number of each node of a machine, counted from 0 in the order of their numbers."""
    of: dict[tuple[int, str, int], list[tuple[int, int]]] = defaultdict(list)
    stems: dict[str, set[int]] = defaultdict(set)
    for node in np.flatnonzero(network.machine >= 0).tolist():
        inner = network.nodes[node].partition(".")[2] or network.nodes[node]
        match = _NUMBERED.fullmatch(inner)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", match[1] if match and match[1] else inner)
        kind = int(network.kind[node])
        stems[stem].add(kind)
        of[int(network.machine[node]), stem, kind].append((int(match[2]) if match and match[1] else 0, node))
    parts = dict[int, tuple[str, int]]()
    for (_, stem, kind), nodes in of.items():
        name = stem if len(stems[stem]) == 1 else f"{stem}_{_CHOICES[kind]}"
        parts |= {node: (name, k) for k, (_, node) in enumerate(sorted(nodes))}
    return parts


def _plain_device(*, is_switch: bool) -> dict[str, Any]:
    names = [("asic", "switch"), ("port", "port")] if is_switch else [("xpu", "xpu"), ("nic", "nic")]
    parts = [_component(name, choice, 1) for name, choice in names]
    edge = {
        "ep1": {"component": names[0][0]},
        "ep2": {"component": names[1][0]},
        "scheme": "many2many",
        "link": "inner",
    }
    return {
        "name": "switch" if is_switch else "host",
        "components": parts,
        "links": [{"name": "inner"}],
        "edges": [edge],
    }


def _component(name: str, choice: str, count: int) -> dict[str, Any]:
    return {"name": name, "count": count, "choice": choice, choice: {}}


def _device_of(network: Network, places: list[Place], node: int) -> str:
    if network.machine[node] >= 0:
        return f"machine_{places[node][0]}"
    return "switch" if network.kind[node] == SWITCH else "host"


def _end(network: Network, places: list[Place], ports: dict[int, int], node: int) -> dict[str, str]:
    """Return an end of a cable: a NIC, or the next port of a switch."""
    instance, i, part, k = places[node]
    if network.machine[node] < 0 and network.kind[node] == SWITCH:
        part, k = "port", ports[node]
        ports[node] += 1
    return {"instance": f"{instance}[{i}]", "component": f"{part}[{k}]"}


def _instances(places: list[Place]) -> dict[str, tuple[int, int]]:
    """Return the count of each instance, and one of its nodes."""
    counts: dict[str, tuple[int, int]] = {}
    for node, (instance, i, *_) in enumerate(places):
        counts[instance] = (max(i + 1, counts.get(instance, (0, 0))[0]), node)
    return counts


def _insides(network: Network, lower: list[int], places: list[Place], devices: dict[str, dict[str, Any]]) -> None:
    """Append a device for each instance of machines.

    Raises
    ------
    InputError
        If machines of one name are not alike inside.
    """
    parts: dict[tuple[str, int], dict[tuple[str, int], str]] = defaultdict(dict)
    inner: dict[tuple[str, int], list[tuple[Any, ...]]] = defaultdict(list)
    for node in np.flatnonzero(network.machine >= 0).tolist():
        instance, i, part, k = places[node]
        parts[instance, i][part, k] = _CHOICES[int(network.kind[node])]
    for link in lower:
        a, b = int(network.src[link]), int(network.dst[link])
        if network.machine[a] == network.machine[b] >= 0:
            about = (float(network.bandwidth[link]), float(network.latency[link]))
            inner[places[a][:2]].append((places[a][2:], places[b][2:], about))
    for (instance, i), own in parts.items():
        device = _machine(f"machine_{instance}", own, inner[instance, i])
        if devices.setdefault(device["name"], device) != device:
            raise InputError(f"{network.name}: machine {instance}{i} is not like {instance}0 inside")


def _machine(name: str, own: Mapping[tuple[str, int], str], inner: list[tuple[Any, ...]]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for part, k in own:
        counts[part] = max(counts.get(part, 0), k + 1)
    links: dict[tuple[float, float], str] = {}
    edges = [
        {"ep1": {"component": f"{a[0]}[{a[1]}]"}, "ep2": {"component": f"{b[0]}[{b[1]}]"}, "scheme": "one2one",
         "link": links.setdefault(about, f"link{len(links)}")}
        for a, b, about in inner
    ]  # fmt: skip
    return {
        "name": name, "components": [_component(part, own[part, 0], n) for part, n in counts.items()],
        "links": [_link(name, *about) for about, name in links.items()], "edges": edges,
    }  # fmt: skip


def _link(name: str, rate: float, latency: float) -> dict[str, Any]:
    return {
        "name": name,
        "physical": {
            "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": _scaled(rate, -9, 8)},
            "latency": {"choice": "ns", "ns": _scaled(latency, 9)},
        },
    }


def _scaled(value: float, digits: int, factor: int = 1) -> float:
    """Return a number in another unit, so that its decimal digits stay."""
    return float(Decimal(repr(value)).scaleb(digits) * factor)
