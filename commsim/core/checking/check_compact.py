"""Check a collective whose schedule is too large to run whole.

Either a few of its chunks are followed through all of its transfers, or, where even these are too many, its generating
rounds and maps are compared with those of small sizes that are proved in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.errors import ScheduleError
from commsim.core.schedule import Block, Schedule, Transfers

from .check import CheckReport, check

MAX_TRANSFERS = 50_000_000
MAX_ADDRESSES = 2**28
# What an operation is for one chunk, and whether the chunk's home is the root of that.
OF_ONE_CHUNK = {
    "all_reduce": ("all_reduce", False),
    "reduce": ("reduce", False),
    "broadcast": ("broadcast", False),
    "reduce_scatter": ("reduce", True),
    "all_gather": ("broadcast", True),
}


@dataclass(frozen=True, slots=True)
class CompactReport:
    """How a schedule that is too large to run was checked.

    Parameters
    ----------
    n_transfers : int
        Transfers of the large schedule; only the generating rounds were looked at.
    sizes : tuple of int
        Numbers of ranks at which the same collective was proved in full.
    """

    n_transfers: int
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"{self.n_transfers} transfers: generating rounds and maps are as at {', '.join(map(str, self.sizes))} "
            "ranks, where it is proved correct in full"
        )


@dataclass(frozen=True, slots=True)
class SampleReport:
    """How a schedule with too many addresses was checked.

    Parameters
    ----------
    n_transfers : int
        Transfers of the schedule, all looked at.
    chunks : tuple of int
        The chunks that were followed at every rank: the first, the last, and some drawn at random.
    failure_probability : float
        Bound on the probability that one of these chunks is wrong all the same.
    """

    n_transfers: int
    chunks: tuple[int, ...]
    failure_probability: float

    def __str__(self) -> str:
        chunks = ", ".join(map(str, self.chunks))
        return (
            f"chunks {chunks} are correct at every rank after {self.n_transfers} transfers; the others are not followed"
        )


def check_builder(
    build: Callable[..., Schedule], n_ranks: int, **parameters: Any
) -> CheckReport | SampleReport | CompactReport:
    """Check what `build` makes for `n_ranks`: by running it when it is small enough, else as far as can be.

    One with few transfers but many addresses is followed for some chunks. A larger one must have the blocks of three
    small ones of its kind (powers of two; other even numbers; odd numbers): as many, with the same steps of peers and
    chunks, and where every rank does the same, with the same offsets. Constructing the schedule has shown that all
    repetitions stay in range.

    Raises
    ------
    ScheduleError
        If the schedule, or one of the small ones, is wrong; or if it is not made of the rounds of the small ones.
    """
    schedule = build(n_ranks, **parameters)
    if schedule.n_transfers <= MAX_TRANSFERS:
        if schedule.n_participants * schedule.n_addresses <= MAX_ADDRESSES:
            return check(schedule)
        if schedule.operation in OF_ONE_CHUNK:
            return check_sample(schedule)
    sizes = _small_sizes(n_ranks)
    for size in sizes:
        small = build(size, **parameters)
        check(small)
        laws, small_laws = ([_law(b, s) for b in s.blocks] for s in (schedule, small))
        if laws != small_laws:
            raise ScheduleError(
                f"{schedule.name}: {schedule.n_transfers} transfers are too many to run, and its rounds at {n_ranks} "
                f"ranks are not those at {size}, which could be checked instead"
            )
    return CompactReport(schedule.n_transfers, sizes)


def check_sample(schedule: Schedule, n_samples: int = 4, seed: int = 0) -> SampleReport:
    """Follow some chunks through the whole schedule: the first, the last, and `n_samples` drawn at random.

    What happens to a chunk does not depend on the others as long as every transfer keeps chunks in their places,
    so the schedule of one chunk is proved by itself.

    Parameters
    ----------
    schedule : Schedule
        Schedule in place; every transfer keeps chunks in their places.
    n_samples : int
        Chunks drawn beside the first and the last.
    seed : int
        Seed of the draw and of the fingerprints.

    Raises
    ------
    ScheduleError
        If a followed chunk ends wrong, or a transfer moves chunks to other places.
    """
    transfers = schedule.expand()
    if not schedule.in_place or (transfers["src_chunk"] != transfers["dst_chunk"]).any():
        raise ScheduleError(f"{schedule.name}: a chunk changes its place; it cannot be followed by itself")
    k = schedule.n_chunks
    drawn = np.random.default_rng(seed).integers(0, k, n_samples).tolist()
    chunks = tuple(dict.fromkeys((0, k - 1, *drawn)))
    chance = sum(_check_chunk(schedule, transfers, chunk, seed).failure_probability for chunk in chunks)
    return SampleReport(schedule.n_transfers, chunks, chance)


def _check_chunk(schedule: Schedule, transfers: Transfers, chunk: int, seed: int) -> CheckReport:
    """Prove the schedule of one chunk: of an operation that has no home, since a home is a root for its chunk."""
    first = transfers["src_chunk"]
    body = transfers[(first <= chunk) & (chunk < first + transfers["count"])]
    body["src_chunk"] = body["dst_chunk"] = 0
    body["count"] = 1
    operation, at_home = OF_ONE_CHUNK[schedule.operation]
    root = chunk * schedule.n_ranks // schedule.n_chunks if at_home else schedule.root
    block = Block(body, schedule.n_hops, sum(b.n_fences * b.times for b in schedule.blocks))
    name = f"{schedule.name}, chunk {chunk}"
    return check(Schedule(name, operation, schedule.n_ranks, schedule.n_helpers, 1, 0, (block,), root), seed)


def _small_sizes(n_ranks: int) -> tuple[int, int, int]:
    if n_ranks & (n_ranks - 1) == 0:
        return 8, 16, 32
    return (9, 15, 33) if n_ranks % 2 else (10, 18, 30)


def _law(block: Block, schedule: Schedule) -> tuple[Any, ...]:
    """Describe a block in terms that do not depend on the number of ranks."""
    body, n, k = block.body, schedule.n_ranks, schedule.n_chunks
    steps = (*(_signed(s, n) for s in block.step[:2]), *(_signed(s, k) for s in block.step[2:]))
    regular = len(body) == n and (body["src"] == np.arange(n)).all() and k == n
    offsets: Any = None
    if regular:
        offsets = tuple(
            sorted({_signed(int(v), n) for v in (body[field].astype(np.int64) - body["src"]) % n})
            for field in ("dst", "src_chunk", "dst_chunk")
        )
    # Orders of chunks are of one number of ranks: such blocks are never those of another one.
    orders = None if block.orders is None else (n, block.orders.parts.tobytes())
    return block.xor, block.first, steps, offsets, orders


def _signed(value: int, modulus: int) -> int:
    value %= modulus
    return value - modulus if 2 * value > modulus else value
