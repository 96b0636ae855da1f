"""NCCL's own estimate of every algorithm and protocol: a latency, and a bandwidth of the algorithm.

``t = latency + S / bandwidth``. A cell without bandwidth is one that NCCL never chooses; it says why.

References
----------
NCCL 2.30, ``src/graph/tuning.cc``, whose rules these are, in our words.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError

from .constants import (
    ALGORITHMS,
    BASE_US,
    HOP_US,
    LL_GBS,
    NET_OVERHEAD_US,
    NVLS_EFFICIENCY,
    NVLS_TREE_GBS,
    PROTOCOLS,
    RING_LL128_GBS,
    TREE_GBS,
    TREE_LL128_GBS,
)
from .setting import PATHS, Channels, Setting

OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
_ALLOWED = {
    "broadcast": ("ring",), "reduce": ("ring",),
    "all_gather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "all_reduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
}  # fmt: skip
_PATTERN = {"nvls_tree": "nvls", "collnet_direct": "collnet", "collnet_chain": "collnet", "pat": "ring"}
_HALVES = ("all_gather", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class Cell:
    """One algorithm with one protocol.

    Parameters
    ----------
    algorithm, protocol : str
        As NCCL calls them, in lower case.
    latency : float, s
        Of the smallest message.
    bandwidth : float, bytes/s
        Size over time of an endless message; 0 where NCCL does not choose it.
    why_not : str
        Then why; else empty.
    """

    algorithm: str
    protocol: str
    latency: float
    bandwidth: float
    why_not: str = ""

    @property
    def name(self) -> str:
        """Both names, as in ``ring/ll128``."""
        return f"{self.algorithm}/{self.protocol}"


def cells(setting: Setting, operation: str) -> tuple[Cell, ...]:
    """Return NCCL's table for an operation, in the order in which it looks for the fastest.

    Raises
    ------
    InputError
        If NCCL has no model of the operation.
    """
    if operation not in OPERATIONS:
        raise InputError(f"NCCL chooses algorithms for {', '.join(OPERATIONS)}, not for {operation}")
    found = []
    for algorithm in ALGORITHMS:
        for p, protocol in enumerate(PROTOCOLS):
            reason = _refused(setting, operation, algorithm, protocol)
            channels = setting.channels.get(_PATTERN.get(algorithm, algorithm))
            if reason or channels is None:
                found.append(Cell(algorithm, protocol, 0.0, 0.0, reason or "its channels are not known"))
                continue
            rate = _bandwidth(setting, operation, algorithm, p, channels)
            wait = _latency(setting, operation, algorithm, p, channels)
            found.append(Cell(algorithm, protocol, wait, rate, "" if rate else "its largest rate on this GPU is 0"))
    return tuple(found)


def _refused(setting: Setting, operation: str, algorithm: str, protocol: str) -> str:
    """Why NCCL does not use this at all; empty if it may."""
    if algorithm not in _ALLOWED[operation]:
        return f"no {operation} with it"
    if protocol != "simple" and algorithm not in ("tree", "ring"):
        return "only with Simple"
    many = setting.n_nodes > 1
    if algorithm.startswith("collnet") and not setting.collnet:
        return "needs a network that reduces (--collnet)"
    if algorithm in ("nvls", "nvls_tree"):
        if "nvls" not in setting.channels or setting.channels["nvls"].n < 2:
            return "needs NVLink SHARP"
        if algorithm == "nvls_tree" and not many:
            return "one node needs no tree"
        if algorithm == "nvls" and many and not setting.collnet:
            return "on several nodes it needs a network that reduces (--collnet)"
    if algorithm == "pat" and setting.n_nodes != setting.n_ranks:
        return "only with one GPU per node"
    if protocol == "ll128":
        return _ll128_refused(setting, setting.channels[algorithm])
    return ""


def _ll128_refused(setting: Setting, channels: Channels) -> str:
    """LL128 trusts that 128 bytes arrive whole, which only some paths keep."""
    longest = "PXN" if setting.gpu in ("hopper", "blackwell") else "PXB"
    if setting.n_nodes > 1 and PATHS.index(channels.path_inter) > PATHS.index(longest):
        return f"LL128 needs a NIC no further than {longest}, this is {channels.path_inter}"
    if PATHS.index(channels.path_intra) > PATHS.index("NVB"):
        return f"LL128 needs NVLink between the GPUs of a node, this is {channels.path_intra}"
    return ""


def _steps(setting: Setting, operation: str) -> int:
    """How often a ring passes something on."""
    if operation == "all_reduce":
        return 2 * (setting.n_ranks - 1)
    return setting.n_ranks - 1 if operation in _HALVES else setting.n_ranks


def _bandwidth(setting: Setting, operation: str, algorithm: str, p: int, channels: Channels) -> float:
    """Bandwidth of the algorithm: what its channels carry, less what it loses, over how often it sends a byte."""
    column, gpu = setting.nodes_column, setting.gpu
    collnet = algorithm.startswith("collnet")
    each = channels.intra if setting.n_nodes <= 2 or collnet else channels.inter
    if algorithm.startswith("nvls"):
        each = _nvls_channel(setting, operation, algorithm, channels)
    bus = channels.n * each
    row = gpu if setting.n_nodes == 1 else ("ampere" if setting.cpu == "amd" else "volta")
    largest_ll = LL_GBS[row][column] * 1e9
    if algorithm == "ring" and p == 0:
        bus = min(largest_ll, bus / 2)
    elif algorithm == "ring" and p == 1:
        bus = min(0.92 * bus, channels.n * RING_LL128_GBS[gpu][column] * 1e9)
    elif algorithm == "tree":
        bus = _tree_bus(setting, p, bus, channels.n, largest_ll)
    elif algorithm == "pat":
        bus *= 0.75
    elif algorithm == "collnet_direct":
        bus = _collnet_bus(setting, operation, bus, channels)
    if operation in _HALVES and algorithm != "ring":
        return bus
    if algorithm in ("ring", "nvls", "nvls_tree"):
        return bus * setting.n_ranks / _steps(setting, operation)
    return bus / 2


def _tree_bus(setting: Setting, p: int, bus: float, n: int, largest_ll: float) -> float:
    column, gpu = setting.nodes_column, setting.gpu
    bus = min(0.92 * bus, n * TREE_GBS[gpu][column] * 1e9)
    if p == 0:
        bus = min(bus / 3.8, largest_ll)
    elif p == 1:
        lost = 7 / 9 if setting.n_nodes == 1 else 120 / 128
        bus = min(bus * lost, n * TREE_LL128_GBS[gpu][column] * 1e9)
    return bus * 0.85 if setting.one_nic_tree else bus


def _nvls_channel(setting: Setting, operation: str, algorithm: str, channels: Channels) -> float:
    """Rate of one channel of NVLink SHARP, as bus bandwidth; an all-reduce overlaps its two halves."""
    inside = channels.intra * NVLS_EFFICIENCY[setting.gpu] * (channels.n - 1) / channels.n
    inside *= 2 if operation == "all_reduce" else (setting.per_node - 1) / setting.per_node
    if setting.n_nodes == 1:  # the search leaves the rate between nodes where it began, and it counts nevertheless
        return min(inside, channels.inter or inside)
    outside = channels.inter * (2 if setting.n_nodes == 2 and algorithm == "nvls_tree" else 1)
    cap = NVLS_TREE_GBS[setting.gpu][setting.nodes_column] * 1e9 if algorithm == "nvls_tree" else float("inf")
    return min(inside, outside, cap)


def _collnet_bus(setting: Setting, operation: str, bus: float, channels: Channels) -> float:
    """Of CollNet direct: it wants a NIC for each GPU."""
    if operation in _HALVES:
        return setting.per_node * min(channels.intra, 0.9 * channels.inter)
    gpus_per_channel = setting.per_node / channels.n
    bus /= (gpus_per_channel + 1) / 2
    return bus * 0.85 if setting.gpu in ("hopper", "blackwell") else bus


def _latency(setting: Setting, operation: str, algorithm: str, p: int, channels: Channels) -> float:
    """Latency in seconds: what starting costs, and what each hop inside a node and between nodes adds."""
    n, nodes = setting.n_ranks, setting.n_nodes
    inside = "nvlink" if channels.path_intra == "NVL" else "pci"
    intra = HOP_US[inside][algorithm][p]
    inter = HOP_US["net"]["tree" if setting.per_node == 1 else algorithm][p]
    inter += channels.latency * 1e6 * (2 if p == 2 else 1)  # with Simple, a flush as well
    base = BASE_US[algorithm][p]
    depth = nodes.bit_length() - 1
    others = n // nodes - 1
    if algorithm == "ring" and operation in ("broadcast", "reduce"):
        hardware = inside if nodes == 1 else "net"
        if channels.same:
            total = base + HOP_US[hardware]["ring"][p]
        else:  # with Simple a whole chunk has to arrive before it is passed on, as in a tree
            total = base + n * HOP_US[hardware]["tree" if p == 2 else "ring"][p]
    elif algorithm == "ring":
        overhead = NET_OVERHEAD_US[setting.cpu] * (3 if p == 2 else 1) if nodes > 1 else 0.0
        crossing = (2 if operation == "all_reduce" else 1) * (nodes - 1)
        total = base + (_steps(setting, operation) - crossing) * max(intra, overhead) + crossing * inter
    elif algorithm == "tree":
        total = base + 2 * (others * intra + depth * inter)
    elif algorithm == "collnet_direct":
        total = base + 2 * (min(1, others) * intra + others * 0.4) + inter
    elif algorithm == "collnet_chain":
        total = base + 2 * others * intra + inter
    elif algorithm == "nvls":
        total = intra + (inter if nodes > 1 else 0.0)
    elif algorithm == "nvls_tree":
        total = base + intra + 2 * depth * inter
    else:
        total = base + depth * inter / 3.5 + n * 2.8
    return total * 1e-6
