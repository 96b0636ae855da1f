"""What NCCL takes at which size: of its tuning table the fastest that release, network and user leave to it.

No size is written here: where the choice changes follows from the constants of a release in ``model_versions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.core.cache import Cache
from commsim.core.errors import InputError
from commsim.core.units import format_size

from .gpu_costs import GpuCosts, costs
from .model_versions import SMALLEST_CORRECTED, TREE_CORRECTION
from .nccl_setting import PROTOCOLS, NcclSetting
from .tuning_table import Cell, cell_time, cells, plateau

if TYPE_CHECKING:
    from .site import Site

LARGEST = 2**40
# Ranges of sizes that a remark names.
MAX_NAMED = 6
# First release with a tuner, LL128, and NCCL_PROTO, by which plugins force a protocol; and bytes for each rank and
# channel up to which a release before it takes LL: 64 for each of 256 threads (2.4, src/include/core.h).
FIRST_TUNED, LL_LIMIT = (2, 5), 64 * 256
# Releases that do not use LL128 on Blackwell: first and last. Ours, from tables of 2.27.5 and 2.29.7 that use it, and
# of 2.29.2 that do not; NCCL's notes do not say it.
NO_LL128_ON_BLACKWELL = ((2, 28), (2, 29, 2))

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


def chosen_cell(
    site: Site, operation: str, size: int, algorithm: str = "", protocol: str = "", known: GpuCosts | None = None
) -> Cell:
    """Return what NCCL takes at a size.

    Parameters
    ----------
    site : Site
        Site of the communicator.
    operation : str
        One that NCCL chooses an algorithm for.
    size : int, bytes
        Size of the whole array.
    algorithm, protocol : str
        Forced (``NCCL_ALGO``, ``NCCL_PROTO``); empty: NCCL's choice.
    known : GpuCosts, optional
        Constants (default: those of this version).

    Raises
    ------
    InputError
        If nothing is left of what is forced.
    """
    allowed = usable_protocols(site, known or costs())
    if site.version < FIRST_TUNED:
        is_small = size <= LL_LIMIT * site.setting.n_ranks * site.max_channels
        allowed = ("ll",) if is_small else ("simple",)
    algorithms = (algorithm,) if algorithm else (known or costs()).algorithms_over(site.network)
    left = (
        cell for cell in cells(site.setting, operation)
        if cell.algorithm in algorithms and (cell.protocol == protocol if protocol else cell.protocol in allowed)
    )  # fmt: skip
    best = fastest(site.setting, operation, left, size)
    if best is None:
        raise InputError(f"NCCL has no {operation} with {algorithm or 'any'}/{protocol or 'any'} here")
    return best


def usable_protocols(site: Site | None, known: GpuCosts) -> tuple[str, ...]:
    """Return the protocols that a network and a release leave to NCCL; all where the site is not known."""
    if site is None:
        return tuple(PROTOCOLS)
    if site.version < FIRST_TUNED:
        return "ll", "simple"
    allowed = known.of_network(site.network).protocols if site.network in known.plugins else tuple(PROTOCOLS)
    first, last = NO_LL128_ON_BLACKWELL
    if site.setting.gpu == "blackwell" and first <= site.version <= last:
        return tuple(name for name in allowed if name != "ll128")
    return allowed


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
    starts.add(plateau(setting))
    edges = sorted(start for start in starts if start <= largest)
    pieces: list[tuple[int, int, int]] = []
    for low, high in zip(edges, [edge - 1 for edge in edges[1:]] + [largest], strict=True):
        _split(low, high, best, pieces)
    merged: list[tuple[int, int, int]] = []
    for low, high, i in pieces:
        merged[-1:] = [(merged[-1][0], high, i)] if merged and merged[-1][2] == i else [*merged[-1:], (low, high, i)]
    return tuple(_described(setting, operation, table, low, high, table[i]) for low, high, i in merged)


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


def told_choice(setting: NcclSetting, operation: str, given: Collection[str]) -> str:
    """Describe what NCCL takes from which size on; what is given by name it does not choose."""
    if not {"algorithm", "protocol"}.isdisjoint(given):
        return "NCCL chooses what is not given, by its own estimate at each size"
    parts = [f"{size_range.cell.name} from {format_size(size_range.low)}" for size_range in ranges(setting, operation)]
    more = " (smaller sizes: commsim nccl)" if len(parts) > MAX_NAMED else ""
    return f"NCCL chooses {', '.join(parts[-MAX_NAMED:])}{more}"
