"""The files of Chakra traces: one per rank, ``PREFIX.RANK.et``, a stream of messages, each after its length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.formats.bounded import read_bytes
from commsim.core.formats.files import replacing

from .messages import Metadata, Node, decode_metadata, decode_node, encode_metadata, encode_node
from .wire import read_varint, varint

VERSION = "1.0.0"
SUFFIX = ".et"
MAX_NODES = 2**21
MAX_RANKS = 2**20
MAX_BYTES = 2**26
MAX_WAITS = 2**22


@dataclass(frozen=True, slots=True)
class Trace:
    """One file."""

    metadata: Metadata
    nodes: tuple[Node, ...]


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write one file; it appears whole or not at all."""
    with replacing(path) as out:
        for data in (encode_metadata(trace.metadata), *map(encode_node, trace.nodes)):
            out.write(varint(len(data)) + data)


def read_trace(path: str | Path) -> Trace:
    """Read one file, unpacking it if it is a gzip.

    Raises
    ------
    InputError
        If it is damaged, a node waits for one that is not there, or two have one id.
    """
    data, at, pieces = memoryview(read_bytes(path, MAX_BYTES)), 0, []
    try:
        while at < len(data):
            size, at = read_varint(data, at)
            if size > len(data) - at:
                raise InputError(f"a message has {size} bytes, of which {len(data) - at} are there")
            pieces.append(data[at : at + size])
            at += size
            if len(pieces) > MAX_NODES:
                raise InputError(f"more than {MAX_NODES} nodes")
        if not pieces:
            raise InputError("it is empty, and must begin with a message about itself")
        metadata = decode_metadata(pieces[0])
        nodes, n_waits = [], 0
        for piece in pieces[1:]:
            nodes.append(decode_node(piece))
            n_waits += len(nodes[-1].control) + len(nodes[-1].data)
            if n_waits > MAX_WAITS:
                raise InputError(f"nodes wait for more than {MAX_WAITS} others")
    except InputError as error:
        raise InputError(f"{path}: not a Chakra trace: {error}") from None
    known = {node.number for node in nodes}
    if len(known) < len(nodes):
        raise InputError(f"{path}: two nodes have one id")
    for node in nodes:
        for number in (*node.control, *node.data):
            if number not in known or number == node.number:
                raise InputError(f"{path}: node {node.number} waits for node {number}, which is not there or itself")
    return Trace(metadata, tuple(nodes))


def write_traces(traces: Iterable[Trace], prefix: str | Path) -> int:
    """Write ``PREFIX.0.et``, ``PREFIX.1.et`` and so on; return how many."""
    n = 0
    for n, trace in enumerate(traces, 1):
        write_trace(trace, f"{prefix}.{n - 1}{SUFFIX}")
    return n


def prefix_of(path: str | Path) -> Path:
    """Return the prefix that ``PREFIX``, ``PREFIX.et`` or ``PREFIX.3.et`` names."""
    path = Path(path)
    named = re.fullmatch(rf"(.+)\.\d{{1,7}}{re.escape(SUFFIX)}", path.name)
    return path.with_name(named[1] if named else path.name.removesuffix(SUFFIX) or SUFFIX)


def read_traces(path: str | Path) -> list[Trace]:
    """Read the traces of all ranks.

    Parameters
    ----------
    path : path
        The prefix, or any one of the files.

    Raises
    ------
    InputError
        If the file of rank 0 or of one between two others is missing, or one is damaged.
    """
    path = prefix_of(path)
    prefix = path.name
    pattern = re.compile(rf"{re.escape(prefix)}\.(0|[1-9]\d{{0,6}}){re.escape(SUFFIX)}")
    try:
        names = [pattern.fullmatch(file.name) for file in path.parent.iterdir()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not the name of a file'}") from None
    ranks = sorted(int(name[1]) for name in names if name)
    if not ranks or ranks != list(range(len(ranks))) or len(ranks) > MAX_RANKS:
        missing = next((r for r in range(len(ranks) + 1) if r not in set(ranks)), 0)
        raise InputError(f"{path}: {prefix}.{missing}{SUFFIX} is missing: there must be one file per rank, from 0")
    traces, n = [], 0
    for rank in ranks:
        traces.append(read_trace(path.parent / f"{prefix}.{rank}{SUFFIX}"))
        n += len(traces[-1].nodes)
        if n > MAX_NODES:
            raise InputError(f"{path}: more than {MAX_NODES} nodes")
    return traces
