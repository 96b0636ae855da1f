"""InfraGraph's files: devices of components, instances of devices, and edges between slices of them.

References
----------
InfraGraph 3.1, ``infragraph.proto`` and ``infragraph_service.py``.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, shorten
from commsim.core.files.whole_files import read_json, read_text
from commsim.core.spec import is_whole
from commsim.formats.markup import read_yaml

from .cabling import MAX_BYTES

# Values of YAML; a fabric of 10,000 cables has 100,000 of them.
MAX_VALUES = 2**22
MAX_COUNT, MAX_EDGES = 2**20, 2**18
_MAX_NUMBER = Decimal(10) ** 15
_INDEX = r"(?: *-?\d{1,9})? *"
_PART = re.compile(rf"([A-Za-z0-9_-]{{1,256}})(?:\[({_INDEX}(?::{_INDEX}){{0,2}})\])?", re.ASCII)
_LANES = re.compile(r"\bx(\d{1,2})\b", re.ASCII)
_USUAL_LANES = 16  # of a link in transfers per second, where its description has no number of lanes
_TIMES = {"ms": 3, "us": 6, "ns": 9}

# Component and its number; of a nested device the outer one.
Part = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GraphLink:
    """A link: its rate in bytes/s, and latency in s; None where the file does not say."""

    rate: float | None
    latency: float | None


@dataclass(slots=True)
class GraphDevice:
    """A device: components with their kind and count, and edges between them, with the name of their link."""

    kinds: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    links: dict[str, GraphLink] = field(default_factory=dict)
    edges: list[tuple[Part, Part, str]] = field(default_factory=list)

    @property
    def is_machine(self) -> bool:
        """Whether it computes or sends: it has GPUs, NICs or memory, and so is no switch."""
        return bool({"xpu", "nic", "memory"} & set(self.kinds.values()))

    @property
    def n_nodes(self) -> int:
        """Nodes that it may become."""
        return sum(self.counts.values()) if self.is_machine else 1


@dataclass(slots=True)
class Infrastructure:
    """A file: devices, instances with device and count, links, and edges between parts of instances."""

    name: str
    devices: dict[str, GraphDevice] = field(default_factory=dict)
    instances: dict[str, tuple[str, int]] = field(default_factory=dict)
    links: dict[str, GraphLink] = field(default_factory=dict)
    edges: list[tuple[tuple[str, int, Part], tuple[str, int, Part], str]] = field(default_factory=list)


def read_tree(path: str | Path) -> Infrastructure:
    """Read a file, YAML or JSON.

    Raises
    ------
    InputError
        If a name in it is not there, or a slice is none.
    """
    text = read_text(path, MAX_BYTES)
    tree = read_json(path, MAX_BYTES) if text.lstrip().startswith("{") else read_yaml(text, str(path), MAX_VALUES)
    if isinstance(tree, Mapping) and isinstance(tree.get("infrastructure"), Mapping):
        tree = tree["infrastructure"]
    if not isinstance(tree, Mapping):
        raise InputError(f"{path}: an infrastructure is an object with devices, instances and edges")
    found = Infrastructure(str(tree.get("name") or Path(path).stem))
    found.links = _links(tree, str(path))
    for one in _named(tree, "devices", str(path)):
        device = GraphDevice(links=_links(one, str(path)))
        for part in _named(one, "components", str(path)):
            name = _text(part, "name", str(path))
            device.kinds[name] = _text(part, "choice", str(path))
            device.counts[name] = _whole(part, "count", str(path))
        found.devices[_text(one, "name", str(path))] = device
    for one, device in zip(_rows(tree, "devices", str(path)), found.devices.values(), strict=True):
        for edge in _rows(one, "edges", str(path)):
            ends = [_parts(found, device, _joined(edge, end, "device", str(path)), str(path)) for end in ("ep1", "ep2")]
            pairs = _paired(ends[0], ends[1], str(edge.get("scheme", "one2one")), str(path))
            device.edges += [(a, b, str(edge.get("link", ""))) for a, b in pairs if a != b]
            _check_count(len(device.edges), path)
    for one in _named(tree, "instances", str(path)):
        device_name = _text(one, "device", str(path))
        if device_name not in found.devices:
            raise InputError(f"{path}: instance {one.get('name')!r} is of the device {device_name!r}, which is missing")
        found.instances[_text(one, "name", str(path))] = (device_name, _whole(one, "count", str(path)))
    n_parts = sum(n * found.devices[name].n_nodes for name, n in found.instances.values())
    if n_parts > MAX_COUNT:
        raise InputError(f"{path}: {n_parts} components of all instances; at most {MAX_COUNT} are read")
    for edge in _rows(tree, "edges", str(path)):
        a, b = (_instances(found, edge, end, str(path)) for end in ("ep1", "ep2"))
        found.edges += [(x, y, str(edge.get("link", ""))) for x, y in
                        _paired(a, b, str(edge.get("scheme", "one2one")), str(path)) if x != y]  # fmt: skip
        _check_count(len(found.edges), path)
    return found


def _check_count(n: int, path: str | Path) -> None:
    if n > MAX_EDGES:
        raise InputError(f"{path}: more than {MAX_EDGES} edges")


def _rows(of: Mapping[str, Any], key: str, path: str) -> list[Mapping[str, Any]]:
    rows = of.get(key) or []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{path}: {key} must be a list of objects")
    return rows


def _named(of: Mapping[str, Any], key: str, path: str) -> list[Mapping[str, Any]]:
    """Return rows that have names, each its own."""
    rows = _rows(of, key, path)
    names = Counter(_text(row, "name", path) for row in rows)
    if twice := next((name for name, n in names.items() if n > 1), None):
        raise InputError(f"{path}: {key} has the name {shorten(repr(twice))} {names[twice]} times")
    return rows


def _text(of: Mapping[str, Any], key: str, path: str) -> str:
    if not isinstance(of.get(key), str):
        raise InputError(f"{path}: {key} is missing in {shorten(repr(dict(of)))}")
    return str(of[key])


def _whole(of: Mapping[str, Any], key: str, path: str) -> int:
    text = str(of.get(key, ""))
    if not is_whole(text, 11) or not 0 < int(text) <= MAX_COUNT:
        raise InputError(
            f"{path}: {key} of {of.get('name')!r} must be a whole number 1..{MAX_COUNT}, got {text[:40]!r}"
        )
    return int(text)


def _links(of: Mapping[str, Any], path: str) -> dict[str, GraphLink]:
    return {_text(row, "name", path): _link(row, path) for row in _named(of, "links", path)}


def _link(row: Mapping[str, Any], path: str) -> GraphLink:
    physical = _table(row, "physical", path)
    bandwidth, latency = (_table(physical, key, path) for key in ("bandwidth", "latency"))
    lanes = _LANES.search(str(row.get("description", "")))
    n_lanes = int(lanes[1]) if lanes else _USUAL_LANES
    giga = {"gigabits_per_second": 1, "gigabytes_per_second": 8, "gigatransfers_per_second": n_lanes}
    where = f"{path}: link {row.get('name')!r}"
    rates = [_number(bandwidth[unit], f"{where}: {unit}").scaleb(9) * factor / 8 for unit, factor in giga.items()
             if bandwidth.get(unit) is not None]  # fmt: skip
    times = [_number(latency[unit], f"{where}: {unit}").scaleb(-digits) for unit, digits in _TIMES.items()
             if latency.get(unit) is not None]  # fmt: skip
    return GraphLink(float(rates[0]) if rates and rates[0] else None, float(times[0]) if times else None)


def _table(of: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    found = of.get(key) or {}
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: {key} of a link must be an object, got {shorten(repr(found))}")
    return found


def _number(value: Any, where: str) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal(-1)
    if not (number.is_finite() and 0 <= number < _MAX_NUMBER):
        raise InputError(f"{where} must be a number of 0 or more, got {shorten(repr(value))}")
    return number


def _joined(edge: Mapping[str, Any], end: str, outer: str, path: str) -> str:
    """Return the component of an end, after the device that it is nested in."""
    at = edge.get(end)
    if not isinstance(at, Mapping):
        raise InputError(f"{path}: an edge has ep1 and ep2, got {shorten(repr(dict(edge)))}")
    within = at.get(outer)
    return f"{within}.{_text(at, 'component', path)}" if within else _text(at, "component", path)


def _slice(text: str | None, count: int, where: str) -> range | list[int]:
    """Return the numbers that a slice of Python means; without one all."""
    if text is None or not text.strip():
        return range(count)
    words = text.split(":")
    numbers = [int(word) if word.strip() else None for word in words]
    if len(words) == 1 and numbers[0] is not None:
        index = numbers[0] + count * (numbers[0] < 0)
        if not 0 <= index < count:
            raise InputError(f"{where}: [{text}] is outside of {count}")
        return [index]
    if len(words) == 3 and numbers[2] == 0:
        raise InputError(f"{where}: [{text}] is no slice")
    return range(*slice(*numbers).indices(count))


def _split(text: str, where: str) -> list[tuple[str, str | None]]:
    words = []
    for word in text.split("."):
        match = _PART.fullmatch(word.strip())
        if match is None:
            raise InputError(f"{where}: an end is written as in nic[0:2], got {text!r}")
        words.append((match[1], match[2]))
    return words


def _parts(found: Infrastructure, device: GraphDevice, text: str, path: str) -> list[Part]:
    """Return the components that an end names, of nested devices the outer one, once for each inner one."""
    out: list[Part] = []
    at, times = device, 1
    for i, (name, part) in enumerate(_split(text, path)):
        if name not in at.counts:
            raise InputError(f"{path}: there is no component {name!r} for the end {text!r}")
        numbers = _slice(part, at.counts[name], f"{path}: {text}")
        if i == 0:
            out = [(name, number) for number in numbers]
        else:
            times *= len(numbers)
        at = found.devices.get(name, GraphDevice())
    _check_count(len(out) * times, path)
    return [part for part in out for _ in range(times)]


def _instances(found: Infrastructure, edge: Mapping[str, Any], end: str, path: str) -> list[tuple[str, int, Part]]:
    at = edge.get(end)
    if not isinstance(at, Mapping):
        raise InputError(f"{path}: an edge has ep1 and ep2, got {shorten(repr(dict(edge)))}")
    (name, part), *_ = _split(_text(at, "instance", path), path)
    if name not in found.instances:
        raise InputError(f"{path}: there is no instance {name!r}")
    device, count = found.instances[name]
    parts = _parts(found, found.devices[device], _text(at, "component", path), path)
    numbers = _slice(part, count, f"{path}: {at['instance']}")
    _check_count(len(numbers) * len(parts), path)
    return [(name, i, one) for i in numbers for one in parts]


def _paired(a: Sequence[Any], b: Sequence[Any], scheme: str, path: str) -> list[tuple[Any, Any]]:
    """Return the pairs of ends of an edge; of a mesh within one group each pair once."""
    if scheme == "one2one":
        return list(zip(a, b, strict=False))
    if scheme == "many2many":
        _check_count(len(a) * len(b), path)
        return list(itertools.combinations(a, 2)) if a == b else list(itertools.product(a, b))
    if scheme == "ring":
        around = list(dict.fromkeys((*a, *b)))
        return list(zip(around, [*around[1:], *around[:1]], strict=True)) if len(around) > 2 else [tuple(around[:2])]
    raise InputError(f"{path}: an edge's scheme is one2one, many2many or ring, got {scheme[:40]!r}")
