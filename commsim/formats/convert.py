"""From one format to another, by way of our own values: what the formats are called and hold, and how they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.files.whole_files import read_head, read_json, read_tree
from commsim.formats.markup import outermost_tag
from commsim.run.inputs import load_network, load_schedule

from .programs.operations import MAX_OPS

Notes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """What a format needs and a value of ours does not say.

    Parameters
    ----------
    n_ranks : int, optional
        Of a collective that is named.
    size : float, bytes, optional
        Of the operation, for formats whose messages have sizes.
    gamma : float, s/byte
        What reducing costs.
    network : str, optional
        On which a system layer's collectives run, or flows.
    operation : str
        Which of a system layer's collectives.
    min_bytes, max_bytes : int
        For which sizes MSCCL's runtime takes an algorithm.
    gpu_type : str
        Name of the GPUs for SimAI.
    n_helpers : int
        How many ranks of a file, the last ones, are helpers.

    Raises
    ------
    InputError
        If there are fewer than none.
    """

    n_ranks: int | None = None
    size: float | None = None
    gamma: float = 0.0
    network: str | None = None
    operation: str = "all_reduce"
    min_bytes: int = 0
    max_bytes: int = 2**40
    gpu_type: str = "H100"
    n_helpers: int = 0

    def __post_init__(self) -> None:
        if self.n_helpers < 0:
            raise InputError(f"--helpers must be 0 or more, got {self.n_helpers}")


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """A schedule, and what is known of its messages.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    n_bytes : float64[n_transfers], bytes, optional
        Of each message, where the file says.
    size : float, bytes
        That gives the messages their sizes, where there is one.
    gamma : float64[n_participants], s/byte
        Where the file says.
    """

    schedule: Schedule
    n_bytes: NDArray[np.float64] | None = None
    size: float = 0.0
    gamma: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    def messages(self, given: Given) -> NDArray[np.float64]:
        """Bytes of every message.

        Raises
        ------
        InputError
            If neither the file nor the user says.
        """
        if self.n_bytes is not None:
            return self.n_bytes
        if given.size is None:
            raise InputError(f"{self.schedule.name} has no sizes of its own, and this format needs them: say --size")
        return np.asarray(self.schedule.expand()["count"] * (given.size / self.schedule.n_chunks))


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
        from commsim.files.npz import read_arrays
        from commsim.files.whole_files import parse_json

        header = read_arrays(path, 2**28, "header").get("header")
        try:
            kind = parse_json(header.tobytes().decode())["kind"] if header is not None else ""
        except (ValueError, KeyError, TypeError, RecursionError):
            kind = ""
        if kind not in (NETWORK, SCHEDULE):
            raise InputError(f"{path}: holds no network and no schedule")
        return str(kind)
    return WORKLOAD if "tasks" in read_tree(path) else NETWORK


MAX_MESSAGES = MAX_OPS // 2


def convert(source: str, target: str, given: Given, from_: str | None = None, to: str | None = None) -> Notes:
    """Read `source` and write `target`.

    Parameters
    ----------
    source : str
        A file, or ``name:key=value,...`` of one of our collectives or topologies.
    target : str
        A file; of Chakra traces the prefix.
    given : Given
        What else is needed.
    from_, to : str, optional
        Names of ``FORMATS``; found out unless given.

    Returns
    -------
    tuple of str
        What was lost or changed, and should be said.

    Raises
    ------
    InputError
        If something is wrong, or the one format holds nothing that the other can.
    """
    to = to or format_of_target(target)
    kinds = _kinds_of_target(target, to)
    named = _named(source)
    notes: Notes = ()
    if named:
        kind = named
        value: Any = load_network(source) if kind == NETWORK else Sized(load_schedule(source, given.n_ranks))
        if kind not in kinds:
            raise InputError(f"{source} is a {kind}, and {to} holds a {' or a '.join(kinds)}")
    else:
        from_ = from_ or format_of_source(source)
        held = (kind_of_own_file(source),) if from_ == "commsim" else FORMATS[from_].reads
        kind = next((one for one in kinds if one in held), "")
        if not kind:
            raise InputError(f"{source} ({from_}) becomes a {' or a '.join(held) or 'nothing'}, and {to} holds a "
                             f"{' or a '.join(kinds) or 'nothing'}")  # fmt: skip
        value, notes = _read_naming(from_, kind, source, given)
    if kind == SCHEDULE and to not in ("commsim", "astra-system") and value.schedule.n_transfers > MAX_MESSAGES:
        n = value.schedule.n_transfers
        raise InputError(f"{value.schedule.name} has {n} messages; {to} is written with up to {MAX_MESSAGES}")
    return notes + _write(to, kind, value, target, given)


def _kinds_of_target(target: str, to: str) -> tuple[str, ...]:
    kinds = FORMATS[to].writes
    if to == "commsim":
        return (NETWORK, SCHEDULE) if Path(target).suffix == ".npz" else (NETWORK, WORKLOAD)
    return kinds


def _named(source: str) -> str:
    from collectives import COLLECTIVES
    from topologies import TOPOLOGIES
    from topologies.presets import PRESETS

    name = source.partition(":")[0]
    if Path(source).exists():
        return ""
    if name in COLLECTIVES:
        return SCHEDULE
    return NETWORK if name in TOPOLOGIES or name in PRESETS or "@" in source else ""


def _read_naming(name: str, kind: str, source: str, given: Given) -> tuple[Any, Notes]:
    """Read, and begin whatever is wrong with the name of the file."""
    from .readers import READERS

    try:
        return READERS[name, kind](source, given)
    except InputError as error:
        if str(error).startswith((str(Path(source).with_suffix("")), given.network or source)):
            raise
        raise InputError(f"{source}: {error}") from None


def _write(name: str, kind: str, value: Any, target: str, given: Given) -> Notes:
    from . import writers

    write: Callable[[Any, str, Given], Notes] = writers.WRITERS[name, kind]
    return write(value, target, given)
