"""The encoding of protocol buffers: varints and fields, as far as Chakra's messages need it.

References
----------
Protocol Buffers, "Encoding": the wire format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from commsim.core.errors import InputError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT = 10
MAX_FIELDS = 2**16
MAX_PACKED = 2**20
_MASK = 2**64 - 1

Value = int | memoryview
Field = tuple[int, int, Value]
"""Number, wire type, and a whole number (of fixed types: their bits) or bytes."""


def varint(value: int) -> bytes:
    """Encode a whole number, a negative one as its 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Decode a whole number at a place; return it and the place behind it.

    Raises
    ------
    InputError
        If it ends early, is too long, or exceeds 64 bits.
    """
    value = 0
    for i in range(MAX_VARINT):
        if at + i >= len(data):
            raise InputError("a number ends early")
        byte = data[at + i]
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            if value > _MASK:
                break
            return value, at + i + 1
    raise InputError("a number exceeds 64 bits")


def read_varints(data: memoryview) -> list[int]:
    """Decode whole numbers that stand one after the other.

    Raises
    ------
    InputError
        If one is damaged, or there are more than ``MAX_PACKED``.
    """
    n = np.count_nonzero(np.frombuffer(data, np.uint8) < 128)
    if n > MAX_PACKED:
        raise InputError(f"a list has {n} numbers, more than {MAX_PACKED}")
    if n == len(data):
        return list(data)
    at, found = 0, []
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found


def field(number: int, kind: int, value: int | bytes) -> bytes:
    """Encode one field; `value` is a whole number for a varint and bytes for all else."""
    head = varint(number << 3 | kind)
    if isinstance(value, int):
        return head + varint(value)
    return head + (varint(len(value)) if kind == BYTES else b"") + value


def fields(data: memoryview) -> Iterator[Field]:
    """Decode the fields of a message, one after the other.

    Raises
    ------
    InputError
        If one ends early, or has a type that is none.
    """
    at = n = 0
    while at < len(data):
        head, at = read_varint(data, at)
        n += 1
        if n > MAX_FIELDS:
            raise InputError(f"a message has more than {MAX_FIELDS} fields")
        number, kind = head >> 3, head & 7
        if not 0 < number < 2**29:
            raise InputError(f"a field has the number {number}")
        value: Value
        if kind == VARINT:
            value, at = read_varint(data, at)
        elif kind == BYTES:
            size, at = read_varint(data, at)
            if size > len(data) - at:
                raise InputError(f"field {number} has {size} bytes, of which {len(data) - at} are there")
            value, at = data[at : at + size], at + size
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
            if size > len(data) - at:
                raise InputError(f"field {number} ends early")
            value, at = int.from_bytes(data[at : at + size], "little"), at + size
        else:
            raise InputError(f"field {number} has the type {kind}")
        yield number, kind, value


def signed(value: int, bits: int) -> int:
    """Read the lowest bits of a number as a signed one."""
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def zigzag(value: int) -> int:
    """Fold a signed number so that small ones stay small."""
    return value * 2 if value >= 0 else -value * 2 - 1


def unzigzag(value: int) -> int:
    """Undo :func:`zigzag`."""
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def floating(bits: int, size: int) -> float:
    """Read the bits of a float of 4 or 8 bytes."""
    return float(struct.unpack("<f" if size == 4 else "<d", bits.to_bytes(size, "little"))[0])
