"""Occupancies of long tensors: their words are made piece by piece, and each time anew, since all take gigabytes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .bitmap import WORD
from .occupancy import Occupancy, unpacked

# Blocks that are looked at together, and elements that are regrouped at once.
PIECE = 2**20
# Words that are held, bytes: of more none are.
HELD = 2**26

# From the first block and the end of some, both of whole words if not of the tensor, to their words.
Make: TypeAlias = Callable[[int, int], NDArray[np.uint64]]


@dataclass(frozen=True, slots=True, eq=False)
class LongOccupancy:
    """Non-zero blocks of each rank's tensor, as :class:`.occupancy.Occupancy` without its words.

    Parameters
    ----------
    n_elements, block : int
        Elements of the tensor, and of a block.
    piece : callable
        Same as :meth:`.occupancy.Occupancy.piece`.
    counts : int64[n_ranks]
        Non-zero blocks of each rank.
    n_union : int
        Blocks that some rank has.
    """

    n_elements: int
    block: int
    piece: Make
    counts: NDArray[np.int64]
    n_union: int

    @property
    def n_ranks(self) -> int:
        """Ranks."""
        return len(self.counts)

    @property
    def n_blocks(self) -> int:
        """Blocks of the tensor."""
        return -(-self.n_elements // self.block)

    @property
    def density(self) -> NDArray[np.float64]:
        """Share of blocks that are not zero, float64[n_ranks]."""
        return self.counts / self.n_blocks


AnyOccupancy: TypeAlias = Occupancy | LongOccupancy


def make_occupancy(n_ranks: int, n_elements: int, block: int, make: Make) -> AnyOccupancy:
    """Return an occupancy with its words if these are few, else one that makes them when they are looked at.

    Parameters
    ----------
    n_ranks, n_elements, block : int
        Ranks, and elements of the tensor and of a block.
    make : callable
        Function that makes the words of some blocks.
    """
    n_blocks = -(-n_elements // block)
    if n_ranks * n_blocks <= 8 * HELD:
        words = np.empty((n_ranks, -(-n_blocks // WORD)), np.uint64)
        for first, stop in ranges_of(n_blocks):
            words[:, first // WORD : -(-stop // WORD)] = make(first, stop)
        words.setflags(write=False)
        return Occupancy(n_elements, block, words)
    counts, n_union = np.zeros(n_ranks, np.int64), 0
    for first, stop in ranges_of(n_blocks):
        words = make(first, stop)
        counts += np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        n_union += int(np.bitwise_count(np.bitwise_or.reduce(words, axis=0)).sum(dtype=np.int64))
    return LongOccupancy(n_elements, block, make, counts, n_union)


def ranges_of(n_blocks: int) -> Iterator[tuple[int, int]]:
    """Yield the first block and the end of each piece in which a tensor is looked at."""
    for first in range(0, n_blocks, PIECE):
        yield first, min(first + PIECE, n_blocks)


def pieces(occupancy: AnyOccupancy) -> Iterator[tuple[int, int, NDArray[np.uint64]]]:
    """Yield the first block, the end, and the words of each piece."""
    for first, stop in ranges_of(occupancy.n_blocks):
        yield first, stop, occupancy.piece(first, stop)


def with_words(occupancy: AnyOccupancy) -> Occupancy:
    """Return the occupancy with all of its words."""
    if isinstance(occupancy, Occupancy):
        return occupancy
    return Occupancy(occupancy.n_elements, occupancy.block, occupancy.piece(0, occupancy.n_blocks))


def regrouped(occupancy: AnyOccupancy, block: int) -> AnyOccupancy:
    """Return what is not zero in blocks of another size, where every element of a non-zero block is not zero.

    Parameters
    ----------
    occupancy : Occupancy or LongOccupancy
        Occupancy whose non-zero blocks hold no zero element.
    block : int
        Elements of a block, at least 1. One that any non-zero element lies in is not zero.

    Returns
    -------
    Occupancy or LongOccupancy
        Of the same elements.

    Raises
    ------
    InputError
        If `block` is not positive.
    """
    if block == occupancy.block:
        return occupancy
    if block < 1:
        raise InputError(f"a block has at least 1 element, got block={block}")
    make = functools.partial(_regrouped_piece, occupancy, block)
    return make_occupancy(occupancy.n_ranks, occupancy.n_elements, block, make)


def _regrouped_piece(occupancy: AnyOccupancy, block: int, first: int, stop: int) -> NDArray[np.uint64]:
    """Make the words of some blocks of the other size; elements are looked at in pieces."""
    octets = np.zeros((occupancy.n_ranks, -(-(stop - first) // WORD) * 8), np.uint8)
    step = max(1, PIECE // (8 * block)) * 8
    for at in range(first, stop, step):
        end = min(at + step, stop)
        part = octets[:, (at - first) // 8 : -(-(end - first) // 8)]
        _regroup(occupancy, block, at * block, min(end * block, occupancy.n_elements), part)
    if (stop - first) % 8:
        octets[:, (stop - first) // 8] &= (
            1 << (stop - first) % 8
        ) - 1  # the last octet may reach beyond the last block
    words = octets.view("<u8").astype(np.uint64, copy=False)
    words.setflags(write=False)
    return words


def _regroup(occupancy: AnyOccupancy, block: int, begin: int, end: int, octets: NDArray[np.uint8]) -> None:
    """Write the bits of the elements from `begin` to `end`, a block each, eight to an octet."""
    old = occupancy.block
    alike = old % (8 * block) == 0  # all bits of an octet
    unit = 8 * block if alike else math.gcd(old, block)
    low, high = begin // old, -(-end // old)
    first = low // WORD * WORD
    words = occupancy.piece(first, min(-(-high // WORD) * WORD, occupancy.n_blocks))
    lengths = np.diff(-(-(np.clip(np.arange(low, high + 1) * old, begin, end) - begin) // unit))
    for row, own in zip(octets, words, strict=True):
        units = unpacked(own, high - first)[low - first :]
        if old > unit:
            units = np.repeat(units, lengths)
        if alike:
            row[:] = units.view(np.uint8) * np.uint8(255)
            continue
        if block > unit:
            units = np.logical_or.reduceat(units, np.arange(0, len(units), block // unit))
        row[:] = np.packbits(units, bitorder="little")
