"""Encodings: how many bytes a message takes for the non-zero blocks that are in it.

An encoding is a function of the contents of messages; users may write their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.value import Value

# Of one index, and of one offset of a block: both papers' and implementations' choice.
INDEX_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Contents(Value):
    """What is in each message of a schedule.

    Parameters
    ----------
    blocks, elements : int64[n]
        Non-zero blocks, and the elements in them.
    all_blocks, all_elements : int64[n]
        Blocks and elements of the chunks that the message represents, zero or not.
    reduces : bool[n]
        Whether it is added on arrival, or copied.
    value_bytes : int
        Bytes of one element's value.
    """

    blocks: NDArray[np.int64]
    elements: NDArray[np.int64]
    all_blocks: NDArray[np.int64]
    all_elements: NDArray[np.int64]
    reduces: NDArray[np.bool_]
    value_bytes: int = 4

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, which: Any) -> Contents:
        """Return the contents of some messages: a slice, indices, or a mask."""
        return Contents(
            self.blocks[which],
            self.elements[which],
            self.all_blocks[which],
            self.all_elements[which],
            self.reduces[which],
            self.value_bytes,
        )


# From the contents of n messages to float64[n], their bytes.
Encoding: TypeAlias = Callable[[Contents], NDArray[np.float64]]


def dense(contents: Contents) -> NDArray[np.float64]:
    """All values, zero or not: ``v * all_elements`` bytes."""
    return (contents.all_elements * contents.value_bytes).astype(np.float64)


def coo(contents: Contents) -> NDArray[np.float64]:
    """Index and value of each element, as lists of coordinates do: ``(4 + v) * elements`` bytes."""
    return (contents.elements * (INDEX_BYTES + contents.value_bytes)).astype(np.float64)


def blocks(contents: Contents) -> NDArray[np.float64]:
    """Values of the non-zero blocks, and with each the offset of the next: ``v * elements + 4 * blocks`` bytes.

    References
    ----------
    Fei et al. (OmniReduce), SIGCOMM 2021.
    """
    return (contents.elements * contents.value_bytes + INDEX_BYTES * contents.blocks).astype(np.float64)


def bitmap(contents: Contents) -> NDArray[np.float64]:
    """Values of the non-zero blocks behind one bit per block: ``v * elements + ceil(all_blocks / 8)`` bytes."""
    return (contents.elements * contents.value_bytes - (-contents.all_blocks // 8)).astype(np.float64)


def hash_bitmap(contents: Contents) -> NDArray[np.float64]:
    """Values behind one bit per block of a hashed class, in whole words: ``v * elements + 4 * ceil(all_blocks / 32)``.

    The bits of n classes together take as many words as the whole tensor's bitmap, ``|G|`` / 32.

    References
    ----------
    Wang et al., "ZEN: Empowering distributed training with sparsity-driven data synchronization", OSDI 2025, the hash
    bitmap.
    """
    return (contents.elements * contents.value_bytes - 4 * (-contents.all_blocks // 32)).astype(np.float64)


def switching(sparse: Encoding = coo) -> Encoding:
    """Return the encoding that takes the smaller of `sparse` and dense, message by message.

    With 4-byte indices and values the switch is at half of the elements, SparCML's delta.

    References
    ----------
    Renggli et al., "SparCML: High-performance sparse communication for machine learning", SC 2019.
    """
    return functools.partial(_smaller, sparse)


def _smaller(sparse: Encoding, contents: Contents) -> NDArray[np.float64]:
    return np.minimum(sparse(contents), dense(contents))


def by_phase(reducing: Encoding, copying: Encoding) -> Encoding:
    """Return the encoding that takes one for messages that are added on arrival, and another for those copied.

    SparCML's DSAR is ``by_phase(coo, dense)``, balanced parallelism by hashing ``by_phase(coo, hash_bitmap)``.
    """
    return functools.partial(_either, reducing, copying)


def _either(reducing: Encoding, copying: Encoding, contents: Contents) -> NDArray[np.float64]:
    out = np.empty(len(contents))
    out[contents.reduces] = reducing(contents[contents.reduces])
    out[~contents.reduces] = copying(contents[~contents.reduces])
    return out


ENCODINGS: dict[str, Encoding] = {
    "dense": dense,
    "coo": coo,
    "blocks": blocks,
    "bitmap": bitmap,
    "hash_bitmap": hash_bitmap,
    "switching": switching(),
}
