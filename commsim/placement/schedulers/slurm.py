"""Slurm's topology.conf and topology.yaml (since 25.05): trees of switches or blocks; sbatch options of a placement."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from commsim.core.errors import InputError, located
from commsim.core.files.fields import TableFields
from commsim.formats.markup import read_yaml, write_yaml

from .fabric_tree import Blocks, Switch, SwitchTree, require_unique, without_empty
from .hostlist import check_name, compress_hosts, expand_hosts

_TREE = ("switchname", "switches", "nodes", "linkspeed")
_BLOCK = ("blockname", "nodes")
_LONGEST_NAME = 64
_KINDS = ("tree", "block")
_OTHERS = ("ring", "torus3d", "flat")
# How YAML 1.1 writes truth values, which Slurm's parser takes in any case of letters.
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
ARBITRARY = "--distribution=arbitrary"


def read_slurm_conf(text: str, path: str = "topology.conf") -> SwitchTree | Blocks:
    """Read what a topology.conf says.

    Parameters
    ----------
    text : str
        What is in the file.
    path : str
        Path of the file, named in messages.

    Raises
    ------
    InputError
        Naming the line and the key that is wrong. Rings are not read.
    """
    switches: list[Switch] = []
    blocks: list[tuple[str, tuple[str, ...]]] = []
    sizes: tuple[int, ...] = ()
    for line, record in _records(text, path):
        with located(f"{path}, line {line}"):
            if "switchname" in record:
                switches.append(_switch(record))
            elif "blockname" in record:
                _require_known(record, _BLOCK)
                blocks.append((check_name(record["blockname"], "a block"), _hosts(record, "nodes")))
            elif "blocksizes" in record and not sizes:
                _require_known(record, ("blocksizes",))
                sizes = _sizes(record["blocksizes"])
            else:
                _fail_unknown(record)
    if switches and (blocks or sizes):
        raise InputError(f"{path}: has switches and blocks; Slurm reads one of them")
    if not switches and not blocks:
        raise InputError(f"{path}: has no SwitchName and no BlockName")
    with located(path):
        return SwitchTree(tuple(switches)) if switches else Blocks(tuple(blocks), sizes)


def write_slurm_conf(topology: SwitchTree | Blocks, comments: tuple[str, ...] = ()) -> str:
    """Write a topology.conf; :func:`read_slurm_conf` gives an equal value back.

    Parameters
    ----------
    topology : SwitchTree or Blocks
        What to write.
    comments : tuple of str
        Lines that come first.

    Raises
    ------
    InputError
        If a switch has nodes and switches below it, a name is too long, or one cannot be written.
    """
    lines = [f"# {comment}" for comment in comments]
    if isinstance(topology, SwitchTree):
        lines += [_line(switch) for switch in topology.switches]
    else:
        lines += [
            f"BlockName={_name(name, 'a block')} Nodes={compress_hosts(nodes)}" for name, nodes in topology.blocks
        ]
        if topology.sizes:
            lines.append(f"BlockSizes={','.join(map(str, topology.sizes))}")
    return "\n".join(lines) + "\n"


def require_plain(switch: Switch) -> None:
    """Raise if a switch is what Slurm cannot have: over nothing, or over nodes and switches."""
    if bool(switch.switches) == bool(switch.nodes):
        got = "both" if switch.nodes else "neither"
        raise InputError(f"switch {switch.name} must have either nodes or switches below it for Slurm, it has {got}")


def _records(text: str, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Keys (in lower case) and values of each line; a backslash at the end joins the next line."""
    waiting, first = "", 0
    for n, raw in enumerate([*text.splitlines(), ""], 1):
        first = first or n
        line = raw.partition("#")[0].rstrip()
        if line.endswith("\\"):
            waiting += line[:-1] + " "
            continue
        words, waiting, start, first = (waiting + line).split(), "", first, 0
        record: dict[str, str] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not (equals and value) or key.lower() in record:
                raise InputError(f"{path}, line {start}: expected Key=value once for each key, got {word!r}")
            record[key.lower()] = value
        if record:
            yield start, record


def _switch(record: dict[str, str]) -> Switch:
    _require_known(record, _TREE)
    if ("switches" in record) == ("nodes" in record):
        raise InputError("a switch has either Switches= or Nodes=")
    name = _name(record["switchname"], "a switch")
    children = _hosts(record, "switches") if "switches" in record else ()
    return Switch(name, children, _hosts(record, "nodes") if "nodes" in record else (), record.get("linkspeed", ""))


def _line(switch: Switch) -> str:
    require_plain(switch)
    key, below = ("Nodes", switch.nodes) if switch.nodes else ("Switches", switch.switches)
    speed = f" LinkSpeed={check_name(switch.speed, 'a link speed')}" if switch.speed else ""
    return f"SwitchName={_name(switch.name, 'a switch')} {key}={compress_hosts(below)}{speed}"


def _name(name: str, what: str) -> str:
    if len(name) > _LONGEST_NAME:
        raise InputError(f"the name of {what} has at most {_LONGEST_NAME} characters in Slurm, got {name!r}")
    return check_name(name, what)


def _hosts(record: dict[str, str], key: str) -> tuple[str, ...]:
    if key not in record:
        raise InputError(f"{key.capitalize()}= is missing")
    return expand_hosts(record[key])


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"BlockSizes are whole numbers separated by commas, got {text!r}")
    return tuple(map(int, parts))


def _require_known(record: dict[str, str], known: tuple[str, ...]) -> None:
    for key in record:
        if key not in known:
            raise InputError(f"{key}= is not known beside {known[0]}=; known: {', '.join(known)}")


def _fail_unknown(record: dict[str, str]) -> NoReturn:
    key = next(iter(record))
    if key == "ringname":
        raise InputError("rings are not read; trees (SwitchName=) and blocks (BlockName=) are")
    raise InputError(f"a line is SwitchName=, BlockName= or one BlockSizes=, got {key}=")


def sbatch_options(tree: SwitchTree, placement: Sequence[str]) -> str:
    """Options that pin a job to the hosts of a placement.

    Parameters
    ----------
    tree : SwitchTree
        What the scheduler knows.
    placement : sequence of str
        The host of each rank.

    Returns
    -------
    str
        ``--nodes``, ``--ntasks`` (one for each rank), ``--nodelist`` and ``--switches``, which counts leaf switches,
        and Slurm waits for them at most its max_switch_wait (300 s). Slurm takes hosts in the order of their names:
        where equally many ranks on each host rise with these, ``--ntasks-per-node`` says all; else there is
        ``--distribution=arbitrary``, with which SLURM_HOSTFILE names a file with the host of each rank. GPUs are asked
        for by ``--gpus-per-node``, or one for each task where hosts have other numbers of them.

    Raises
    ------
    InputError
        If a host is not in the tree.
    """
    hosts, layers = tuple(dict.fromkeys(placement)), tree.layers()
    for host in hosts:
        if host not in layers:
            raise InputError(f"the placement names {host!r}, which is not a node of the tree")
    n_leaves = len({layers[host][0] for host in hosts})
    each = len(placement) // len(hosts)
    in_order = [host for host in sorted(hosts, key=_by_number) for _ in range(each)]
    how = f"--ntasks-per-node={each}" if list(placement) == in_order else ARBITRARY
    is_even = set(Counter(placement).values()) == {each}
    gpus = f"--gpus-per-node={each}" if is_even else "--gpus-per-task=1"
    tasks = f"--nodes={len(hosts)} --ntasks={len(placement)} {how} {gpus}"
    return f"{tasks} --nodelist={compress_hosts(hosts)} --switches={n_leaves}"


def _by_number(host: str) -> list[tuple[int, int, str]]:
    """Return what sorts hosts as Slurm does, their numbers as numbers: h2 before h10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", host) if part]


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
        if not (size.isascii() and size.isdigit() and len(size) < 10):
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
