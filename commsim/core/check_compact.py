"""Check a collective whose schedule is too large to run: its rounds and maps as they are, small sizes in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .check import CheckReport, check
from .errors import ScheduleError
from .schedule import Block, Schedule

MOST_TRANSFERS = 50_000_000
MOST_ADDRESSES = 2**28


@dataclass(frozen=True, slots=True)
class CompactReport:
    """How a schedule that is too large to run was checked.

    Parameters
    ----------
    n_transfers : int
        Transfers of the large schedule, of which only the generating rounds were looked at.
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


def check_builder(build: Callable[..., Schedule], n_ranks: int, **parameters: Any) -> CheckReport | CompactReport:
    """Check what `build` makes for `n_ranks`: by running it when it is small enough, else by its rounds.

    A large one must have the blocks of three small ones of its kind (powers of two; other even numbers; odd numbers):
    as many, with the same steps of peers and chunks, and where every rank does the same, with the same offsets.
    Constructing the schedule has shown that all repetitions stay in range.

    Raises
    ------
    ScheduleError
        If the schedule, or one of the small ones, is wrong; or if it is not made of the rounds of the small ones.
    """
    schedule = build(n_ranks, **parameters)
    if schedule.n_transfers <= MOST_TRANSFERS and schedule.n_participants * schedule.n_addresses <= MOST_ADDRESSES:
        return check(schedule)
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


def _small_sizes(n_ranks: int) -> tuple[int, int, int]:
    if n_ranks & (n_ranks - 1) == 0:
        return 8, 16, 32
    return (9, 15, 33) if n_ranks % 2 else (10, 18, 30)


def _law(block: Block, schedule: Schedule) -> tuple[Any, ...]:
    """Say what a block does in terms that do not depend on the number of ranks."""
    body, n, k = block.body, schedule.n_ranks, schedule.n_chunks
    steps = (*(_signed(s, n) for s in block.step[:2]), *(_signed(s, k) for s in block.step[2:]))
    regular = len(body) == n and (body["src"] == np.arange(n)).all() and k == n
    offsets: Any = None
    if regular:
        offsets = tuple(
            sorted({_signed(int(v), n) for v in (body[field].astype(np.int64) - body["src"]) % n})
            for field in ("dst", "src_chunk", "dst_chunk")
        )
    return block.xor, block.first, steps, offsets


def _signed(value: int, modulus: int) -> int:
    value %= modulus
    return value - modulus if 2 * value > modulus else value
