"""NCCL's tuning table: what it expects of each algorithm with each protocol, and why some are never taken.

No size is written here: what changes from release to release is in ``model_versions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collectives.nccl.call import MAX_HEADS
from commsim.core.cache import Cache
from commsim.core.errors import InputError
from commsim.core.remark import Remark

from .expected_costs import HALVES, algorithm_bandwidth, latency
from .model_versions import SMALLEST_CORRECTED, TREE_CORRECTION, model_of
from .nccl_setting import ALGORITHMS, GENERATIONS, PATHS, PROTOCOLS, SINCE_HOPPER, Channels, NcclSetting

OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
_ALLOWED = {
    "broadcast": ("ring",), "reduce": ("ring",),
    "all_gather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "all_reduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
}  # fmt: skip
PATTERN = {"nvls_tree": "nvls", "collnet_direct": "collnet", "collnet_chain": "collnet", "pat": "tree"}
# Releases, from one up to before another, in which the ring is the backup of what is forced and not there.
RING_INSTEAD = (2, 19), (2, 24)

# Tables of the settings that were asked for last, which are kept too, so that their ids stay their own.
_TABLES: Cache[tuple[NcclSetting, tuple[Cell, ...]]] = Cache(32)


@dataclass(frozen=True, slots=True)
class Cell:
    """One algorithm with one protocol.

    Parameters
    ----------
    algorithm, protocol : str
        Names as NCCL writes them, in lower case.
    latency : float, s
        Latency of the smallest message.
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


def cells(setting: NcclSetting, operation: str) -> tuple[Cell, ...]:
    """Return NCCL's table for an operation, in the order in which it looks for the fastest.

    Raises
    ------
    InputError
        If NCCL has no model of the operation.
    """
    if operation not in OPERATIONS:
        raise InputError(f"NCCL chooses algorithms for {', '.join(OPERATIONS)}, not for {operation}")
    return _TABLES.get((id(setting), operation), lambda: (setting, _cells(setting, operation)))[1]


def _cells(setting: NcclSetting, operation: str) -> tuple[Cell, ...]:
    by_size = []
    for algorithm in ALGORITHMS:
        for p, protocol in enumerate(PROTOCOLS):
            reason = _refused(setting, operation, algorithm, protocol)
            channels = setting.channels.get(PATTERN.get(algorithm, algorithm))
            if reason or channels is None:
                by_size.append(Cell(algorithm, protocol, 0.0, 0.0, reason or "its channels are not known"))
                continue
            rate = algorithm_bandwidth(setting, operation, algorithm, p, channels)
            wait = latency(setting, operation, algorithm, p, channels)
            by_size.append(Cell(algorithm, protocol, wait, rate, "" if rate else "its largest rate on this GPU is 0"))
    return tuple(by_size)


def _refused(setting: NcclSetting, operation: str, algorithm: str, protocol: str) -> str:
    """Why NCCL does not use this at all; empty if it may."""
    if algorithm not in _ALLOWED[operation]:
        return f"no {operation} with it"
    if algorithm not in model_of(setting.version).algorithms:
        return f"not in NCCL {setting.version[0]}.{setting.version[1]}"
    if algorithm == "collnet_direct" and operation in HALVES and setting.version < (2, 19):
        return f"no {operation} with it before NCCL 2.19"
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


def _ll128_refused(setting: NcclSetting, channels: Channels) -> str:
    """LL128 trusts that 128 bytes arrive whole, which only some paths keep."""
    longest = "PXN" if setting.gpu in SINCE_HOPPER else "PXB"
    if setting.n_nodes > 1 and PATHS.index(channels.path_inter) > PATHS.index(longest):
        return f"LL128 needs a NIC no further than {longest}, this is {channels.path_inter}"
    if PATHS.index(channels.path_intra) > PATHS.index("NVB"):
        return f"LL128 needs NVLink between the GPUs of a node, this is {channels.path_intra}"
    return ""


def cell_time(setting: NcclSetting, operation: str, cell: Cell, size: int) -> float | None:
    """Return NCCL's estimate in seconds of one operation without others; None of a cell that it does not choose.

    Parameters
    ----------
    setting : NcclSetting
        Machines and network.
    operation : str
        Name of the operation.
    cell : Cell
        Algorithm and protocol.
    size : float, bytes
        Size of the operation.

    Notes
    -----
    Operations that are grouped share latency; that is not in here.
    """
    if not cell.bandwidth:
        return None
    rate, wait = cell.bandwidth, cell.latency
    step = (size // SMALLEST_CORRECTED).bit_length() - 1
    if operation == "all_reduce" and step >= 0 and _is_corrected(setting, cell):
        row = TREE_CORRECTION[PROTOCOLS.index(cell.protocol)]
        rate *= row[step] if step < len(row) else 1.0
    if cell.algorithm == "ring" and cell.protocol == "simple" and operation == "all_reduce" and setting.n_nodes > 1:
        model = model_of(setting.version)
        if size >= plateau(setting):
            wait *= model.plateau[GENERATIONS.index(setting.gpu) >= GENERATIONS.index(model.plateau_from)]
    return wait + size / rate


def plateau(setting: NcclSetting) -> int:
    """Size from which the latency of a ring on several nodes with Simple grows by a factor."""
    per_channel = model_of(setting.version).plateau_bytes
    if per_channel:
        return per_channel * setting.channels["ring"].n * setting.n_ranks
    return setting.n_ranks * 4096


def _is_corrected(setting: NcclSetting, cell: Cell) -> bool:
    """Whether a cell's rate dips at middle sizes: trees, and from 2.28 on NVLS trees of Blackwell on x86."""
    x86 = setting.cpu in ("intel", "amd") and model_of(setting.version).corrects_nvls_tree
    return cell.algorithm == "tree" or (cell.algorithm == "nvls_tree" and setting.gpu == "blackwell" and x86)


def nvls_parameters(setting: NcclSetting, algorithm: str) -> dict[str, int]:
    """Return heads and largest chunk of a call with NVLink SHARP as parameters of its schedule; nothing of others."""
    if not algorithm.startswith("nvls"):
        return {}
    return {"heads": nvls_heads(setting), "nvls_chunk": setting.nvls_call(algorithm)[1]}


def nvls_heads(setting: NcclSetting) -> int:
    """Return the GPUs of a machine that head a part with NVLink SHARP: as many as the search has channels for."""
    found = setting.channels["nvls"].n if "nvls" in setting.channels else 0
    return min(found or MAX_HEADS, MAX_HEADS, setting.n_ranks // setting.n_nodes)


def ring_instead(setting: NcclSetting, name: str, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], list[Remark]]:
    """Return the parameters of a call, with a ring where NCCL forced to NVLink SHARP falls back to one, and a remark.

    From 2.19 to 2.23 the ring is what is left where nothing of ``NCCL_ALGO`` is there (``ringbdw`` in
    ``src/graph/tuning.cc``, backup of ``src/enqueue.cc``); before and after, NCCL ends with an error.
    """
    forced, (first, behind) = str(parameters.get("algorithm", "")), RING_INSTEAD
    if not forced.startswith("nvls") or "nvls" in setting.channels or not first <= setting.version < behind:
        return dict(parameters), []
    text = f"{name}: NCCL {setting.version[0]}.{setting.version[1]} takes a ring, since {forced} is not there"
    return {**parameters, "algorithm": "ring"}, [Remark("library-fallback", text, needed=True)]


def lacks_nvls_of_two(version: tuple[int, int], n_gpus: int) -> bool:
    """Whether so few GPUs of a machine have no NVLink SHARP in a release (src/transport/nvls.cc, 2.28.7)."""
    return n_gpus <= 2 and version < (2, 28)
