"""The value of an attribute: one of sixteen types, or a list of one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from commsim.core.errors import InputError

from .wire import (
    BYTES,
    FIXED32,
    FIXED64,
    MAX_PACKED,
    VARINT,
    Value,
    field,
    fields,
    floating,
    read_varints,
    signed,
    unzigzag,
    varint,
)
from .wire import zigzag as fold


class Kind(NamedTuple):
    """How one type stands in a file."""

    name: str
    wire: int
    encode: Callable[[Any], int | bytes]
    decode: Callable[[Any], Any]


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise InputError("text is not UTF-8") from None


def _u32(value: int) -> int:
    return value & 0xFFFFFFFF


def _packed(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


_SINGLE = (
    Kind("double", FIXED64, _packed("<d"), lambda v: floating(v, 8)),
    Kind("float", FIXED32, _packed("<f"), lambda v: floating(v, 4)),
    Kind("int32", VARINT, int, lambda v: signed(v, 32)),
    Kind("int64", VARINT, int, lambda v: signed(v, 64)),
    Kind("uint32", VARINT, int, _u32),
    Kind("uint64", VARINT, int, int),
    Kind("sint32", VARINT, fold, lambda v: unzigzag(_u32(v))),
    Kind("sint64", VARINT, fold, unzigzag),
    Kind("fixed32", FIXED32, _packed("<I"), int),
    Kind("fixed64", FIXED64, _packed("<Q"), int),
    Kind("sfixed32", FIXED32, _packed("<i"), lambda v: signed(v, 32)),
    Kind("sfixed64", FIXED64, _packed("<q"), lambda v: signed(v, 64)),
    Kind("bool", VARINT, int, bool),
    Kind("string", BYTES, lambda v: v.encode(), _text),
    Kind("bytes", BYTES, bytes, bytes),
)
NUMBERS = {kind.name + end: 3 + 2 * i + j for i, kind in enumerate(_SINGLE) for j, end in enumerate(("_val", "_list"))}
"""Field number by the name of the value: ``double_val`` 3, ``double_list`` 4, ``float_val`` 5 and so on."""
_NAMES = {number: name for name, number in NUMBERS.items()}
_KIND = {kind.name: kind for kind in _SINGLE}
_SIZES = {FIXED32: 4, FIXED64: 8}


def encode_value(name: str, value: Any) -> bytes:
    """Encode the field of a value, such as ``("int64_val", 5)``."""
    kind = _KIND[name.rsplit("_", 1)[0]]
    if name.endswith("_val"):
        return field(NUMBERS[name], kind.wire, kind.encode(value))
    if kind.wire == BYTES:
        inside = b"".join(field(1, BYTES, kind.encode(one)) for one in value)
    else:
        packed = b"".join(varint(v) if isinstance(v, int) else v for v in map(kind.encode, value))
        inside = field(1, BYTES, packed) if packed else b""
    return field(NUMBERS[name], BYTES, inside)


def decode_value(number: int, wire: int, value: Value) -> tuple[str, Any] | None:
    """Decode the field of a value; None if it is none that this version knows.

    Raises
    ------
    InputError
        If it is damaged.
    """
    name = _NAMES.get(number)
    if name is None:
        return None
    kind = _KIND[name.rsplit("_", 1)[0]]
    if name.endswith("_val"):
        return (name, kind.decode(value)) if wire == kind.wire else None
    if not isinstance(value, memoryview):
        return None
    found: list[Any] = []
    for inner, inner_wire, one in fields(value):
        if inner == 1 and inner_wire == kind.wire:
            found.append(kind.decode(one))
        elif inner == 1 and isinstance(one, memoryview):
            found += _unpacked(kind, one)
    return name, tuple(found)


def _unpacked(kind: Kind, data: memoryview) -> list[Any]:
    if kind.wire == VARINT:
        return list(map(kind.decode, read_varints(data)))
    size = _SIZES[kind.wire]
    if len(data) % size or len(data) > size * MAX_PACKED:
        raise InputError(f"a list ends within a number, or has more than {MAX_PACKED}")
    return [kind.decode(int.from_bytes(data[at : at + size], "little")) for at in range(0, len(data), size)]
