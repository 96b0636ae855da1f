"""What one rank must know of a schedule's messages to play its part on sparse vectors.

Where the elements of a sparse vector lie when it is cut into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule, Transfers
from commsim.sparse.encodings import INDEX_BYTES
from commsim.sparse.partition import Partition
from commsim.sparse.propagate import UNLIMITED

from .plan import SEND, Step


def chunks_of_messages(schedule: Schedule, transfers: Transfers) -> list[tuple[int, ...]]:
    """Find the chunks that each message stands for: in scratch memory any chunk may lie anywhere."""
    held: dict[int, int] = {}
    for rank in range(schedule.n_ranks):
        held |= {rank * schedule.n_addresses + chunk: chunk for chunk in range(schedule.n_chunks)}
    read = (schedule.src_address(transfers) + transfers["src"].astype(np.int64) * schedule.n_addresses).tolist()
    write = (schedule.dst_address(transfers) + transfers["dst"].astype(np.int64) * schedule.n_addresses).tolist()
    counts, hop = transfers["count"].tolist(), transfers["hop"].tolist()
    found: list[tuple[int, ...]] = []
    written = 0
    for i in range(len(transfers) + 1):
        if i == len(transfers) or hop[i] != hop[written]:
            for j in range(written, i):
                held |= dict(zip(range(write[j], write[j] + counts[j]), found[j], strict=True))
            written = i
        if i < len(transfers):
            found.append(tuple(held[address] for address in range(read[i], read[i] + counts[i])))
    return found


def apart(chunks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cut a message that holds several lists of one chunk, which nothing could tell apart, into one for each."""
    return [chunks] if len(set(chunks)) == len(chunks) else [(chunk,) for chunk in chunks]


def last_writes(steps: list[Step], limits: list[int]) -> list[int]:
    """Move each limit to the last step of its hop that writes the same place: what is cut is all that a hop wrote."""
    cuts = [UNLIMITED] * len(steps)
    last: dict[Any, int] = {(step.hop, step.dst.start): i for i, step in enumerate(steps) if step.kind != SEND}
    for step, limit in zip(steps, limits, strict=True):
        if step.kind != SEND:
            at = last[step.hop, step.dst.start]
            cuts[at] = min(cuts[at], limit)
    return cuts


Elements: TypeAlias = tuple[NDArray[np.int64], NDArray[Any]]
"""Rising indices, and a value each."""
MAX_ELEMENTS = 2 ** (8 * INDEX_BYTES)


@dataclass(slots=True)
class Layout:
    """Where the chunks of a vector lie, and what its elements are.

    Parameters
    ----------
    partition : Partition
        How the vector is cut into chunks.
    dtype : dtype
        Of a value.

    Raises
    ------
    InputError
        If an index of 4 bytes does not reach the last element.
    """

    partition: Partition
    dtype: np.dtype[Any]
    _order: NDArray[np.int64] | None = None
    _chunk_of: NDArray[np.int32] | None = None
    _bounds: NDArray[np.int64] = field(init=False)
    _sizes: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        n = self.partition.n_elements
        if n > MAX_ELEMENTS:
            raise InputError(f"indices of {INDEX_BYTES} bytes reach {MAX_ELEMENTS} elements, got {n}")
        if self.partition.hashed:
            self._chunk_of = self.partition.chunk_of_blocks()
            self._order = np.argsort(self._chunk_of, kind="stable")
        self._sizes = self.partition.element_sizes()
        self._bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.partition.sizes())))

    def blocks(self, chunks: Sequence[int]) -> NDArray[np.int64]:
        """Return the blocks of some chunks, chunk by chunk and rising in each."""
        runs = [(int(self._bounds[chunk]), int(self._bounds[chunk + 1])) for chunk in chunks]
        parts = [np.arange(*run) if self._order is None else self._order[slice(*run)] for run in runs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def size(self, chunks: Sequence[int]) -> int:
        """Return the bytes of all values of some chunks."""
        return int(self._sizes[list(chunks)].sum()) * self.dtype.itemsize

    def elements(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the elements of some blocks, in their order."""
        if self.partition.block == 1:
            return blocks
        within = blocks[:, np.newaxis] * self.partition.block + np.arange(self.partition.block)
        return within[within < self.partition.n_elements]

    def split(self, elements: Elements, chunks: Sequence[int]) -> list[Elements]:
        """Split elements by chunk."""
        if len(chunks) == 1:
            return [elements]
        index, value = elements
        block = index // self.partition.block
        if self._chunk_of is None:
            chunk = np.searchsorted(self._bounds, block, side="right") - 1
        else:
            chunk = self._chunk_of[block].astype(np.int64)
        order = np.argsort(chunk, kind="stable")
        ends = np.searchsorted(chunk[order], np.asarray(chunks)[:, np.newaxis] + np.arange(2))
        return [(index[order[a:b]], value[order[a:b]]) for a, b in ends.tolist()]
