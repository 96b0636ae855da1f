"""NCCL's own estimate of every algorithm and protocol: a latency, and a bandwidth of the algorithm.

``t = latency + S / bandwidth``. A cell without bandwidth is one that NCCL never chooses; it says why.

References
----------
NCCL 2.30, ``src/graph/tuning.cc``, whose rules these are, in our words.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError

from .constants import ALGORITHMS, PROTOCOLS
from .costs import algorithm_bandwidth, latency
from .search import PATHS, Channels, Setting

OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
_ALLOWED = {
    "broadcast": ("ring",), "reduce": ("ring",),
    "all_gather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "all_reduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
}  # fmt: skip
_PATTERN = {"nvls_tree": "nvls", "collnet_direct": "collnet", "collnet_chain": "collnet", "pat": "ring"}


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
            rate = algorithm_bandwidth(setting, operation, algorithm, p, channels)
            wait = latency(setting, operation, algorithm, p, channels)
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
