"""Slurm's topology.yaml (since 25.05): several named topologies, each a tree or blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.files.fields import Fields
from commsim.files.yaml_text import read_yaml, write_yaml

from .fabric_tree import Blocks, Switch, Tree, require_unique
from .hostlist import check_name, compress_hosts, expand_hosts
from .slurm_conf import require_plain

_KINDS = ("tree", "block")
_OTHERS = ("ring", "torus3d", "flat")


@dataclass(frozen=True, slots=True)
class NamedTopology:
    """One entry of the file.

    Parameters
    ----------
    name : str
        What partitions call it.
    topology : Tree or Blocks
        What it says.
    is_default : bool
        Whether it is the cluster's.
    """

    name: str
    topology: Tree | Blocks
    is_default: bool = False


def read_slurm_yaml(text: str, path: str = "topology.yaml") -> tuple[NamedTopology, ...]:
    """Read a topology.yaml.

    Raises
    ------
    InputError
        Naming the field that is wrong. Entries of type ring, torus3d and flat are not read.
    """
    entries = read_yaml(text, path)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: expected a list of topologies, got {type(entries).__name__}")
    found = [_entry(entry, path, i) for i, entry in enumerate(entries)]
    try:
        require_unique([one.name for one in found], "topology")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if sum(one.is_default for one in found) > 1:
        raise InputError(f"{path}: cluster_default is true more than once")
    return tuple(found)


def choose_topology(topologies: Sequence[NamedTopology], name: str | None, path: str) -> Tree | Blocks:
    """Return the topology of a name; without one the cluster's default, or the only one.

    Raises
    ------
    InputError
        If there is none of that name, or it is not clear which.
    """
    known = ", ".join(one.name for one in topologies)
    if name is None:
        default = [one for one in topologies if one.is_default] or list(topologies)
        if len(default) > 1:
            raise InputError(f"{path}: has several topologies and no default; choose one with --topology: {known}")
        return default[0].topology
    for one in topologies:
        if one.name == name:
            return one.topology
    raise InputError(f"{path}: has no topology {name!r}; it has {known}")


def write_slurm_yaml(topologies: Sequence[NamedTopology], comments: tuple[str, ...] = ()) -> str:
    """Write a topology.yaml; :func:`read_slurm_yaml` gives equal values back."""
    return write_yaml([[_tree_of(one) for one in topologies]], comments)


def _entry(entry: Any, path: str, i: int) -> NamedTopology:
    where = f"{path}: entry {i}"
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be a mapping, got {type(entry).__name__}")
    fields = Fields(entry, where)
    name = fields.text("topology")
    default = fields.one_of("cluster_default", ("true", "false"), "false") == "true"
    kinds = [key for key in (*_KINDS, *_OTHERS) if key in fields]
    if len(kinds) != 1:
        raise InputError(f"{where}: needs exactly one of {', '.join((*_KINDS, *_OTHERS))}, got {', '.join(kinds)}")
    if kinds[0] in _OTHERS:
        raise InputError(f"{where}: {name} is a {kinds[0]}; only tree and block are read")
    body = fields.table(kinds[0])
    try:
        topology = _tree(body) if kinds[0] == "tree" else _blocks(body)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None
    body.finish()
    fields.finish()
    return NamedTopology(name, topology, default)


def _tree(body: Fields) -> Tree:
    switches = []
    for one in body.tables("switches"):
        name = check_name(one.text("switch"), "a switch")
        if ("children" in one) == ("nodes" in one):
            one.fail(None, "needs either children or nodes")
        children = expand_hosts(one.text("children")) if "children" in one else ()
        switches.append(Switch(name, children, expand_hosts(one.text("nodes")) if "nodes" in one else ()))
        one.finish()
    return Tree(tuple(switches))


def _blocks(body: Fields) -> Blocks:
    sizes = []
    for i, size in enumerate(body.items("block_sizes", str, "a whole number") if "block_sizes" in body else ()):
        if not (size.isascii() and size.isdigit() and len(size) < 10):
            body.member("block_sizes", i, f"must be a whole number, got {size!r}")
        sizes.append(int(size))
    blocks = []
    for one in body.tables("blocks"):
        blocks.append((check_name(one.text("block"), "a block"), expand_hosts(one.text("nodes"))))
        one.finish()
    return Blocks(tuple(blocks), tuple(sizes))


def _tree_of(one: NamedTopology) -> dict[str, Any]:
    entry: dict[str, Any] = {"topology": one.name, "cluster_default": one.is_default}
    if isinstance(one.topology, Tree):
        entry["tree"] = {"switches": [_switch(switch) for switch in one.topology.switches]}
        return entry
    sizes = {"block_sizes": list(one.topology.sizes)} if one.topology.sizes else {}
    blocks = [{"block": name, "nodes": compress_hosts(nodes)} for name, nodes in one.topology.blocks]
    entry["block"] = {**sizes, "blocks": blocks}
    return entry


def _switch(switch: Switch) -> dict[str, str]:
    require_plain(switch)
    below = {"nodes": switch.nodes} if switch.nodes else {"children": switch.switches}
    return {"switch": check_name(switch.name, "a switch")} | {
        key: compress_hosts(hosts) for key, hosts in below.items()
    }
