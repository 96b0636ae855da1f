"""The messages of a Chakra trace: nodes with attributes, and metadata.

References
----------
MLCommons Chakra, ``schema/protobuf/et_def.proto``: its messages are described here to protobuf when they are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from commsim.core.errors import InputError
from commsim.core.extras import needs

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLLECTIVE = range(8)
# By name: the name of the value's type, such as ``int64_val`` or ``int64_list``, and the value or a tuple.
Attributes = Mapping[str, tuple[str, Any]]
_NONE: Attributes = MappingProxyType({})
# Of values, in the order of their fields' numbers: double_val 3, double_list 4, float_val 5 and so on.
TYPES = (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
)  # fmt: skip
MAX_LIST = 2**20
# Numbers of the collectives.
OPERATIONS = {
    "all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
    "reduce_scatter": 7, "barrier": 9,
}  # fmt: skip
NAMES = {number: name for name, number in OPERATIONS.items()} | {8: "reduce_scatter"}  # 8: of equal blocks
# Our own attribute: what a task occupies, without the name of its worker.
RESOURCE = "commsim_resource"
# What the name of the file ends with that says which ranks each process group has, as ASTRA-sim reads it.
GROUPS = ".groups.json"


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a trace.

    Parameters
    ----------
    number : int
        Its id.
    name : str
        Name for people.
    kind : int
        METADATA, COMP, SEND and so on.
    control, data : tuple of int
        Ids of the nodes that it waits for.
    start, duration : int, us
        Start and duration in the recording.
    inputs, outputs : tuple of str
        Values, shapes and types, as text; empty without any.
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
class TraceMetadata:
    """Metadata of a trace: the version of the schema, and attributes."""

    version: str = ""
    attributes: Attributes = field(default_factory=lambda: _NONE)


@functools.cache
def _messages() -> dict[str, Any]:
    """Classes of the messages by name, made by protobuf from descriptors that are built here.

    Raises
    ------
    InputError
        If protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise InputError(needs("traces of Chakra need protobuf", "chakra")) from None
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="commsim.chakra", syntax="proto3")

    def add(message: str, *fields: tuple[str, int, str]) -> Any:
        """Describe a message by name, number and type of its fields; a star marks a list."""
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            one = described.field.add(name=name, number=number, label=label)
            if kind in TYPES:
                one.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
            else:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".commsim.chakra.{kind}"
        return described

    for name in TYPES:
        add(f"{name}_list", ("values", 1, f"{name}*"))
    values = [(f"{name}_{end}", 3 + 2 * i + j, name if end == "val" else f"{name}_list")
              for i, name in enumerate(TYPES) for j, end in enumerate(("val", "list"))]  # fmt: skip
    attribute = add("Attribute", ("name", 1, "string"), ("doc_string", 2, "string"), *values)
    attribute.oneof_decl.add(name="value")
    for one in attribute.field[2:]:
        one.oneof_index = 0
    add("IOInfo", ("values", 1, "string"), ("shapes", 2, "string"), ("types", 3, "string"))
    add("Node", ("id", 1, "uint64"), ("name", 2, "string"), ("type", 3, "int32"), ("ctrl_deps", 4, "uint64*"),
        ("data_deps", 5, "uint64*"), ("start_time_micros", 6, "uint64"), ("duration_micros", 7, "uint64"),
        ("inputs", 8, "IOInfo"), ("outputs", 9, "IOInfo"), ("attr", 10, "Attribute*"))  # fmt: skip
    add("GlobalMetadata", ("version", 1, "string"), ("attr", 2, "Attribute*"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"commsim.chakra.{name}"))
        for name in ("Node", "GlobalMetadata")
    }


def encode_metadata(metadata: TraceMetadata) -> bytes:
    """Encode the first message of a trace.

    Raises
    ------
    InputError
        If a value does not fit its type.
    """
    return _encode("GlobalMetadata", {"version": metadata.version}, metadata.attributes)


def encode_node(node: Node) -> bytes:
    """Encode a node; what is zero or empty is left out.

    Raises
    ------
    InputError
        If a value does not fit its type.
    """
    fields: dict[str, Any] = {
        "id": node.number, "name": node.name, "type": node.kind, "ctrl_deps": node.control, "data_deps": node.data,
        "start_time_micros": node.start, "duration_micros": node.duration,
    }  # fmt: skip
    for key, texts in (("inputs", node.inputs), ("outputs", node.outputs)):
        if texts:
            fields[key] = dict(zip(("values", "shapes", "types"), texts, strict=True))
    return _encode("Node", fields, node.attributes)


def _encode(kind: str, fields: Mapping[str, Any], attributes: Attributes) -> bytes:
    message_of = _messages()[kind]
    try:
        message = message_of(**fields)
        for name, (form, value) in attributes.items():
            message.attr.add(name=name, **{form: {"values": value} if form.endswith("_list") else value})
        return bytes(message.SerializeToString(deterministic=True))
    except (ValueError, TypeError) as error:
        raise InputError(f"{str(fields.get('name', 'metadata'))!r:.60} does not fit a Chakra trace: {error}") from None


def decode_metadata(data: bytes | memoryview) -> TraceMetadata:
    """Decode the first message of a trace.

    Raises
    ------
    InputError
        If it is damaged.
    """
    message = _decode("GlobalMetadata", data)
    return TraceMetadata(message.version, dict(map(_attribute, message.attr)))


def decode_node(data: bytes | memoryview) -> Node:
    """Decode a node; fields that this version does not know, or that have another type, are passed over.

    Raises
    ------
    InputError
        If it is damaged, or has an attribute twice.
    """
    message = _decode("Node", data)
    attributes: dict[str, tuple[str, Any]] = {}
    for attribute in message.attr:
        name, value = _attribute(attribute)
        if name in attributes:
            raise InputError(f"node {message.id} has the attribute {name!r:.60} twice")
        attributes[name] = value
    inputs, outputs = (
        (info.values, info.shapes, info.types) if message.HasField(key) else ()
        for key, info in (("inputs", message.inputs), ("outputs", message.outputs))
    )
    return Node(message.id, message.name, message.type, tuple(message.ctrl_deps), tuple(message.data_deps),
                message.start_time_micros, message.duration_micros, inputs, outputs, attributes)  # fmt: skip


def _decode(kind: str, data: bytes | memoryview) -> Any:
    message_of = _messages()[kind]
    from google.protobuf.message import DecodeError

    try:
        return message_of.FromString(bytes(data))
    except DecodeError as error:
        raise InputError(f"a message is damaged ({error})") from None


def _attribute(message: Any) -> tuple[str, tuple[str, Any]]:
    form = message.WhichOneof("value") or "bool_val"
    value = getattr(message, form)
    if not form.endswith("_list"):
        return message.name, (form, value)
    if len(value.values) > MAX_LIST:
        raise InputError(f"a list has {len(value.values)} numbers, more than {MAX_LIST}")
    return message.name, (form, tuple(value.values))


def varint(value: int) -> bytes:
    """Encode the length that precedes a message, seven bits to a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Decode a length at a place; return it and the place behind it.

    Raises
    ------
    InputError
        If it ends early, or exceeds 64 bits.
    """
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << (7 * i)
        if byte < 128 and value < 2**64:
            return value, at + i + 1
    raise InputError("a number ends early, or exceeds 64 bits")
