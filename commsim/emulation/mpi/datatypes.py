"""Datatypes of MPI that are types of NumPy, and what a call says of its memory: buffer, counts, displacements, type."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .constants import IN_PLACE, MPIError
from .refusals import Refusing

__all__ = ["DATATYPES", "CallBuffer", "Datatype", "memory_of", "plain_bytes"]


class Basic(Refusing):
    """Metaclass of datatypes: there are only basic ones."""

    WHY = ": only basic datatypes"


@dataclass(frozen=True)
class Datatype(metaclass=Basic):
    """A basic datatype.

    Parameters
    ----------
    name : str
        MPI's name, without ``MPI_``.
    dtype : dtype
        NumPy's.
    """

    name: str
    dtype: np.dtype[Any]

    def Get_size(self) -> int:  # noqa: N802
        """Return the bytes of an element."""
        return self.dtype.itemsize

    def Get_extent(self) -> tuple[int, int]:  # noqa: N802
        """Return the lower bound and the extent, in bytes."""
        return 0, self.dtype.itemsize

    def Get_name(self) -> str:  # noqa: N802
        """Return MPI's name."""
        return f"MPI_{self.name}"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    extent = size

    def Commit(self) -> Datatype:  # noqa: N802
        """Return the type: a basic one is ready."""
        return self

    def Free(self) -> None:  # noqa: N802
        """Do nothing: a basic type stays."""

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """Return the type of NumPy's code."""
        return _datatype(code)

    def tocode(self) -> str:
        """Return NumPy's code."""
        return self.dtype.char


DATATYPES = {
    name: Datatype(name, np.dtype(code))
    for name, code in {
        "BYTE": "u1", "PACKED": "u1", "CHAR": "S1", "SIGNED_CHAR": "i1", "UNSIGNED_CHAR": "u1", "C_BOOL": "?",
        "CXX_BOOL": "?", "BOOL": "?", "SHORT": "i2", "UNSIGNED_SHORT": "u2", "INT": "i4", "UNSIGNED": "u4",
        "UNSIGNED_INT": "u4", "LONG": "i8", "UNSIGNED_LONG": "u8", "LONG_LONG": "i8", "UNSIGNED_LONG_LONG": "u8",
        "FLOAT": "f4", "DOUBLE": "f8", "LONG_DOUBLE": "g", "INT8_T": "i1", "INT16_T": "i2", "INT32_T": "i4",
        "INT64_T": "i8", "UINT8_T": "u1", "UINT16_T": "u2", "UINT32_T": "u4", "UINT64_T": "u8", "INTEGER": "i4",
        "REAL": "f4", "DOUBLE_PRECISION": "f8", "COMPLEX": "c8", "DOUBLE_COMPLEX": "c16", "C_COMPLEX": "c8",
        "C_FLOAT_COMPLEX": "c8", "C_DOUBLE_COMPLEX": "c16", "AINT": "i8", "OFFSET": "i8", "COUNT": "i8",
    }.items()
}  # fmt: skip
_OF_DTYPE = {one.dtype: one for one in reversed(DATATYPES.values())}
_BY_CODE: dict[str, Datatype] = {one.dtype.char: one for one in reversed(DATATYPES.values())}


@dataclass(slots=True)
class CallBuffer:
    """Memory that a call sends or receives.

    Parameters
    ----------
    values : array
        All of it, in elements of the type.
    counts, displacements : sequence of int
        Elements of each block, and where each begins.
    datatype : Datatype
        The type.
    """

    values: NDArray[Any]
    counts: Sequence[int]
    displacements: Sequence[int]
    datatype: Datatype
    n_elements: int

    @property
    def n_bytes(self) -> int:
        """Bytes of all blocks."""
        return self.n_elements * self.datatype.size

    def block(self, number: int) -> NDArray[Any]:
        """Return one block, not copied."""
        begin = self.displacements[number]
        return self.values[begin : begin + self.counts[number]]

    @property
    def whole(self) -> NDArray[Any]:
        """All blocks, where they are one behind the other."""
        return self.values[self.displacements[0] : self.displacements[0] + self.n_elements]

    def put(self, number: int, data: Any) -> None:
        """Write what was received into a block; nothing where no data is moved."""
        if data is None:
            return
        arrived = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.view(np.uint8)
        block = self.block(number).view(np.uint8)
        if len(arrived) > len(block):
            raise MPIError(14, f"message truncated: {len(arrived)} bytes for a buffer of {len(block)}")
        if not block.flags.writeable:
            raise MPIError(15, "the buffer of a receive is read-only")
        block[: len(arrived)] = arrived


def plain_bytes(spec: Any) -> memoryview | None:
    """Return the bytes of a message's memory, not copied, for the commonest calls; None: :func:`memory_of` reads it.

    Parameters
    ----------
    spec : object
        A buffer, or ``[buffer, count, datatype]``.
    """
    count = None
    if type(spec) is list or type(spec) is tuple:
        if len(spec) != 3 or type(spec[1]) is not int or type(spec[2]) is not Datatype:
            return None
        spec, count = spec[0], spec[1] * spec[2].dtype.itemsize
    try:
        view = memoryview(spec).cast("B")
    except (TypeError, ValueError):
        return None
    if count is None:
        return view
    return view[:count] if 0 <= count <= view.nbytes else None


def memory_of(spec: Any, n_blocks: int = 1, *, of_one: bool = False, vector: bool = False) -> CallBuffer:
    """Read what a call was given: a buffer, or a list of it with counts, displacements and datatype.

    Parameters
    ----------
    spec : object
        As mpi4py takes it.
    n_blocks : int
        Blocks that the memory has: as many as ranks, or 1.
    of_one : bool
        Whether a count that is given is that of one block.
    vector : bool
        Whether blocks may be unequal.

    Raises
    ------
    MPIError
        If it is none that NumPy knows, or too short.
    """
    parts = list(spec) if isinstance(spec, (list, tuple)) else [spec]
    buffer, *rest = parts
    datatype: Datatype | None = None
    if rest and isinstance(rest[-1], (Datatype, str, np.dtype, type)):
        datatype = _datatype(rest.pop())
    counts: Any = None
    displacements: Any = None
    if rest:
        counts = rest.pop(0)
        if rest:
            displacements = rest.pop(0)
        elif _has_places(counts, is_one=n_blocks == 1 and not vector):
            counts, displacements = counts
    values, found = _values(buffer)
    datatype = datatype or found
    values = values.view(np.uint8)
    n = len(values) // datatype.size
    values = values[: n * datatype.size].view(datatype.dtype)
    even: int | None = None
    listed: Sequence[int]
    places: Sequence[int]
    if counts is None:
        even, more = n // n_blocks, n % n_blocks if vector else 0
        listed = [even + (k < more) for k in range(n_blocks)] if more else ()
        even = None if more else even
    elif isinstance(counts, (int, np.integer)):
        even, listed = int(counts) if of_one else int(counts) // n_blocks, ()
    else:
        listed = [int(count) for count in counts]
    if even is not None and displacements is None:  # what most calls have, of many ranks
        if even * n_blocks > n:
            raise _too_short(n, datatype, even * n_blocks)
        return CallBuffer(values, *_equal_blocks(even, n_blocks), datatype, even * n_blocks)
    if even is not None:
        listed = (even,) * n_blocks
    if displacements is None:
        places = [*itertools.accumulate(listed[:-1], initial=0)] if listed else []
    elif isinstance(displacements, (int, np.integer)):
        places = [int(displacements)] + [0] * (len(listed) - 1)
    else:
        places = [int(place) for place in displacements]
    if len(listed) != n_blocks or len(places) != n_blocks:
        raise MPIError(2, f"{n_blocks} counts and displacements are needed, got {len(listed)} and {len(places)}")
    end = max((place + count for place, count in zip(places, listed, strict=True)), default=0)
    if end > n:
        raise _too_short(n, datatype, end)
    return CallBuffer(values, listed, places, datatype, sum(listed))


def _has_places(counts: Any, *, is_one: bool) -> bool:
    """Whether it is counts and displacements; of two numbers, where they cannot be the counts of two blocks."""
    return (
        isinstance(counts, (tuple, list))
        and len(counts) == 2
        and (is_one or isinstance(counts[0], (tuple, list, np.ndarray)))
    )


@functools.lru_cache(maxsize=1024)
def _equal_blocks(count: int, n_blocks: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return counts and displacements of equal blocks, one behind the other."""
    return (count,) * n_blocks, tuple(count * k for k in range(n_blocks))


def _too_short(n: int, datatype: Datatype, needed: int) -> MPIError:
    return MPIError(1, f"the buffer has {n} elements of {datatype.name}, and {needed} are needed")


def is_in_place(spec: Any) -> bool:
    """Whether a call was given ``MPI.IN_PLACE``."""
    return spec is IN_PLACE


def _datatype(value: Any) -> Datatype:
    if isinstance(value, Datatype):
        return value
    name = value.removeprefix("MPI_") if isinstance(value, str) else ""
    if name in DATATYPES:
        return DATATYPES[name]
    if isinstance(value, str) and value in _BY_CODE:
        return _BY_CODE[value]
    return _of_dtype(np.dtype(value))


def _of_dtype(dtype: np.dtype[Any]) -> Datatype:
    return _OF_DTYPE.get(dtype) or Datatype(str(dtype), dtype)


def _values(buffer: Any) -> tuple[NDArray[Any], Datatype]:
    """Return memory as an array in one dimension, not copied, and its type."""
    if buffer is None:
        return np.empty(0, np.uint8), DATATYPES["BYTE"]
    if isinstance(buffer, np.ndarray):
        if buffer.flags.c_contiguous:
            return buffer.reshape(-1), _of_dtype(buffer.dtype)
        if buffer.flags.f_contiguous:
            return buffer.reshape(-1, order="F"), _of_dtype(buffer.dtype)
        raise MPIError(1, "the array is not contiguous")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise MPIError(1, f"{type(buffer).__name__} is no buffer; upper-case calls take arrays and bytes") from None
    code = view.format
    known = _BY_CODE[code] if code in _BY_CODE else DATATYPES["BYTE"]
    if known.dtype.itemsize != view.itemsize:
        known = DATATYPES["BYTE"]
    return np.frombuffer(view, np.uint8).view(known.dtype) if view.nbytes else np.empty(0, known.dtype), known


def counts_in_bytes(memory: CallBuffer) -> tuple[int, ...]:
    """Return the bytes of each block."""
    return tuple(count * memory.datatype.size for count in memory.counts)
