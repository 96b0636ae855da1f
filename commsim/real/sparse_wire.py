"""Sparse messages as bytes: what each encoding of :mod:`commsim.sparse.encodings` puts on the wire.

A message is one array of bytes, whose length tells how many elements are in it. Both ends know from the schedule which
chunks it represents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError
from commsim.core.schedule import Schedule, Transfers
from commsim.sparse import encodings
from commsim.sparse.block_sets import UNLIMITED
from commsim.sparse.encodings import INDEX_BYTES, Encoding
from commsim.sparse.partition import Partition

from .plan import SEND, TransferStep

# Rising indices, and a value each.
Elements: TypeAlias = tuple[NDArray[np.int64], NDArray[Any]]
MAX_ELEMENTS = 2 ** (8 * INDEX_BYTES)
Bytes: TypeAlias = NDArray[np.uint8]


def chunks_of_messages(schedule: Schedule, transfers: Transfers) -> list[tuple[int, ...]]:
    """Find the chunks that each message represents: in scratch memory any chunk may lie anywhere."""
    held: dict[int, int] = {}
    for rank in range(schedule.n_ranks):
        held |= {rank * schedule.n_addresses + chunk: chunk for chunk in range(schedule.n_chunks)}
    read = (schedule.src_address(transfers) + transfers["src"].astype(np.int64) * schedule.n_addresses).tolist()
    write = (schedule.dst_address(transfers) + transfers["dst"].astype(np.int64) * schedule.n_addresses).tolist()
    counts, hop = transfers["count"].tolist(), transfers["hop"].tolist()
    per_message: list[tuple[int, ...]] = []
    written = 0
    for i in range(len(transfers) + 1):
        if i == len(transfers) or hop[i] != hop[written]:
            for j in range(written, i):
                held |= dict(zip(range(write[j], write[j] + counts[j]), per_message[j], strict=True))
            written = i
        if i < len(transfers):
            per_message.append(tuple(held[address] for address in range(read[i], read[i] + counts[i])))
    return per_message


def apart(chunks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cut a message that holds several lists of one chunk, which nothing could tell apart, into one for each."""
    return [chunks] if len(set(chunks)) == len(chunks) else [(chunk,) for chunk in chunks]


def last_writes(steps: list[TransferStep], limits: list[int]) -> list[int]:
    """Move each limit to the last step of its hop that writes the same place: what is cut is all that a hop wrote."""
    cuts = [UNLIMITED] * len(steps)
    last: dict[Any, int] = {(step.hop, step.dst.start): i for i, step in enumerate(steps) if step.kind != SEND}
    for step, limit in zip(steps, limits, strict=True):
        if step.kind != SEND:
            at = last[step.hop, step.dst.start]
            cuts[at] = min(cuts[at], limit)
    return cuts


@dataclass(slots=True)
class VectorLayout:
    """Where the chunks of a vector lie, and what its elements are.

    Parameters
    ----------
    partition : Partition
        How the vector is cut into chunks.
    dtype : dtype
        Data type of a value.

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


Writer: TypeAlias = Callable[[VectorLayout, Sequence[int], Elements], Bytes]
Reader: TypeAlias = Callable[[VectorLayout, Sequence[int], Bytes], Elements]


def _octets(*arrays: NDArray[Any]) -> Bytes:
    return np.concatenate([np.ascontiguousarray(array).view(np.uint8) for array in arrays])


def _write_coo(layout: VectorLayout, chunks: Sequence[int], elements: Elements) -> Bytes:  # noqa: ARG001
    index, value = elements
    return _octets(index.astype(np.uint32), value)


def _read_coo(layout: VectorLayout, chunks: Sequence[int], message: Bytes) -> Elements:  # noqa: ARG001
    n = _number_of_elements(len(message), INDEX_BYTES + layout.dtype.itemsize)
    return message[: n * INDEX_BYTES].view(np.uint32).astype(np.int64), _values(message, n * INDEX_BYTES, layout)


def _write_dense(layout: VectorLayout, chunks: Sequence[int], elements: Elements) -> Bytes:
    every = layout.elements(layout.blocks(chunks))
    out = np.zeros(len(every), layout.dtype)
    out[_places(every, elements[0], len(chunks) == 1)] = elements[1]
    return _octets(out)


def _read_dense(layout: VectorLayout, chunks: Sequence[int], message: Bytes) -> Elements:
    every = layout.elements(layout.blocks(chunks))
    if len(message) != len(every) * layout.dtype.itemsize:
        raise BackendError(f"a dense message of {len(every)} elements came with {len(message)} bytes")
    # what is zero is left out again, lest a message that these elements are passed on in is longer than it need be
    value = message.view(layout.dtype)
    if layout.partition.block == 1:
        not_zero = value != 0
    else:
        block = every // layout.partition.block
        not_zero = np.isin(block, block[value != 0])
    return every[not_zero], value[not_zero]


def _write_blocks(layout: VectorLayout, chunks: Sequence[int], elements: Elements) -> Bytes:  # noqa: ARG001
    block = elements[0] // layout.partition.block
    first = np.flatnonzero(np.diff(block, prepend=-1))
    return _octets(block[first].astype(np.uint32), elements[1])


def _read_blocks(layout: VectorLayout, chunks: Sequence[int], message: Bytes) -> Elements:  # noqa: ARG001
    n = -(-len(message) // (INDEX_BYTES + layout.partition.block * layout.dtype.itemsize))  # the last may be short
    offsets = message[: n * INDEX_BYTES].view(np.uint32).astype(np.int64)
    return layout.elements(offsets), _values(message, n * INDEX_BYTES, layout)


def _write_bits(word: int) -> Writer:
    def write(layout: VectorLayout, chunks: Sequence[int], elements: Elements) -> Bytes:
        every = layout.blocks(chunks)
        bits = np.zeros(-(-len(every) // (8 * word)) * 8 * word, np.bool_)
        block = elements[0] // layout.partition.block
        first = np.flatnonzero(np.diff(block, prepend=-1))
        bits[_places(every, block[first], len(chunks) == 1)] = True
        return _octets(np.packbits(bits, bitorder="little"), elements[1])

    return write


def _read_bits(word: int) -> Reader:
    def read(layout: VectorLayout, chunks: Sequence[int], message: Bytes) -> Elements:
        every = layout.blocks(chunks)
        n_octets = -(-len(every) // (8 * word)) * word
        bits = np.unpackbits(message[:n_octets], bitorder="little", count=len(every)).view(np.bool_)
        return layout.elements(every[bits]), _values(message, n_octets, layout)

    return read


def _write_switching(layout: VectorLayout, chunks: Sequence[int], elements: Elements) -> Bytes:
    listed = len(elements[0]) * (INDEX_BYTES + layout.dtype.itemsize)
    return (_write_coo if listed < layout.size(chunks) else _write_dense)(layout, chunks, elements)


def _read_switching(layout: VectorLayout, chunks: Sequence[int], message: Bytes) -> Elements:
    # a list is sent only when it is shorter than the dense message, so that the length tells which it is
    return (_read_coo if len(message) < layout.size(chunks) else _read_dense)(layout, chunks, message)


CODECS: dict[Encoding, tuple[Writer, Reader]] = {
    encodings.coo: (_write_coo, _read_coo),
    encodings.dense: (_write_dense, _read_dense),
    encodings.blocks: (_write_blocks, _read_blocks),
    encodings.bitmap: (_write_bits(1), _read_bits(1)),
    encodings.hash_bitmap: (_write_bits(4), _read_bits(4)),
    encodings.ENCODINGS["switching"]: (_write_switching, _read_switching),
}


def codec(encoding: Encoding) -> tuple[Writer, Reader]:
    """Return how an encoding is written and read.

    Raises
    ------
    BackendError
        If it only counts bytes.
    """
    if encoding not in CODECS:
        raise BackendError(f"the encoding {getattr(encoding, '__name__', encoding)} counts bytes, and cannot be sent")
    return CODECS[encoding]


def _places(every: NDArray[np.int64], wanted: NDArray[np.int64], rises: bool) -> NDArray[np.intp]:
    """Positions of the wanted numbers in `every`, which has them all, and rises inside a chunk."""
    if rises:
        return np.searchsorted(every, wanted)
    order = np.argsort(every, kind="stable")
    return order[np.searchsorted(every[order], wanted)]


def _values(message: Bytes, begin: int, layout: VectorLayout) -> NDArray[Any]:
    _number_of_elements(len(message) - begin, layout.dtype.itemsize)
    return np.frombuffer(message[begin:].tobytes(), layout.dtype)


def _number_of_elements(n_bytes: int, each: int) -> int:
    if n_bytes % each:
        raise BackendError(f"a message of {n_bytes} bytes is no whole number of elements of {each}")
    return n_bytes // each
