"""Slurm's topology.conf: a tree of switches, or blocks.

What to give Slurm's sbatch so that a job lands where a placement says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from commsim.core.errors import InputError

from .fabric_tree import Blocks, Switch, Tree
from .hostlist import check_name, compress_hosts, expand_hosts

_TREE = ("switchname", "switches", "nodes", "linkspeed")
_BLOCK = ("blockname", "nodes")
_LONGEST_NAME = 64


def read_slurm_conf(text: str, path: str = "topology.conf") -> Tree | Blocks:
    """Read what a topology.conf says.

    Parameters
    ----------
    text : str
        What is in the file.
    path : str
        For messages.

    Raises
    ------
    InputError
        Naming the line and the key that is wrong. Rings are not read.
    """
    switches: list[Switch] = []
    blocks: list[tuple[str, tuple[str, ...]]] = []
    sizes: tuple[int, ...] = ()
    for line, record in _records(text, path):
        where = f"{path}, line {line}"
        try:
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
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if switches and (blocks or sizes):
        raise InputError(f"{path}: has switches and blocks; Slurm reads one of them")
    if not switches and not blocks:
        raise InputError(f"{path}: has no SwitchName and no BlockName")
    try:
        return Tree(tuple(switches)) if switches else Blocks(tuple(blocks), sizes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_slurm_conf(topology: Tree | Blocks, comments: tuple[str, ...] = ()) -> str:
    """Write a topology.conf; :func:`read_slurm_conf` gives an equal value back.

    Parameters
    ----------
    topology : Tree or Blocks
        What to write.
    comments : tuple of str
        Lines that come first.

    Raises
    ------
    InputError
        If a switch has nodes and switches below it, a name is too long, or one cannot be written.
    """
    lines = [f"# {comment}" for comment in comments]
    if isinstance(topology, Tree):
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


def sbatch_options(tree: Tree, placement: Sequence[str]) -> str:
    """Options that pin a job to the hosts of a placement.

    Parameters
    ----------
    tree : Tree
        What the scheduler knows.
    placement : sequence of str
        The host of each rank.

    Returns
    -------
    str
        ``--nodes``, ``--nodelist`` and ``--switches``. Hosts come in the order of Slurm's own choice, not of the
        ranks: if ranks do not rise with the hosts' names, ``--distribution=arbitrary`` and SLURM_HOSTFILE keep theirs.
        ``--switches`` counts leaf switches, and Slurm waits for them at most its max_switch_wait (300 s).

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
    return f"--nodes={len(hosts)} --nodelist={compress_hosts(hosts)} --switches={n_leaves}"
