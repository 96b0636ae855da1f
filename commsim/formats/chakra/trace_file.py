"""The file of one rank's Chakra trace: a stream of messages, each after its length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes, replacing

from .codec import (
    Node,
    TraceMetadata,
    decode_metadata,
    decode_node,
    encode_metadata,
    encode_node,
    read_varint,
    varint,
)

VERSION = "1.0.0"
MAX_NODES = 2**21
MAX_BYTES = 2**26
MAX_WAITS = 2**22
# Bytes of one message: of two bytes each can become an attribute, which then takes a hundred.
MAX_MESSAGE = 2**22


@dataclass(frozen=True, slots=True)
class ChakraTrace:
    """One file."""

    metadata: TraceMetadata
    nodes: tuple[Node, ...]


def write_trace(trace: ChakraTrace, path: str | Path) -> None:
    """Write one file; it appears whole or not at all."""
    with replacing(path) as out:
        for data in (encode_metadata(trace.metadata), *map(encode_node, trace.nodes)):
            out.write(varint(len(data)) + data)


def read_trace(path: str | Path) -> ChakraTrace:
    """Read one file, unpacking it if it is a gzip.

    Raises
    ------
    InputError
        If it is damaged, a node waits for one that is not there, or two have one id.
    """
    data = memoryview(read_bytes(path, MAX_BYTES))
    nodes: dict[int, Node] = {}
    n_waits = 0
    try:
        messages = _messages(data)
        first = next(messages, None)
        if first is None:
            raise InputError("it is empty, and must begin with a message about itself")
        metadata = decode_metadata(first)
        for message in messages:  # one by one, so that nonsense is refused where it begins
            node = decode_node(message)
            if node.number in nodes:
                raise InputError(f"two nodes have the id {node.number}")
            nodes[node.number] = node
            n_waits += len(node.control) + len(node.data)
            if n_waits > MAX_WAITS or len(nodes) > MAX_NODES:
                raise InputError(f"more than {MAX_NODES} nodes, or they wait for more than {MAX_WAITS} others")
    except InputError as error:
        raise InputError(f"{path}: not a Chakra trace: {error}") from None
    for node in nodes.values():
        for number in (*node.control, *node.data):
            if number not in nodes or number == node.number:
                raise InputError(f"{path}: node {node.number} waits for node {number}, which is not there or itself")
    return ChakraTrace(metadata, tuple(nodes.values()))


def _messages(data: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(data):
        size, at = read_varint(data, at)
        if size > len(data) - at:
            raise InputError(f"a message has {size} bytes, only {len(data) - at} are there")
        if size > MAX_MESSAGE:
            raise InputError(f"a message has {size} bytes, more than {MAX_MESSAGE}")
        yield data[at : at + size]
        at += size
