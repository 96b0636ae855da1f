"""Between which parts of a predicted time measurements lie, by kind of machines and size: ``intervals.toml``.

`python -m benchmarks.nccl_tables.intervals` writes the file: of operators left out about 80 % of the rows lie inside. A
kind with too few tables of different operators has none, and its predictions have no interval.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

PATH = Path(__file__).parent / "intervals.toml"
# Sizes of which intervals are stated apart: the first limit that a size is below names its class.
SIZES = ((2**16, "small"), (2**24, "middle"), (float("inf"), "large"))
# Ranks of the largest machine; more ranks without a network are an NVLink domain of several trays.
RANKS_OF_A_MACHINE = 8
NODE, DOMAIN, RCCL = "machine", "nvlink_domain", "rccl"
# NVLink domains of several trays, joined by a network; and machines whose network adds, by algorithms that let it.
RACKS, RACKS_EXCHANGE, SHARP = "racks", "racks_exchange", "sharp"
ADDS = ("nvls", "collnet_direct", "collnet_chain")
# What a kind is called in a remark, if its name is no word of the field.
TOLD = {
    DOMAIN: "NVLink domains of several trays", SHARP: "SHARP between machines",
    RACKS: "NVLink domains joined by a network", RACKS_EXCHANGE: "exchanges between NVLink domains",
    "slingshot": "Slingshot",
}  # fmt: skip
# Networks that share a kind, since each has tables of one operator only.
CLOUD = "cloud"
KINDS = {
    **dict.fromkeys(("efa", "efa2", "efa3", "efa_staged", "tcpx", "tcpxo", "ena", "sockets"), CLOUD),
    "infiniband": "infiniband", "roce": "roce", "slingshot": "slingshot",
    "slingshot-2025": "slingshot",
}  # fmt: skip
# Machines of which there are no tables: the interval and the errors of all kinds together. No prediction has it as its
# interval.
EVERY = "every_kind"
Intervals = Mapping[tuple[str, str], tuple[float, float]]


def kind_of(n_ranks: int, n_nodes: int, network: str, algorithm: str = "") -> str:
    """Return the kind of machines that a communicator is on.

    Parameters
    ----------
    n_ranks, n_nodes : int
        Ranks, and machines or NVLink domains.
    network : str
        What joins them, one of those with known costs.
    algorithm : str
        What a call takes; empty for exchanges of messages, which have none.
    """
    if n_nodes == 1:
        return NODE if n_ranks <= RANKS_OF_A_MACHINE else DOMAIN
    if algorithm in ADDS:
        return SHARP
    if n_ranks > RANKS_OF_A_MACHINE * n_nodes:
        return RACKS if algorithm else RACKS_EXCHANGE
    return KINDS.get(network, network)


def size_class(size: float) -> str:
    """Return the class of a size in bytes."""
    return next(name for limit, name in SIZES if size < limit)


def interval_of(kind: str, size: float) -> tuple[float, float]:
    """Return the factors of a time between which about 80 % of an unseen operator's rows lie; (1, 1) without any.

    Parameters
    ----------
    kind : str
        As :func:`kind_of` says, or ``rccl``.
    size : float, bytes
        Size of the operation.
    """
    return intervals().get((kind, size_class(size)), (1.0, 1.0))


def read_intervals(text: str) -> Intervals:
    """Read a file of intervals.

    Parameters
    ----------
    text : str
        TOML, as ``intervals.toml``.
    """
    return {
        (kind, size): (pair[0], pair[1]) for kind, sizes in tomllib.loads(text).items() for size, pair in sizes.items()
    }


@functools.cache
def intervals() -> Intervals:
    """Return the intervals of this version."""
    return read_intervals(PATH.read_text(encoding="utf-8"))
