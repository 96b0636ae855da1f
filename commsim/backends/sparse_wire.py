"""Sparse messages as bytes: what each encoding of :mod:`commsim.sparse.encodings` puts on the wire.

A message is one array of bytes, whose length tells how many elements are in it. Both ends know from the schedule which
chunks it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.sparse import encodings
from commsim.sparse.encodings import INDEX_BYTES, Encoding

from .sparse_plan import Elements, Layout

Bytes: TypeAlias = NDArray[np.uint8]
Writer: TypeAlias = Callable[[Layout, Sequence[int], Elements], Bytes]
Reader: TypeAlias = Callable[[Layout, Sequence[int], Bytes], Elements]


def _octets(*arrays: NDArray[Any]) -> Bytes:
    return np.concatenate([np.ascontiguousarray(array).view(np.uint8) for array in arrays])


def _write_coo(layout: Layout, chunks: Sequence[int], elements: Elements) -> Bytes:  # noqa: ARG001
    index, value = elements
    return _octets(index.astype(np.uint32), value)


def _read_coo(layout: Layout, chunks: Sequence[int], message: Bytes) -> Elements:  # noqa: ARG001
    n = _whole(len(message), INDEX_BYTES + layout.dtype.itemsize)
    return message[: n * INDEX_BYTES].view(np.uint32).astype(np.int64), _values(message, n * INDEX_BYTES, layout)


def _write_dense(layout: Layout, chunks: Sequence[int], elements: Elements) -> Bytes:
    every = layout.elements(layout.blocks(chunks))
    out = np.zeros(len(every), layout.dtype)
    out[_places(every, elements[0], len(chunks) == 1)] = elements[1]
    return _octets(out)


def _read_dense(layout: Layout, chunks: Sequence[int], message: Bytes) -> Elements:
    every = layout.elements(layout.blocks(chunks))
    if len(message) != len(every) * layout.dtype.itemsize:
        raise BackendError(f"a dense message of {len(every)} elements came with {len(message)} bytes")
    # what is zero is left out again, lest a message that these elements are passed on in is longer than it need be
    value = message.view(layout.dtype)
    if layout.partition.block == 1:
        kept = value != 0
    else:
        block = every // layout.partition.block
        kept = np.isin(block, block[value != 0])
    return every[kept], value[kept]


def _write_blocks(layout: Layout, chunks: Sequence[int], elements: Elements) -> Bytes:  # noqa: ARG001
    block = elements[0] // layout.partition.block
    first = np.flatnonzero(np.diff(block, prepend=-1))
    return _octets(block[first].astype(np.uint32), elements[1])


def _read_blocks(layout: Layout, chunks: Sequence[int], message: Bytes) -> Elements:  # noqa: ARG001
    n = -(-len(message) // (INDEX_BYTES + layout.partition.block * layout.dtype.itemsize))  # the last may be short
    offsets = message[: n * INDEX_BYTES].view(np.uint32).astype(np.int64)
    return layout.elements(offsets), _values(message, n * INDEX_BYTES, layout)


def _write_bits(word: int) -> Writer:
    def write(layout: Layout, chunks: Sequence[int], elements: Elements) -> Bytes:
        every = layout.blocks(chunks)
        bits = np.zeros(-(-len(every) // (8 * word)) * 8 * word, np.bool_)
        block = elements[0] // layout.partition.block
        first = np.flatnonzero(np.diff(block, prepend=-1))
        bits[_places(every, block[first], len(chunks) == 1)] = True
        return _octets(np.packbits(bits, bitorder="little"), elements[1])

    return write


def _read_bits(word: int) -> Reader:
    def read(layout: Layout, chunks: Sequence[int], message: Bytes) -> Elements:
        every = layout.blocks(chunks)
        n_octets = -(-len(every) // (8 * word)) * word
        bits = np.unpackbits(message[:n_octets], bitorder="little", count=len(every)).view(np.bool_)
        return layout.elements(every[bits]), _values(message, n_octets, layout)

    return read


def _write_switching(layout: Layout, chunks: Sequence[int], elements: Elements) -> Bytes:
    listed = len(elements[0]) * (INDEX_BYTES + layout.dtype.itemsize)
    return (_write_coo if listed < layout.size(chunks) else _write_dense)(layout, chunks, elements)


def _read_switching(layout: Layout, chunks: Sequence[int], message: Bytes) -> Elements:
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
    """Where the wanted numbers stand in `every`, which has them all, and rises inside a chunk."""
    if rises:
        return np.searchsorted(every, wanted)
    order = np.argsort(every, kind="stable")
    return order[np.searchsorted(every[order], wanted)]


def _values(message: Bytes, begin: int, layout: Layout) -> NDArray[Any]:
    _whole(len(message) - begin, layout.dtype.itemsize)
    return np.frombuffer(message[begin:].tobytes(), layout.dtype)


def _whole(n_bytes: int, each: int) -> int:
    if n_bytes % each:
        raise BackendError(f"a message of {n_bytes} bytes is no whole number of elements of {each}")
    return n_bytes // each
