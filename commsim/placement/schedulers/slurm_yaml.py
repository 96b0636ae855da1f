"""Slurm's topology.yaml (since 25.05): several topologies, each a tree of switches, blocks, or of a kind not read."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError, located
from commsim.core.files.fields import TableFields
from commsim.core.names.hostlist import check_name, compress_hosts, expand_hosts
from commsim.core.spec import is_whole
from commsim.formats.markup import read_yaml, write_yaml

from .fabric_tree import Blocks, Switch, SwitchTree, require_unique, without_empty
from .slurm import require_plain

_KINDS = ("tree", "block")
_OTHERS = ("ring", "torus3d", "flat")
# How YAML 1.1 writes truth values, which Slurm's parser takes in any case of letters.
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class NamedTopology:
    """One entry of the file.

    Parameters
    ----------
    name : str
        What partitions call it.
    topology : SwitchTree or Blocks or None
        What it says; None of a kind that is not read.
    is_default : bool
        Whether it is the cluster's.
    kind : str
        What it is: tree, block, flat, ring or torus3d.
    """

    name: str
    topology: SwitchTree | Blocks | None
    is_default: bool = False
    kind: str = dataclasses.field(default="tree", compare=False)


def read_slurm_yaml(text: str, path: str = "topology.yaml") -> tuple[NamedTopology, ...]:
    """Read a topology.yaml.

    Raises
    ------
    InputError
        Naming the field that is wrong. What entries of type ring, torus3d and flat say is not read.
    """
    entries = read_yaml(text, path)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: expected a list of topologies, got {type(entries).__name__}")
    topologies = [_entry(entry, path, i) for i, entry in enumerate(entries)]
    with located(path):
        require_unique([topology.name for topology in topologies], "topology")
    if sum(topology.is_default for topology in topologies) > 1:
        raise InputError(f"{path}: cluster_default is true more than once")
    return tuple(topologies)


def choose_topology(topologies: Sequence[NamedTopology], name: str | None, path: str) -> SwitchTree | Blocks:
    """Return the topology of a name; without one the cluster's default, or the only one.

    Raises
    ------
    InputError
        If the name is unknown, or it is not clear which.
    """
    known = ", ".join(topology.name for topology in topologies)
    if name is None:
        default = [topology for topology in topologies if topology.is_default] or list(topologies)
        if len(default) > 1:
            raise InputError(f"{path}: has several topologies and no default; choose one with --topology: {known}")
        return _read_topology(default[0], known, path)
    for topology in topologies:
        if topology.name == name:
            return _read_topology(topology, known, path)
    raise InputError(f"{path}: has no topology {name!r}; it has {known}")


def _read_topology(topology: NamedTopology, known: str, path: str) -> SwitchTree | Blocks:
    if topology.topology is None:
        raise InputError(f"{path}: {topology.name} is a {topology.kind}; only tree and block are read; choose another "
                         f"with --topology: {known}")  # fmt: skip
    return topology.topology


def write_slurm_yaml(topologies: Sequence[NamedTopology], comments: tuple[str, ...] = ()) -> str:
    """Write a topology.yaml; :func:`read_slurm_yaml` gives equal values back."""
    return write_yaml([[_tree_of(topology) for topology in topologies]], comments)


def _entry(entry: Any, path: str, i: int) -> NamedTopology:
    where = f"{path}: entry {i}"
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be a mapping, got {type(entry).__name__}")
    fields = TableFields(entry, where)
    name = fields.text("topology")
    default = _truth(fields, "cluster_default")
    kinds = [key for key in (*_KINDS, *_OTHERS) if key in fields]
    if len(kinds) != 1:
        raise InputError(f"{where}: needs exactly one of {', '.join((*_KINDS, *_OTHERS))}, got {', '.join(kinds)}")
    if kinds[0] in _OTHERS:
        return NamedTopology(name, None, default, kinds[0])
    body = fields.table(kinds[0])
    with located(where):
        topology = _tree(body) if kinds[0] == "tree" else _blocks(body)
    body.finish()
    fields.finish()
    return NamedTopology(name, topology, default, kinds[0])


def _truth(fields: TableFields, key: str) -> bool:
    text = fields.text(key, "false")
    if text.lower() not in _TRUTHS:
        fields.refuse(key, "true or false")
    return _TRUTHS[text.lower()]


def _tree(body: TableFields) -> SwitchTree:
    switches = []
    for switch in body.tables("switches"):
        name = check_name(switch.text("switch"), "a switch")
        if "children" in switch and "nodes" in switch:
            switch.fail(None, "needs either children or nodes")
        children = expand_hosts(switch.text("children")) if "children" in switch else ()
        switches.append(Switch(name, children, expand_hosts(switch.text("nodes")) if "nodes" in switch else ()))
        switch.finish()
    _leave_out_options(body)
    return SwitchTree(without_empty(switches))


def _blocks(body: TableFields) -> Blocks:
    sizes = []
    for i, size in enumerate(body.items("block_sizes", str, "a whole number") if "block_sizes" in body else ()):
        if not is_whole(size):
            body.member("block_sizes", i, f"must be a whole number, got {size!r}")
        sizes.append(int(size))
    blocks = []
    for block in body.tables("blocks"):
        name = check_name(block.text("block"), "a block")
        if "nodes" in block:  # a block whose nodes register later has none
            blocks.append((name, expand_hosts(block.text("nodes"))))
        block.finish()
    _leave_out_options(body)
    return Blocks(tuple(blocks), tuple(sizes))


def _leave_out_options(body: TableFields) -> None:
    """Take note of options of a plugin, such as alpha_step_rank, which say nothing of the network."""
    for key in body:
        if key not in ("switches", "blocks", "block_sizes"):
            body.raw(key)


def _tree_of(topology: NamedTopology) -> dict[str, Any]:
    entry: dict[str, Any] = {"topology": topology.name, "cluster_default": topology.is_default}
    if topology.topology is None:
        raise InputError(f"{topology.name} is a {topology.kind}, which is not written")
    if isinstance(topology.topology, SwitchTree):
        entry["tree"] = {"switches": [_switch_entry(switch) for switch in topology.topology.switches]}
        return entry
    sizes = {"block_sizes": list(topology.topology.sizes)} if topology.topology.sizes else {}
    blocks = [{"block": name, "nodes": compress_hosts(nodes)} for name, nodes in topology.topology.blocks]
    entry["block"] = {**sizes, "blocks": blocks}
    return entry


def _switch_entry(switch: Switch) -> dict[str, str]:
    require_plain(switch)
    below = {"nodes": switch.nodes} if switch.nodes else {"children": switch.switches}
    return {"switch": check_name(switch.name, "a switch")} | {
        key: compress_hosts(hosts) for key, hosts in below.items()
    }
