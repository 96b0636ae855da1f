"""Slurm's topology.conf: trees of switches or blocks; sbatch options of a placement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NoReturn

from commsim.core.errors import InputError, located
from commsim.core.names.hostlist import check_name, compress_hosts, expand_hosts
from commsim.core.spec import is_whole

from .fabric_tree import Blocks, Switch, SwitchTree

_TREE = ("switchname", "switches", "nodes", "linkspeed")
_BLOCK = ("blockname", "nodes")
_LONGEST_NAME = 64
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
    if not all(is_whole(part) for part in parts):
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
    return [
        (0, int(part), "") if is_whole(part, len(part)) else (1, 0, part) for part in re.split(r"(\d+)", host) if part
    ]
