"""What NCCL expects of each algorithm and protocol, and which it takes at which size.

No size is written here: where the choice changes follows from the constants of a release in ``model_versions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from collectives.nccl.call import MAX_HEADS
from commsim.core.cache import Cache
from commsim.core.errors import InputError
from commsim.core.units import format_size

from .channel_search import (
    ALGORITHMS,
    GENERATIONS,
    PATHS,
    PROTOCOLS,
    SINCE_HOPPER,
    SMALLEST_CORRECTED,
    TREE_CORRECTION,
    Channels,
    NcclSetting,
)
from .expected_costs import HALVES, algorithm_bandwidth, latency
from .model_versions import model_of

LARGEST = 2**40
# Ranges of sizes that a remark names.
MAX_NAMED = 6
OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
_ALLOWED = {
    "broadcast": ("ring",), "reduce": ("ring",),
    "all_gather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "all_reduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
}  # fmt: skip
PATTERN = {"nvls_tree": "nvls", "collnet_direct": "collnet", "collnet_chain": "collnet", "pat": "tree"}


# Tables of the settings that were asked for last, which are kept too, so that their ids stay their own.
_TABLES: Cache[tuple[NcclSetting, tuple[Cell, ...]]] = Cache(32)
_RANGES: Cache[tuple[NcclSetting, tuple[SizeRange, ...]]] = Cache(32)


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Sizes at which NCCL takes one cell.

    Parameters
    ----------
    low, high : int, bytes
        Both included.
    cell : Cell
        What it takes.
    next_best : Cell or None
        The second at the geometric middle of the range.
    slower : float
        How many times as long that takes there.
    latency_share : float
        Share of latency in the chosen one's time at the middle.
    """

    low: int
    high: int
    cell: Cell
    next_best: Cell | None
    slower: float
    latency_share: float

    @property
    def why(self) -> str:
        """Describe in words why it is taken."""
        part = "its latency" if self.latency_share > 0.5 else "its bandwidth"
        if self.next_best is None:
            return "the only one that can be used"
        beside = f"{self.next_best.name} takes {self.slower:.2f} times as long"
        return f"{part} decides ({self.latency_share:.0%} latency); {beside}"


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
        if size >= _plateau(setting):
            wait *= model.plateau[GENERATIONS.index(setting.gpu) >= GENERATIONS.index(model.plateau_from)]
    return wait + size / rate


def fastest(setting: NcclSetting, operation: str, table: Iterable[Cell], size: int) -> Cell | None:
    """Return the cell that NCCL expects to be the fastest, the first of equal ones; None if it chooses none of them."""
    times = [(cell_time(setting, operation, cell, size), cell) for cell in table]
    usable = [(time, i) for i, (time, _) in enumerate(times) if time is not None]
    return times[min(usable)[1]][1] if usable else None


def ranges(
    setting: NcclSetting, operation: str, largest: int = LARGEST, table: Sequence[Cell] | None = None
) -> tuple[SizeRange, ...]:
    """Find all sizes at which NCCL changes its mind.

    Parameters
    ----------
    setting : NcclSetting
        Communicator on its hardware.
    operation : str
        One that NCCL has a model of.
    largest : int, bytes
        Up to where.
    table : sequence of Cell, optional
        Its cells, where they are known already.

    Returns
    -------
    tuple of SizeRange
        Ascending, without gaps, from 1 byte to `largest`.

    Notes
    -----
    Between two breakpoints of the correction every cell is a line in the size. The lowest of lines is concave, so that
    a cell which is the fastest at both ends of an interval is so inside it; else it is halved.
    """
    if largest < 1:
        raise InputError(f"the largest size must be at least 1 byte, got {largest}")
    if table is None:
        key = id(setting), operation, largest
        return _RANGES.get(key, lambda: (setting, ranges(setting, operation, largest, cells(setting, operation))))[1]
    if not any(cell.bandwidth for cell in table):
        raise InputError(f"NCCL has no algorithm for {operation} here")

    def best(size: int) -> int:
        times = [(cell_time(setting, operation, cell, size), i) for i, cell in enumerate(table)]
        return min((time, i) for time, i in times if time is not None)[1]

    starts = {1, SMALLEST_CORRECTED * 2 ** len(TREE_CORRECTION[0])}
    starts |= {SMALLEST_CORRECTED << k for k in range(len(TREE_CORRECTION[0]))}
    starts.add(_plateau(setting))
    edges = sorted(start for start in starts if start <= largest)
    pieces: list[tuple[int, int, int]] = []
    for low, high in zip(edges, [edge - 1 for edge in edges[1:]] + [largest], strict=True):
        _split(low, high, best, pieces)
    merged: list[tuple[int, int, int]] = []
    for low, high, i in pieces:
        merged[-1:] = [(merged[-1][0], high, i)] if merged and merged[-1][2] == i else [*merged[-1:], (low, high, i)]
    return tuple(_described(setting, operation, table, low, high, table[i]) for low, high, i in merged)


def _plateau(setting: NcclSetting) -> int:
    """Size from which the latency of a ring on several nodes with Simple grows by a factor."""
    per_channel = model_of(setting.version).plateau_bytes
    if per_channel:
        return per_channel * setting.channels["ring"].n * setting.n_ranks
    return setting.n_ranks * 4096


def _is_corrected(setting: NcclSetting, cell: Cell) -> bool:
    """Whether a cell's rate dips at middle sizes: trees, and from 2.28 on NVLS trees of Blackwell on x86."""
    x86 = setting.cpu in ("intel", "amd") and model_of(setting.version).corrects_nvls_tree
    return cell.algorithm == "tree" or (cell.algorithm == "nvls_tree" and setting.gpu == "blackwell" and x86)


def _split(low: int, high: int, best: Callable[[int], int], pieces: list[tuple[int, int, int]]) -> None:
    """Add the pieces of an interval in which every cell is a line."""
    first, last = best(low), best(high)
    if first == last:
        pieces.append((low, high, first))
        return
    middle = (low + high) // 2
    _split(low, middle, best, pieces)
    _split(middle + 1, high, best, pieces)


def _described(
    setting: NcclSetting, operation: str, table: Sequence[Cell], low: int, high: int, cell: Cell
) -> SizeRange:
    middle = max(low, min(high, int((low * high) ** 0.5)))
    time = cell_time(setting, operation, cell, middle) or 0.0
    others = [(cell_time(setting, operation, other, middle), other) for other in table if other != cell]
    usable = sorted(((t, i) for i, (t, _) in enumerate(others) if t is not None))
    share = min(1.0, cell.latency / time) if time else 0.0
    if not usable:
        return SizeRange(low, high, cell, None, 1.0, share)
    return SizeRange(low, high, cell, others[usable[0][1]][1], usable[0][0] / time if time else 1.0, share)


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


def nvls_heads(setting: NcclSetting) -> int:
    """Return the GPUs of a machine that head a part with NVLink SHARP: as many as the search has channels for."""
    found = setting.channels["nvls"].n if "nvls" in setting.channels else 0
    return min(found or MAX_HEADS, MAX_HEADS, setting.n_ranks // setting.n_nodes)


def told_choice(setting: NcclSetting, operation: str, given: Collection[str]) -> str:
    """Describe what NCCL takes from which size on; what is given by name it does not choose."""
    if not {"algorithm", "protocol"}.isdisjoint(given):
        return "NCCL chooses what is not given, by its own estimate at each size"
    parts = [f"{size_range.cell.name} from {format_size(size_range.low)}" for size_range in ranges(setting, operation)]
    more = " (smaller sizes: commsim nccl)" if len(parts) > MAX_NAMED else ""
    return f"NCCL chooses {', '.join(parts[-MAX_NAMED:])}{more}"
