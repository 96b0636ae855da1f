"""What a file is, by what is in it: which format reads it, and which command where it holds no network or schedule."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, shorten
from commsim.core.files.whole_files import read_head, read_json
from commsim.core.network import Network
from commsim.core.spec import read_arguments, split_file

from .fabrics.cable_list import is_cable_list
from .fabrics.fabric_files import FABRICS, read_fabric
from .htsim_topology import is_htsim
from .logs.log_formats import log_format_in
from .logs.log_lines import lines_of_log
from .markup import outermost_tag

HEAD = 2**16
# Formats of one machine, which stands before the @ of a network.
MACHINES = ("nccl-topology", "nvidia-smi")
NETWORKS = ("ns3", "simai", "htsim", "graphml", "node-link", "astra-network", "infragraph", *FABRICS, *MACHINES)
_XML = {"algo": "msccl", "system": "nccl-topology", "graphml": "graphml"}
_OTHER_XML = {"graphs": "this is NCCL's graph file (NCCL_GRAPH_FILE), which has channels and no machine"}
_MATRIX = re.compile(r"^(?:\x1b\[[0-9;]*m|[ \t|])*GPU0\s", re.MULTILINE)
_OWN_JSON = re.compile(r'\s*\{\s*"(?:schema|topology|directed)"')
_INFRAGRAPH = ("devices", "instances", "edges")
# What holds neither a network nor a schedule, and the command that reads it.
_OTHERS: dict[str, tuple[str, str]] = {
    r"^[ \t]*(?:SwitchName|BlockName)\s*=": (
        "Slurm's topology.conf", "commsim place import FILE --from slurm-conf"),
    r"^[ \t]*-[ \t]*topology[ \t]*:": ("Slurm's topology.yaml", "commsim place import FILE --from slurm-yaml"),
    r"^[ \t]*(?:NodeName|PartitionName|ClusterName)\s*=": (
        "Slurm's slurm.conf; the network is in topology.conf", "commsim place import topology.conf --from slurm-conf"),
    r"NCCL (?:INFO|WARN|TRACE)": ("a log of NCCL (NCCL_DEBUG)", "commsim compare FILE"),
    r"^Nodes \d+\s+Connections \d+": ("htsim's matrix of connections", "nothing: it is only written"),
    r"^HYBRID_TRANSFORMER|^[ \t]*model_parallel_NPU_group": (
        "a workload of SimAI or ASTRA-sim, text", "nothing: its layers are not read"),
    r"^(?:Ca|Switch)[ \t]+: 0x[0-9a-f]+ ports \d+": (
        "ibnetdiscover's list of nodes, without cables", "nothing: print it without -l"),
    r"^LLDP neighbors:|^lldp\.[^.\s]+\.[\w.-]+=": (
        "LLDP's neighbours as text", "nothing: print them with lldpcli -f json show neighbors"),
    r"^Matching lldp records": ("NetQ's neighbours as text", "nothing: print them with netq show lldp json"),
    r"^apiVersion:[ \t]*[\"']?kueue": (
        "a file of Kueue's objects, which name labels of nodes and no node",
        "nothing; the nodes are (kubectl get nodes -o json), by commsim place import"),
    r"^job(?:_name|id)?,": ("a trace of jobs", "commsim cluster trace FILE --from ..."),
}  # fmt: skip


def _lines(head: str) -> list[str]:
    return [line for line in head.splitlines() if line.strip()]


def _is_ns3(head: str) -> bool:
    lines = _lines(head)
    return bool(lines) and bool(re.fullmatch(r"\s*\d+\s+\d+\s+\d+\s*", lines[0])) and _has_cable(lines)


def _is_simai(head: str) -> bool:
    lines = _lines(head)
    return bool(lines) and bool(re.fullmatch(r"\s*(?:\d+\s+){5}\w+\s*", lines[0])) and _has_cable(lines)


def _has_cable(lines: list[str]) -> bool:
    return any(re.match(r"\s*\d+\s+\d+\s+[\d.]+[TGMKk]?bps\s", line) for line in lines[1:4])


# What a text is, in the order in which it is asked.
_TEXTS: dict[str, Callable[[str], bool]] = {
    "goal": lambda head: "num_ranks" in head,
    "nvidia-smi": lambda head: bool(_MATRIX.search(head) or _MATRIX.search("".join(lines_of_log(head)))),
    **{name: one.is_text for name, one in FABRICS.items() if one.is_text},
    "htsim": is_htsim,
    "simai": _is_simai,
    "ns3": _is_ns3,
}


def format_of_file(source: str) -> str:
    """Return the format of a file, a name in :data:`commsim.formats.catalogue.FORMATS`, by what is in it.

    Raises
    ------
    InputError
        If it is none; says what was found in it, and what is read.
    """
    found, hint = _look(source)
    if found:
        return found
    raise InputError(f"{source}: unknown format, {hint}; networks are read from {', '.join(NETWORKS)} and our own "
                     "files, schedules from msccl, goal and chakra (--from NAME)")  # fmt: skip


def _look(source: str) -> tuple[str, str]:
    """Format of a file, else what is found in it."""
    path = Path(source)
    if path.suffix == ".et" or Path(f"{source}.0.et").exists():
        return "chakra", ""
    if not path.exists():
        raise InputError(f"{source}: no such file, and no collective or topology of ours; `commsim schedule list` and "
                         "`commsim topo list` have them")  # fmt: skip
    if path.is_dir():
        if any(path.glob("*.json")):
            return "lldp", ""
        raise InputError(f"{source} is a folder, which is read only with outputs of lldpcli, NODE.json; give a file")
    if path.suffix in (".npz", ".toml"):
        return "commsim", ""
    data = read_head(path, HEAD)
    if data.startswith((4223).to_bytes(8, "little")):
        return "goal-binary", ""
    if b"\0" in data and b"num_ranks" not in data:
        return "", f"binary data that begins with {data[:4]!r}"
    head = data.decode("utf-8-sig", "replace")
    if path.suffix == ".json" and _OWN_JSON.match(head):  # without decoding all of it
        return "commsim", ""
    if head.lstrip().startswith("<") or path.suffix in (".xml", ".graphml"):
        tag = outermost_tag(path)
        return _XML.get(tag, ""), _OTHER_XML.get(tag, f"XML whose outermost element is <{tag[:40]}>")
    if head.lstrip().startswith(("{", "[{", "[\n")) or path.suffix == ".json":
        return _of_json(read_json(path, 2**28))
    if yaml := _of_yaml(path, head):
        return yaml, ""
    return _of_text(head)


def _of_json(tree: Any) -> tuple[str, str]:
    keys = list(tree) if isinstance(tree, Mapping) else []
    for name, one in FABRICS.items():
        if one.is_tree and one.is_tree(tree):
            return name, ""
    if "infrastructure" in keys or set(_INFRAGRAPH) <= set(keys):
        return "infragraph", ""
    if any("-implementation" in key for key in keys):
        return "astra-system", ""
    if "traceEvents" in keys:
        return "", "a trace of PyTorch's profiler (Kineto), which `commsim profile FILE` reads"
    if "directed" in keys and "schema" not in keys:
        return "node-link", ""
    if "schema" in keys or "topology" in keys or "tasks" in keys:
        return "commsim", ""
    kind = "an object with " + ", ".join(map(str, keys[:6])) if keys else f"a {type(tree).__name__}"
    return "", f"JSON: {shorten(kind)}"


def _of_yaml(path: Path, head: str) -> str:
    """Format of YAML; empty of what is none that is a network."""
    keys = set(re.findall(r"^([A-Za-z_][\w-]*)\s*:", head, re.MULTILINE))
    if not keys:  # flow style: braces in place of indentation
        keys = set(re.findall(r"[{,]\s{0,100}([A-Za-z_][\w-]*)\s{0,100}:", head))
    if {"devices", "instances"} <= keys or {"devices", "edges"} <= keys:
        return "infragraph"
    if re.search(r"^[ \t]*-[ \t]*topology[ \t]*:|^apiVersion[ \t]*:", head, re.MULTILINE):
        return ""
    is_astra = {"topology", "npus_count"} <= keys or path.suffix in (".yml", ".yaml")
    return "astra-network" if is_astra else ""


def _of_text(head: str) -> tuple[str, str]:
    for name, is_one in _TEXTS.items():
        if is_one(head):
            return name, ""
    if log := log_format_in(head.encode()):
        return "", f"this is {log.what}; it is read by: commsim compare FILE"
    for pattern, (what, command) in _OTHERS.items():
        if re.search(pattern, head, re.MULTILINE):
            return "", f"this is {what}; it is read by: {command}"
    if is_cable_list(head):
        return "cables", ""
    lines = _lines(head)
    first = f"text whose first line is {lines[0].strip()!r}" if lines else "an empty file"
    return "", first


def network_of_file(text: str) -> Network | None:
    """Read a network from a file of another tool; None where it is of our own, or holds one machine.

    Parameters
    ----------
    text : str
        The file, of a list of cables or a discovered fabric with options: ``fabric.csv:rate=400Gbps,healthy=true``.

    Raises
    ------
    InputError
        If the file is of no known format, or wrong.
    """
    path, raw = split_file(text)
    name = format_of_file(path)
    if name == "commsim" or name in MACHINES:
        return None
    if name in FABRICS:
        own = read_arguments(read_fabric, raw, names=("path", "form"), name=path)
        return dataclasses.replace(read_fabric(path, name, **own), name=text)
    from .catalogue import FORMATS, as_told, read
    from .context import Context
    from .network_formats import NETWORK

    if NETWORK not in FORMATS[name].reads:
        raise InputError(f"{path}: holds no network, but a {' or a '.join(FORMATS[name].reads)} ({name})")
    if raw:
        raise InputError(f"{path} ({name}) has no parameter {next(iter(raw))!r}")
    network: Network
    network, notes = read(name, NETWORK, path, Context())
    return dataclasses.replace(network, told=(*network.told, *as_told(notes, network)))


def read_network_file(path: str | Path) -> Network:
    """Read a network from a file of another tool, as :func:`network_of_file` does.

    Raises
    ------
    InputError
        If it holds none.
    """
    network = network_of_file(str(path))
    if network is None:
        raise InputError(f"{path}: holds one machine, or a file of our own under another suffix")
    return network
