"""GOAL, the schedules that LogGOPSim and ATLAHS simulate, as text and in binary.

Text has one statement a line, labels local to a rank, and whole numbers only. The binary form is little-endian and
packed, with offsets from byte 8, since LogGOPSim maps it into memory: a header (magic number, ranks, largest CPU and
NIC), where each rank's part begins and ends, and the parts: numbers of the operations that wait for nothing, one record
per operation, and the lists of those that wait for each.

References
----------
Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language", ICPP 2009.
The grammar is that of LogGOPSim's txt2bin.
"""

from __future__ import annotations

import itertools
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_bytes, read_text, replacing
from commsim.core.jit import Records
from commsim.core.spec import is_whole

from .programs.operations import ANY, CALC, MAX_OPS, MAX_RANKS, RECV, SEND, Programs, RankOperation
from .programs.stages import MAX_STAGE

MAX_BYTES = 2**27
MAX_LINES = 2**22
_LABEL = r"[a-zA-Z][a-zA-Z0-9_]*"
_OPERATION = re.compile(
    rf"(?:({_LABEL})\s*:\s*)?(?:(send|recv)\s+(\d+)\s*b\s*(to|from)\s*(\d+|-1)(?:\s*tag\s*(\d+|-1))?"
    r"(?:\s*cpu\s*(\d+))?(?:\s*nic\s*(\d+))?|(calc)\s+(\d+)(?:\s*cpu\s*(\d+))?)",
    re.ASCII,
)
_ORDER = re.compile(rf"({_LABEL})\s+(requires|irequires)\s+({_LABEL})", re.ASCII)
_RANK = re.compile(r"rank\s+(\d+)\s*\{", re.ASCII)
_N_RANKS = re.compile(r"num_ranks\s+(\d+)", re.ASCII)
_KINDS = {"send": SEND, "recv": RECV}
# In the label of a computation of no time, before the number of the stage that begins: others read a label.
_FENCE_LABEL = "_commsim_fence_"
MAGIC = 4223
_HEADER = struct.Struct("<QIBB")
_BASE = 8
_EMPTY = bytes(8)  # no operations, no roots
# Tag of a computation of no time, plus the number of the stage that begins: the tag of a computation is not used.
_FENCE_TAG = 0xFE * MAX_STAGE
_NODE = np.dtype([
    ("n_waits", "<u4"), ("kind", "u1"), ("peer", "<u4"), ("size", "<u8"), ("tag", "<u4"), ("cpu", "u1"), ("nic", "u1"),
    ("n_finish", "<u4"), ("finish", "<u4"), ("n_start", "<u4"), ("start", "<u4"),
])  # fmt: skip


def write_goal_text(programs: Programs, path: str | Path) -> None:
    """Write programs as text; the file appears whole or not at all."""
    with replacing(path) as out:
        out.write(f"num_ranks {len(programs.ranks)}\n".encode())
        for rank, ops in enumerate(programs.ranks):
            label = [f"l{i}{_FENCE_LABEL}{op.stage}" if op.stage else f"l{i}" for i, op in enumerate(ops)]
            lines = [f"rank {rank} {{", *(f"{name}: {_op_text(op)}" for name, op in zip(label, ops, strict=True))]
            for name, op in zip(label, ops, strict=True):
                lines += [f"{name} requires {label[j]}" for j in op.after]
                lines += [f"{name} irequires {label[j]}" for j in op.after_start]
            out.write("\n".join([*lines, "}\n"]).encode())


def _op_text(op: RankOperation) -> str:
    cpu, nic = (f" {name} {number}" if number else "" for name, number in (("cpu", op.cpu), ("nic", op.nic)))
    if op.kind == CALC:
        return f"calc {op.size}{cpu}"
    peer, tag = ("-1" if number == ANY else str(number) for number in (op.peer, op.tag))
    what, way = ("send", "to") if op.kind == SEND else ("recv", "from")
    return f"{what} {op.size}b {way} {peer} tag {tag}{cpu}{nic}"


def read_goal_text(path: str | Path) -> Programs:
    """Read programs from text.

    Raises
    ------
    InputError
        Naming the line that is no statement, or uses a label before it is there.
    """
    text = read_text(path, MAX_BYTES)
    n_ops = sum(text.count(f"{word} ") for word in ("send", "recv", "calc"))
    if n_ops > MAX_OPS or text.count("\n") > MAX_LINES:  # said before a second is spent on each 100,000 of them
        raise InputError(f"{path}: more than {MAX_OPS} operations or {MAX_LINES} lines")
    return _Reader(path).read(text.split("\n"))  # not at the other characters that end a line for Python


class _Rank:
    """The operations of a rank, what each waits for, and their labels."""

    def __init__(self) -> None:
        self.drafts: list[tuple[RankOperation, list[int], list[int]]] = []
        self.labels: dict[str, int] = {}

    def ops(self) -> tuple[RankOperation, ...]:
        return tuple(replace(op, after=tuple(after), after_start=tuple(start)) for op, after, start in self.drafts)


class _Reader:
    def __init__(self, path: str | Path) -> None:
        self._path, self._line = path, 0

    def read(self, lines: list[str]) -> Programs:
        n_ranks = n_ops = 0
        ranks: list[tuple[RankOperation, ...]] = []
        inside: _Rank | None = None
        in_comment = False
        for self._line, raw in enumerate(lines, 1):
            line = raw.strip()
            if in_comment or line.startswith("/*"):
                _, end, line = line.removeprefix("" if in_comment else "/*").partition("*/")
                line, in_comment = line.strip(), not end
            if not line or line.startswith("//"):
                continue
            if inside is not None and line == "}":
                n_ops += len(inside.drafts)
                if n_ops > MAX_OPS:
                    self._fail(f"more than {MAX_OPS} operations")
                ranks.append(inside.ops())
                inside = None
            elif inside is not None:
                self._statement(line, inside)
            elif not n_ranks:
                n_ranks = self._count(line)
            else:
                self._begin(line, len(ranks), n_ranks)
                inside = _Rank()
        if inside is not None or in_comment:
            self._fail(f"{'a comment' if in_comment else f'rank {len(ranks)}'} has no end (a closing bracket)")
        if not n_ranks or len(ranks) != n_ranks:
            self._fail(f"num_ranks is {n_ranks}, got {len(ranks)}")
        return Programs(tuple(ranks))

    def _count(self, line: str) -> int:
        match = _N_RANKS.fullmatch(line)
        n = self._number(match[1], 2**32) if match else 0
        if not 0 < n <= MAX_RANKS:
            self._fail(f"expected num_ranks and a number 1..{MAX_RANKS}, got {line!r}")
        return n

    def _begin(self, line: str, rank: int, n_ranks: int) -> None:
        match = _RANK.fullmatch(line)
        if not match or rank >= n_ranks or self._number(match[1], 2**32) != rank:
            wanted = f"'rank {rank} {{'" if rank < n_ranks else "nothing more"
            self._fail(f"expected {wanted}, got {line!r}")

    def _statement(self, line: str, rank: _Rank) -> None:
        match = _OPERATION.fullmatch(line)
        if match:
            if match[1] and rank.labels.setdefault(match[1], len(rank.drafts)) != len(rank.drafts):
                self._fail(f"the label {match[1]!r} is taken")
            rank.drafts.append((self._op(match), [], []))
            if len(rank.drafts) > MAX_OPS:
                self._fail(f"more than {MAX_OPS} operations")
            return
        order = _ORDER.fullmatch(line)
        if not order:
            self._fail(f"expected a send, recv, calc, requires or irequires, got {line!r}")
        for label in (order[1], order[3]):
            if label not in rank.labels:
                self._fail(f"the label {label!r} is not defined before")
        if order[1] == order[3]:
            self._fail("an operation cannot wait for itself")
        _, after, start = rank.drafts[rank.labels[order[1]]]
        (after if order[2] == "requires" else start).append(rank.labels[order[3]])

    def _op(self, match: re.Match[str]) -> RankOperation:
        if match[9]:
            size = self._number(match[10], 2**63)
            number = "" if size else (match[1] or "").rpartition(_FENCE_LABEL)[2]
            stage = self._number(number, MAX_STAGE) if is_whole(number, 18) and _FENCE_LABEL in match[1] else 0
            return RankOperation(CALC, size, cpu=self._number(match[11] or "0", 256), stage=stage)
        kind = _KINDS[match[2]]
        if (match[4] == "to") != (kind == SEND) or (match[5] == "-1" and kind == SEND):
            self._fail(f"a {match[2]} is {'to a rank' if kind == SEND else 'from a rank or -1'}, got {match[0]!r}")
        peer, tag = (ANY if t == "-1" else self._number(t or "0", 2**32) for t in (match[5], match[6]))
        cpu, nic = (self._number(t or "0", 256) for t in (match[7], match[8]))
        return RankOperation(kind, self._number(match[3], 2**63), peer, tag, cpu, nic)

    def _number(self, text: str, limit: int) -> int:
        if len(text) > 20 or int(text) >= limit:
            self._fail(f"a number must be below {limit}, got {text!r}")
        return int(text)

    def _fail(self, message: str) -> NoReturn:
        raise InputError(f"{self._path}, line {self._line}: {message}")


def write_goal_binary(programs: Programs, path: str | Path) -> None:
    """Write programs in binary; the file appears whole or not at all."""
    parts = [_rank_bytes(ops) for ops in programs.ranks]
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


def _rank_bytes(ops: tuple[RankOperation, ...]) -> bytes:
    finish: list[list[int]] = [[] for _ in ops]
    start: list[list[int]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for lists, waited in ((finish, op.after), (start, op.after_start)):
            for j in waited:
                lists[j].append(i)
    nodes: Records = np.zeros(len(ops), _NODE)
    for name in ("kind", "peer", "size", "tag", "cpu", "nic"):
        nodes[name] = [getattr(op, name) for op in ops]
    stage = np.array([op.stage for op in ops], "<u4")
    nodes["tag"] += np.where(stage > 0, _FENCE_TAG + stage, 0).astype("<u4")
    nodes["n_waits"] = [len(op.after) + len(op.after_start) for op in ops]
    nodes["n_finish"], nodes["n_start"] = [len(x) for x in finish], [len(x) for x in start]
    both = nodes["n_finish"] + nodes["n_start"]
    nodes["finish"] = np.cumsum(both) - both
    nodes["start"] = nodes["finish"] + nodes["n_finish"]
    roots = np.flatnonzero(nodes["n_waits"] == 0).astype("<u4")
    lists_ = np.array([k for a, b in zip(finish, start, strict=True) for k in (*a, *b)], "<u4")
    counts = struct.pack("<II", len(ops), len(roots))
    return b"".join((counts, roots.tobytes(), nodes.tobytes(), lists_.tobytes()))


def read_goal_binary(path: str | Path) -> Programs:
    """Read programs from binary.

    Raises
    ------
    InputError
        If it is not GOAL, or a number in it points outside of the file or contradicts another.
    """
    data = read_bytes(path, MAX_BYTES)
    if len(data) < _HEADER.size or data[:8] != MAGIC.to_bytes(8, "little"):
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


def _read_part(part: memoryview, where: str) -> tuple[RankOperation, ...]:
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
    nodes: Records = np.frombuffer(part, _NODE, n, 8 + 4 * n_roots)
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
        raise InputError(f"{where}: the number of dependencies differs from the declared one")
    is_fence = (nodes["kind"] == CALC) & (nodes["size"] == 0) & (nodes["tag"] // MAX_STAGE == _FENCE_TAG // MAX_STAGE)
    stage = np.where(is_fence, nodes["tag"] % MAX_STAGE, 0).tolist()
    tag = np.where(is_fence, 0, nodes["tag"]).tolist()
    kind, size, peer, cpu, nic = (nodes[name].tolist() for name in ("kind", "size", "peer", "cpu", "nic"))
    waiting_for = (map(tuple, after), map(tuple, after_start))
    return tuple(
        itertools.starmap(RankOperation, zip(kind, size, peer, tag, cpu, nic, *waiting_for, stage, strict=True))
    )


def _check(nodes: Records, roots: NDArray[np.uint32], lists: NDArray[np.uint32], where: str) -> None:
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
