"""The formats that are converted: their names, how they are recognised, and what of ours each can hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.formats.bounded import read_head, read_json
from commsim.core.formats.files import read_tree
from commsim.core.formats.xml_tree import outermost_tag

NETWORK, SCHEDULE, WORKLOAD, SYSTEM, PROGRAM = "network", "schedule", "workload", "system", "program"
"""A program is what every rank does, as GOAL and Chakra say it: from the one to the other nothing is made of it."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Parameters
    ----------
    summary : str
        What it is.
    suffixes : tuple of str
        By which a file to be written is recognised.
    reads, writes : tuple of str
        What of ours it becomes, and can be made from, the likeliest first.
    """

    summary: str
    suffixes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


FORMATS = {
    "commsim": Format("our own files", (".npz", ".toml", ".json"), (NETWORK, SCHEDULE, WORKLOAD),
                      (NETWORK, SCHEDULE, WORKLOAD)),
    "astra-network": Format("ASTRA-sim's network, YAML", (".yml", ".yaml"), (NETWORK,), (NETWORK,)),
    "astra-system": Format("ASTRA-sim's system layer, JSON", (), (SYSTEM, SCHEDULE), (SYSTEM, SCHEDULE)),
    "msccl": Format("MSCCL's algorithms, XML", (".xml",), (SCHEDULE,), (SCHEDULE,)),
    "goal": Format("GOAL of LogGOPSim and ATLAHS, text", (".goal",), (PROGRAM, SCHEDULE, WORKLOAD),
                   (PROGRAM, SCHEDULE)),
    "goal-binary": Format("GOAL, binary", (".bin",), (PROGRAM, SCHEDULE, WORKLOAD), (PROGRAM, SCHEDULE)),
    "chakra": Format("Chakra traces, PREFIX.RANK.et", (".et",), (PROGRAM, SCHEDULE, WORKLOAD),
                     (PROGRAM, SCHEDULE, WORKLOAD)),
    "node-link": Format("networkx's node-link JSON", (), (NETWORK,), (NETWORK,)),
    "graphml": Format("GraphML", (".graphml",), (NETWORK,), (NETWORK,)),
    "nccl-topology": Format("NCCL's topology of a machine, XML", (), (NETWORK,)),
    "ns3": Format("HPCC's and ASTRA-sim's ns-3 topology", (), (NETWORK,), (NETWORK,)),
    "simai": Format("SimAI's topology", (), (NETWORK,), (NETWORK,)),
    "htsim": Format("htsim's topology", (".topo",), (), (NETWORK,)),
    "htsim-flows": Format("htsim's matrix of connections", (".cm",), (), (SCHEDULE,)),
}  # fmt: skip
_XML = {"algo": "msccl", "system": "nccl-topology", "graphml": "graphml"}


def format_of_target(target: str) -> str:
    """Say which format a file to be written has, by its suffix.

    Raises
    ------
    InputError
        If the suffix says nothing.
    """
    suffix = Path(target).suffix
    found = next((name for name, one in FORMATS.items() if suffix in one.suffixes), None)
    if found is None:
        raise InputError(f"{target}: its suffix is that of no format; say --to {'|'.join(FORMATS)}")
    return found


def format_of_source(source: str) -> str:
    """Say which format a file has, by what is in it.

    Raises
    ------
    InputError
        If it cannot be told.
    """
    path = Path(source)
    if path.suffix == ".et" or Path(f"{source}.0.et").exists():
        return "chakra"
    if not path.exists():
        raise InputError(f"{source}: no such file, and no collective or topology of ours; `commsim schedule list` and "
                         "`commsim topo list` have them")  # fmt: skip
    if path.suffix in (".xml", ".graphml"):
        tag = outermost_tag(path)
        if tag in _XML:
            return _XML[tag]
        raise InputError(f"{source}: <{tag[:40]}> is the outermost element of no format that is known")
    if path.suffix == ".json":
        tree = read_json(path)
        return "astra-system" if isinstance(tree, dict) and any("-implementation" in key for key in tree) else "commsim"
    if path.suffix in (".npz", ".toml"):
        return "commsim"
    if path.suffix in (".yml", ".yaml"):
        return "astra-network"
    head = read_head(path, 4096)
    if head.startswith((4223).to_bytes(8, "little")):
        return "goal-binary"
    if b"num_ranks" in head:
        return "goal"
    raise InputError(
        f"{source}: it cannot be told what it is; say --from {'|'.join(n for n in FORMATS if FORMATS[n].reads)}"
    )


def kind_of_own_file(path: str) -> str:
    """Say what a file of ours holds."""
    if Path(path).suffix == ".npz":
        from commsim.core.formats.array_file import read_arrays
        from commsim.core.formats.files import parse_json

        header = read_arrays(path, 2**28, "header").get("header")
        try:
            kind = parse_json(header.tobytes().decode())["kind"] if header is not None else ""
        except (ValueError, KeyError, TypeError, RecursionError):
            kind = ""
        if kind not in (NETWORK, SCHEDULE):
            raise InputError(f"{path}: holds no network and no schedule")
        return str(kind)
    return WORKLOAD if "tasks" in read_tree(path) else NETWORK
