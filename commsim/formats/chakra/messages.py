"""The messages of a Chakra trace: nodes with attributes, and what is said of the whole.

Numbers of the collectives in Chakra traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from commsim.core.errors import InputError

from .values import decode_value, encode_value
from .wire import BYTES, VARINT, fields, read_varints, varint
from .wire import field as encode_field

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLLECTIVE = range(8)
Attributes = Mapping[str, tuple[str, Any]]
"""By name: the name of the value's type, such as ``int64_val``, and the value."""
_NONE: Attributes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a trace.

    Parameters
    ----------
    number : int
        Its id.
    name : str
        For people.
    kind : int
        METADATA, COMP, SEND and so on.
    control, data : tuple of int
        Ids of the nodes that it waits for.
    start, duration : int, us
        When it was seen, and how long it took.
    inputs, outputs : tuple of str
        Values, shapes and types, as text; empty where there are none.
    attributes : mapping
        All else.
    """

    number: int
    name: str = ""
    kind: int = INVALID
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    start: int = 0
    duration: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attributes: Attributes = field(default_factory=lambda: _NONE)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a trace says of itself: the version of the schema, and attributes."""

    version: str = ""
    attributes: Attributes = field(default_factory=lambda: _NONE)


def encode_metadata(metadata: Metadata) -> bytes:
    """Encode the first message of a trace."""
    version = encode_field(1, BYTES, metadata.version.encode()) if metadata.version else b""
    return version + b"".join(encode_field(2, BYTES, one) for one in _attributes(metadata.attributes))


def encode_node(node: Node) -> bytes:
    """Encode a node; what is zero or empty is left out."""
    out = []
    for number, value in ((1, node.number), (3, node.kind), (6, node.start), (7, node.duration)):
        if value:
            out.append((number, encode_field(number, VARINT, value)))
    if node.name:
        out.append((2, encode_field(2, BYTES, node.name.encode())))
    for number, ids in ((4, node.control), (5, node.data)):
        if ids:
            out.append((number, encode_field(number, BYTES, b"".join(map(varint, ids)))))
    for number, texts in ((8, node.inputs), (9, node.outputs)):
        if texts:
            inside = (encode_field(i, BYTES, text.encode()) for i, text in enumerate(texts, 1) if text)
            out.append((number, encode_field(number, BYTES, b"".join(inside))))
    out += [(10, encode_field(10, BYTES, one)) for one in _attributes(node.attributes)]
    return b"".join(data for _, data in sorted(out, key=lambda pair: pair[0]))


def _attributes(attributes: Attributes) -> list[bytes]:
    return [
        (encode_field(1, BYTES, name.encode()) if name else b"") + encode_value(*value)
        for name, value in attributes.items()
    ]


def decode_metadata(data: memoryview) -> Metadata:
    """Decode the first message of a trace.

    Raises
    ------
    InputError
        If it is damaged.
    """
    version, attributes = "", {}
    for number, _, value in fields(data):
        if number == 1 and isinstance(value, memoryview):
            version = _text(value)
        elif number == 2 and isinstance(value, memoryview):
            name, found = _attribute(value)
            attributes[name] = found
    return Metadata(version, attributes)


def decode_node(data: memoryview) -> Node:
    """Decode a node; fields that this version does not know, or that have another type, are passed over.

    Raises
    ------
    InputError
        If it is damaged.
    """
    numbers = {1: 0, 3: 0, 6: 0, 7: 0}
    ids: dict[int, list[int]] = {4: [], 5: []}
    texts: dict[int, list[str]] = {8: [], 9: []}
    name, attributes = "", {}
    for number, wire, value in fields(data):
        if isinstance(value, int):
            if wire == VARINT and number in numbers:
                numbers[number] = value
            elif wire == VARINT and number in ids:
                ids[number].append(value)
        elif number == 2:
            name = _text(value)
        elif number in ids:
            ids[number] += read_varints(value)
        elif number in texts:
            texts[number] = _texts(value, texts[number])
        elif number == 10:
            key, found = _attribute(value)
            if key in attributes:
                raise InputError(f"node {numbers[1]} has the attribute {key!r:.60} twice")
            attributes[key] = found
    return Node(
        numbers[1], name, numbers[3], tuple(ids[4]), tuple(ids[5]), numbers[6], numbers[7], tuple(texts[8]),
        tuple(texts[9]), attributes,
    )  # fmt: skip


def _attribute(data: memoryview) -> tuple[str, tuple[str, Any]]:
    name, found = "", ("bool_val", False)
    for number, wire, value in fields(data):
        if number == 1 and isinstance(value, memoryview):
            name = _text(value)
        else:
            found = decode_value(number, wire, value) or found
    return name, found


def _texts(data: memoryview, before: list[str]) -> list[str]:
    texts = before or ["", "", ""]
    for number, _, value in fields(data):
        if 1 <= number <= 3 and isinstance(value, memoryview):
            texts[number - 1] = _text(value)
    return texts


def _text(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise InputError("text is not UTF-8") from None


OPERATIONS = {
    "all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
    "reduce_scatter": 7, "barrier": 9,
}  # fmt: skip
NAMES = {number: name for name, number in OPERATIONS.items()} | {8: "reduce_scatter"}  # 8: of equal blocks
RESOURCE = "commsim_resource"
"""Our own attribute: what a task occupies, without the name of its worker."""
GROUPS = ".groups.json"
"""What the name of the file ends with that says which ranks each process group has, as ASTRA-sim reads it."""
