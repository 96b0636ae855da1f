"""The same non-zero elements, seen in blocks of another size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .bitmap import WORD
from .occupancy import Occupancy


def regrouped(occupancy: Occupancy, block: int) -> Occupancy:
    """Return what is not zero in blocks of another size, where every element of a non-zero block is not zero.

    Parameters
    ----------
    occupancy : Occupancy
        Which blocks are not zero; all elements of these count as such.
    block : int
        Elements of a block, at least 1. One that any non-zero element lies in is not zero.

    Returns
    -------
    Occupancy
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
    n_blocks = -(-occupancy.n_elements // block)
    octets = np.zeros((occupancy.n_ranks, -(-n_blocks // WORD) * 8), np.uint8)
    for rank in range(occupancy.n_ranks):
        packed = _packed(occupancy, rank, block)
        octets[rank, : len(packed)] = packed
    if n_blocks % 8:
        octets[:, n_blocks // 8] &= (1 << n_blocks % 8) - 1  # the last octet may reach beyond the last block
    words = octets.view("<u8").astype(np.uint64, copy=False)
    words.setflags(write=False)
    return Occupancy(occupancy.n_elements, block, words)


def _packed(occupancy: Occupancy, rank: int, block: int) -> NDArray[np.uint8]:
    """Bits of one rank's blocks of the other size, eight to an octet."""
    n_elements, present = occupancy.n_elements, occupancy.bitmap_of(rank)
    if occupancy.block % (8 * block) == 0:  # whole octets are alike: no array of all elements is needed
        n_octets = -(-n_elements // (8 * block))
        return np.repeat(present.view(np.uint8) * np.uint8(255), occupancy.block // (8 * block))[:n_octets]
    elements = np.repeat(present, occupancy.block)[:n_elements]
    if block > 1:
        elements = np.logical_or.reduceat(elements, np.arange(0, n_elements, block))
    return np.packbits(elements, bitorder="little")
