"""Chakra's messages by google.protobuf, from descriptors that are built here: nothing is shared with our codec."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TYPES = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
         "sfixed64", "bool", "string", "bytes")  # fmt: skip
F = descriptor_pb2.FieldDescriptorProto


def messages() -> dict[str, Any]:
    """Return the classes Node and GlobalMetadata."""
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")

    def add(message: Any, name: str, number: int, kind: int, label: int = F.LABEL_OPTIONAL, of: str = "") -> Any:
        field = message.field.add(name=name, number=number, type=kind, label=label)
        if of:
            field.type_name = f".et.{of}"
        return field

    for name in TYPES:
        lists = file.message_type.add(name=f"{name.capitalize()}List")
        add(lists, "values", 1, getattr(F, f"TYPE_{name.upper()}"), F.LABEL_REPEATED)
    attribute = file.message_type.add(name="AttributeProto")
    add(attribute, "name", 1, F.TYPE_STRING)
    add(attribute, "doc_string", 2, F.TYPE_STRING)
    attribute.oneof_decl.add(name="value")
    for i, name in enumerate(TYPES):
        single = add(attribute, f"{name}_val", 3 + 2 * i, getattr(F, f"TYPE_{name.upper()}"))
        many = add(attribute, f"{name}_list", 4 + 2 * i, F.TYPE_MESSAGE, of=f"{name.capitalize()}List")
        single.oneof_index = many.oneof_index = 0
    info = file.message_type.add(name="IOInfo")
    for i, name in enumerate(("values", "shapes", "types"), 1):
        add(info, name, i, F.TYPE_STRING)
    node = file.message_type.add(name="Node")
    for number, (name, kind) in enumerate((("id", F.TYPE_UINT64), ("name", F.TYPE_STRING), ("type", F.TYPE_INT32)), 1):
        add(node, name, number, kind)
    for number, name in ((4, "ctrl_deps"), (5, "data_deps")):
        add(node, name, number, F.TYPE_UINT64, F.LABEL_REPEATED)
    for number, name in ((6, "start_time_micros"), (7, "duration_micros")):
        add(node, name, number, F.TYPE_UINT64)
    for number, name in ((8, "inputs"), (9, "outputs")):
        add(node, name, number, F.TYPE_MESSAGE, of="IOInfo")
    add(node, "attr", 10, F.TYPE_MESSAGE, F.LABEL_REPEATED, "AttributeProto")
    whole = file.message_type.add(name="GlobalMetadata")
    add(whole, "version", 1, F.TYPE_STRING)
    add(whole, "attr", 2, F.TYPE_MESSAGE, F.LABEL_REPEATED, "AttributeProto")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"et.{name}"))
        for name in ("Node", "GlobalMetadata")
    }
