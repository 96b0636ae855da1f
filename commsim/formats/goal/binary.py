"""GOAL in binary, as LogGOPSim maps it into memory: little-endian, packed, offsets from byte 8.

A header (magic number, ranks, largest CPU and NIC), where each rank's part begins and ends, and the parts: numbers of
the operations that wait for nothing, one record per operation, and the lists of those that wait for each.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.files.bounded import read_bytes
from commsim.files.whole_files import replacing

from ..programs.matching import MAX_OPS, MAX_RANKS
from ..programs.operations import ANY, CALC, RECV, SEND, Op, Programs
from ..programs.stages import MAX_STAGE

MAGIC = 4223
_HEADER = struct.Struct("<QIBB")
_BASE = 8
MAX_BYTES = 2**27
_EMPTY = bytes(8)  # no operations, no roots
_FENCE = 0xFE * MAX_STAGE
"""Tag of a computation of no time, plus the number of the stage that begins: a computation's tag is read by nobody."""
_NODE = np.dtype([
    ("n_waits", "<u4"), ("kind", "u1"), ("peer", "<u4"), ("size", "<u8"), ("tag", "<u4"), ("cpu", "u1"), ("nic", "u1"),
    ("n_finish", "<u4"), ("finish", "<u4"), ("n_start", "<u4"), ("start", "<u4"),
])  # fmt: skip


def write_goal_binary(programs: Programs, path: str | Path) -> None:
    """Write programs in binary; the file appears whole or not at all."""
    parts = [_part(ops) for ops in programs.ranks]
    place = _HEADER.size - _BASE + 16 * len(parts)
    table = []
    for part in parts:
        table += [place, place + len(part)]
        place += len(part)
    cpu, nic = (max((getattr(op, name) for _, _, op in programs.every()), default=0) for name in ("cpu", "nic"))
    with replacing(path) as out:
        out.write(_HEADER.pack(MAGIC, len(parts), cpu, nic))
        out.write(np.array(table, "<u8").tobytes())
        out.writelines(parts)


def _part(ops: tuple[Op, ...]) -> bytes:
    finish: list[list[int]] = [[] for _ in ops]
    start: list[list[int]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for lists, waited in ((finish, op.after), (start, op.after_start)):
            for j in waited:
                lists[j].append(i)
    nodes = np.zeros(len(ops), _NODE)
    for name in ("kind", "peer", "size", "tag", "cpu", "nic"):
        nodes[name] = [getattr(op, name) for op in ops]
    stage = np.array([op.stage for op in ops], "<u4")
    nodes["tag"] += np.where(stage > 0, _FENCE + stage, 0).astype("<u4")
    nodes["n_waits"] = [len(op.after) + len(op.after_start) for op in ops]
    nodes["n_finish"], nodes["n_start"] = [len(x) for x in finish], [len(x) for x in start]
    both = nodes["n_finish"] + nodes["n_start"]
    nodes["finish"] = np.cumsum(both) - both
    nodes["start"] = nodes["finish"] + nodes["n_finish"]
    roots = np.flatnonzero(nodes["n_waits"] == 0).astype("<u4")
    lists_ = np.array([k for a, b in zip(finish, start, strict=True) for k in (*a, *b)], "<u4")
    return struct.pack("<II", len(ops), len(roots)) + roots.tobytes() + nodes.tobytes() + lists_.tobytes()


def is_goal_binary(head: bytes) -> bool:
    """Whether a file that begins so is GOAL in binary."""
    return head[:8] == MAGIC.to_bytes(8, "little")


def read_goal_binary(path: str | Path) -> Programs:
    """Read programs from binary.

    Raises
    ------
    InputError
        If it is not GOAL, or a number in it points outside of the file or contradicts another.
    """
    data = read_bytes(path, MAX_BYTES)
    if len(data) < _HEADER.size or not is_goal_binary(data):
        raise InputError(f"{path}: not binary GOAL: it must begin with the number {MAGIC}")
    n_ranks = _HEADER.unpack_from(data)[1]
    if not 0 < 16 * n_ranks <= len(data) - _HEADER.size or n_ranks > MAX_RANKS:
        raise InputError(f"{path}: {n_ranks} ranks do not fit into {len(data)} bytes, or are more than {MAX_RANKS}")
    table = np.frombuffer(data, "<u8", 2 * n_ranks, _HEADER.size).reshape(-1, 2)
    first = _HEADER.size - _BASE + 16 * n_ranks
    body = len(data) - _BASE
    bad = np.flatnonzero((table[:, 0] < first) | (table[:, 0] > table[:, 1]) | (table[:, 1] > body))
    if bad.size:
        raise InputError(f"{path}: the part of rank {bad[0]} is outside of the file")
    in_order = table[np.argsort(table[:, 0], kind="stable")]
    if (in_order[1:, 0] < in_order[:-1, 1]).any():
        raise InputError(f"{path}: the parts of ranks overlap")
    ranks, n_ops = [], 0
    for rank, (begin, end) in enumerate(table.tolist()):
        ranks.append(_read_part(memoryview(data)[_BASE + begin : _BASE + end], f"{path}: rank {rank}"))
        n_ops += len(ranks[-1])
        if n_ops > MAX_OPS:
            raise InputError(f"{path}: more than {MAX_OPS} operations")
    return Programs(tuple(ranks))


def _read_part(part: memoryview, where: str) -> tuple[Op, ...]:
    if part == _EMPTY:
        return ()
    if len(part) < 8:
        raise InputError(f"{where}: its part must hold at least 8 bytes, got {len(part)}")
    n, n_roots = struct.unpack_from("<II", part)
    lists_at = 8 + 4 * n_roots + _NODE.itemsize * n
    if lists_at > len(part) or (len(part) - lists_at) % 4:
        raise InputError(f"{where}: {n} operations and {n_roots} roots do not fit into {len(part)} bytes")
    if n > MAX_OPS:
        raise InputError(f"{where}: more than {MAX_OPS} operations")
    roots = np.frombuffer(part, "<u4", n_roots, 8)
    nodes = np.frombuffer(part, _NODE, n, 8 + 4 * n_roots)
    lists = np.frombuffer(part, "<u4", offset=lists_at)
    _check(nodes, roots, lists, where)
    after: list[list[int]] = [[] for _ in range(n)]
    after_start: list[list[int]] = [[] for _ in range(n)]
    for waiting, count, begin in ((after, "n_finish", "finish"), (after_start, "n_start", "start")):
        for i in np.flatnonzero(nodes[count]).tolist():
            for j in lists[int(nodes[begin][i]) :][: int(nodes[count][i])].tolist():
                waiting[j].append(i)
    n_waits = [len(a) + len(b) for a, b in zip(after, after_start, strict=True)]
    if n_waits != nodes["n_waits"].tolist():
        raise InputError(f"{where}: operations wait for another number of operations than they say")
    is_fence = (nodes["kind"] == CALC) & (nodes["size"] == 0) & (nodes["tag"] // MAX_STAGE == _FENCE // MAX_STAGE)
    stage = np.where(is_fence, nodes["tag"] % MAX_STAGE, 0).tolist()
    tag = np.where(is_fence, 0, nodes["tag"]).tolist()
    kind, size, peer, cpu, nic = (nodes[name].tolist() for name in ("kind", "size", "peer", "cpu", "nic"))
    waiting_for = (map(tuple, after), map(tuple, after_start))
    return tuple(itertools.starmap(Op, zip(kind, size, peer, tag, cpu, nic, *waiting_for, stage, strict=True)))


def _check(nodes: NDArray[np.void], roots: NDArray[np.uint32], lists: NDArray[np.uint32], where: str) -> None:
    if nodes.size and not np.isin(nodes["kind"], (SEND, RECV, CALC)).all():
        raise InputError(f"{where}: operations are 1, 2 or 3, got {nodes['kind'].max()}")
    if nodes.size and nodes["size"].max() >= 2**63:
        raise InputError(f"{where}: a size must be below 2**63, got {nodes['size'].max()}")
    if ((nodes["kind"] == SEND) & (nodes["peer"] == ANY)).any():
        raise InputError(f"{where}: a send needs a rank")
    counts = [
        (nodes[c].astype(np.int64), nodes[b].astype(np.int64))
        for c, b in (("n_finish", "finish"), ("n_start", "start"))
    ]
    if any(((count > 0) & (begin + count > len(lists))).any() for count, begin in counts):
        raise InputError(f"{where}: lists of operations are outside of its part")
    if sum(int(count.sum()) for count, _ in counts) != len(lists):
        raise InputError(f"{where}: lists of operations overlap, or leave some out")
    if (lists.size and lists.max() >= len(nodes)) or not np.array_equal(
        np.sort(roots), np.flatnonzero(nodes["n_waits"] == 0)
    ):
        raise InputError(
            f"{where}: operations are numbered 0..{len(nodes) - 1}, and the roots are those that wait for none"
        )
