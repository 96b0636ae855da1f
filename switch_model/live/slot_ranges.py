"""Which slots of the pool are free, and which of them a new job gets."""

from __future__ import annotations

from collections.abc import Iterable

from commsim.core.errors import InputError

DEFAULT_SLOTS = 128


def free_ranges(ranges: Iterable[tuple[int, int]], pool_size: int) -> list[tuple[int, int]]:
    """Return what lies between the ranges that are taken, each as (first slot, number of slots)."""
    free, begin = [], 0
    for first, n in sorted(ranges):
        if first > begin:
            free.append((begin, first - begin))
        begin = first + n
    return free if begin == pool_size else [*free, (begin, pool_size - begin)]


def first_fit(ranges: Iterable[tuple[int, int]], pool_size: int, wanted: int | None) -> tuple[int, int]:
    """Choose slots for a job.

    Parameters
    ----------
    ranges : iterable of (int, int)
        First slot and number of slots of each job.
    pool_size : int
        Slots of the switch.
    wanted : int, optional
        Slots asked for; otherwise DEFAULT_SLOTS, or what is left if that is less.

    Returns
    -------
    first, n : int

    Raises
    ------
    InputError
        If no free range is large enough; the message says what would fit.
    """
    free = free_ranges(ranges, pool_size)
    largest = max((n for _, n in free), default=0)
    n = min(DEFAULT_SLOTS, largest) if wanted is None else wanted
    if n < 1 or n > largest:
        room = f"at most {largest} fit" if largest else "all are taken, until a job ends"
        raise InputError(f"{n or 1} slots do not fit in what is free of {pool_size}: {room}")
    return next((first, n) for first, size in free if size >= n)
