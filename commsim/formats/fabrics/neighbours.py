"""Neighbours that LLDP knows: ``lldpcli -f json show neighbors`` of each host or switch.

The output has no name of the box that printed it: that is the file's name, as in ``node07.json`` in a folder of such
files, or the key of an object that holds the outputs of several boxes, or a name beside each in a list of them. Tools
that run a command on many boxes keep it below a further name, such as ``stdout``, and mostly as text.

References
----------
lldpd, ``src/client/json_writer.c``: ``json`` drops arrays of one, ``json0`` keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import parse_json, read_json

from .cabling import MAX_BYTES, Cable, Cabling, End

_RATE = re.compile(r"(\d{2,7})(G?)base", re.IGNORECASE | re.ASCII)
MAX_FILES, MAX_VALUES = 100_000, 1_000_000
# What the name of a box is called beside its output.
_BOX = ("host", "hostname", "name", "node", "box", "device", "system", "inventory_hostname", "minion")


def is_lldp(tree: object) -> bool:
    """Whether a file of JSON is such an output, or an object or list of them."""
    if isinstance(tree, list):
        return bool(tree) and all(_box_of(one) and _output_in(one) is not None for one in tree)
    if not isinstance(tree, Mapping):
        return False
    return "lldp" in tree or (bool(tree) and all(_output_in(value) is not None for value in tree.values()))


def _box_of(one: object) -> str:
    """Return the name of a box that stands beside its output; empty if none does."""
    names = [one[key] for key in _BOX if isinstance(one.get(key), str)] if isinstance(one, Mapping) else []
    return str(names[0]) if names else ""


def _output_in(value: Any) -> Any:
    """Return what ``lldp`` holds in an output, or in what holds one as an object or as text; None without any."""
    if not isinstance(value, Mapping):
        return None
    if "lldp" in value:
        return value["lldp"]
    for inner in value.values():
        tree = _decoded(inner) if isinstance(inner, str) else inner
        if isinstance(tree, Mapping) and "lldp" in tree:
            return tree["lldp"]
    return None


def _decoded(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return parse_json(text, MAX_VALUES)
    except (ValueError, RecursionError):
        return None


def read_lldp(path: str | Path) -> Cabling:
    """Read an output, an object of outputs by box, or a folder of files each called as its box.

    Raises
    ------
    InputError
        If no neighbour is in it.
    """
    path = Path(path)
    seen: dict[frozenset[tuple[str, str]], Cable] = {}
    cabling = Cabling()
    for box, tree in _outputs(path):
        for interface, said in _interfaces(tree):
            chassis = _named(said.get("chassis"))
            port = _first(said.get("port"))
            if chassis is None or not isinstance(port, Mapping):
                continue
            name, about = chassis
            far = End(name, _port_name(port))
            if kind := _kind(about):
                cabling.kinds[name] = kind
            near = End(box, interface)
            rate, text = _rate(port)
            key = frozenset(((near.device, near.port), (far.device, far.port)))
            old = seen.get(key)
            seen[key] = Cable(near, far, max(rate, old.rate if old else 0.0), 0.0, text)
    for cable in seen.values():
        cabling.add(cable, str(path))
    if not cabling.cables:
        raise InputError(f"{path}: has no neighbour with a name and a port (lldp.interface.*.chassis and .port)")
    return cabling


def _outputs(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Box, and its output."""
    if path.is_dir():
        files = sorted(path.glob("*.json"))[: MAX_FILES + 1]
        if len(files) > MAX_FILES:
            raise InputError(f"{path}: more than {MAX_FILES} files")
        for file in files:
            tree = read_json(file, MAX_BYTES)
            if is_lldp(tree):
                yield from _of_tree(tree, file.stem)
        return
    yield from _of_tree(read_json(path, MAX_BYTES), path.stem)


def _of_tree(tree: Any, stem: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(tree, list):
        yield from ((_box_of(one), _output_in(one)) for one in tree)
    elif "lldp" in tree:
        yield stem, tree["lldp"]
    else:
        yield from ((box, _output_in(output)) for box, output in tree.items())


def _interfaces(tree: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name of each port of the box, and what is said of its neighbour."""
    for part in tree if isinstance(tree, list) else [tree]:
        found = part.get("interface", []) if isinstance(part, Mapping) else []
        for one in found if isinstance(found, list) else [found]:
            if not isinstance(one, Mapping):
                continue
            if "name" in one and "chassis" in one:
                yield str(one["name"]), one
                continue
            for name, said in one.items():
                if isinstance(said, Mapping):
                    yield str(name), said


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _named(chassis: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Name of the neighbour's box, and what it says; its identity where it has no name."""
    chassis = _first(chassis)
    if not isinstance(chassis, Mapping) or not chassis:
        return None
    name = _first(chassis.get("name"))
    if name is not None:
        return str(name.get("value", "") if isinstance(name, Mapping) else name), chassis
    if "id" in chassis:
        return _value(chassis["id"]), chassis
    name, about = next(iter(chassis.items()))
    return str(name), about if isinstance(about, Mapping) else {}


def _value(of: Any) -> str:
    of = _first(of)
    return str(of.get("value", "")) if isinstance(of, Mapping) else str(of or "")


def _port_name(port: Mapping[str, Any]) -> str:
    identity = _first(port.get("id"))
    kind = str(identity.get("type", "")) if isinstance(identity, Mapping) else ""
    text = _value(identity)
    return text if kind in ("ifname", "local", "") or not port.get("descr") else _value(port["descr"])


def _kind(about: Mapping[str, Any]) -> str:
    """Return the kind of a box by what it can do: one that bridges or routes is a switch, a station a host."""
    said = about.get("capability", [])
    enabled = {
        str(one.get("type")): one.get("enabled") in (True, "on", "true")
        for one in (said if isinstance(said, list) else [said]) if isinstance(one, Mapping)
    }  # fmt: skip
    if enabled.get("Bridge") or enabled.get("Router"):
        return "switch"
    return "host" if enabled.get("Station") else ""


def _rate(port: Mapping[str, Any]) -> tuple[float, str]:
    """Rate of a port by what it negotiated, bytes/s, and how it is written; 0 where that is not there."""
    said = _first(port.get("auto-negotiation"))
    current = _value(said.get("current")) if isinstance(said, Mapping) else ""
    match = _RATE.search(current)
    if match is None:
        return 0.0, ""
    return float(match[1]) * (1e9 if match[2] else 1e6) / 8, match[0]
