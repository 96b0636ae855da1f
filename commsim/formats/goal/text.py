"""GOAL as text: one statement a line, labels local to a rank, whole numbers only.

References
----------
Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language", ICPP 2009.
The grammar is that of LogGOPSim's txt2bin.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from commsim.core.errors import InputError
from commsim.files.bounded import read_text
from commsim.files.whole_files import replacing

from ..programs.matching import MAX_OPS, MAX_RANKS
from ..programs.operations import ANY, CALC, RECV, SEND, Op, Programs
from ..programs.stages import MAX_STAGE

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
_FENCE = "_commsim_fence_"
"""In the label of a computation of no time, before the number of the stage that begins: others read a label."""


def write_goal_text(programs: Programs, path: str | Path) -> None:
    """Write programs as text; the file appears whole or not at all."""
    with replacing(path) as out:
        out.write(f"num_ranks {len(programs.ranks)}\n".encode())
        for rank, ops in enumerate(programs.ranks):
            label = [f"l{i}{_FENCE}{op.stage}" if op.stage else f"l{i}" for i, op in enumerate(ops)]
            lines = [f"rank {rank} {{", *(f"{name}: {_operation(op)}" for name, op in zip(label, ops, strict=True))]
            for name, op in zip(label, ops, strict=True):
                lines += [f"{name} requires {label[j]}" for j in op.after]
                lines += [f"{name} irequires {label[j]}" for j in op.after_start]
            out.write("\n".join([*lines, "}\n"]).encode())


def _operation(op: Op) -> str:
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
        self.drafts: list[tuple[Op, list[int], list[int]]] = []
        self.labels: dict[str, int] = {}

    def ops(self) -> tuple[Op, ...]:
        return tuple(replace(op, after=tuple(after), after_start=tuple(start)) for op, after, start in self.drafts)


class _Reader:
    def __init__(self, path: str | Path) -> None:
        self._path, self._line = path, 0

    def read(self, lines: list[str]) -> Programs:
        n_ranks = n_ops = 0
        ranks: list[tuple[Op, ...]] = []
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
            self._fail(f"num_ranks says {n_ranks} ranks, got {len(ranks)}")
        return Programs(tuple(ranks))

    def _count(self, line: str) -> int:
        found = _N_RANKS.fullmatch(line)
        n = self._number(found[1], 2**32) if found else 0
        if not 0 < n <= MAX_RANKS:
            self._fail(f"expected num_ranks and a number 1..{MAX_RANKS}, got {_shown(line)}")
        return n

    def _begin(self, line: str, rank: int, n_ranks: int) -> None:
        found = _RANK.fullmatch(line)
        if not found or rank >= n_ranks or self._number(found[1], 2**32) != rank:
            wanted = f"'rank {rank} {{'" if rank < n_ranks else "nothing more"
            self._fail(f"expected {wanted}, got {_shown(line)}")

    def _statement(self, line: str, rank: _Rank) -> None:
        found = _OPERATION.fullmatch(line)
        if found:
            if found[1] and rank.labels.setdefault(found[1], len(rank.drafts)) != len(rank.drafts):
                self._fail(f"the label {_shown(found[1])} is taken")
            rank.drafts.append((self._op(found), [], []))
            if len(rank.drafts) > MAX_OPS:
                self._fail(f"more than {MAX_OPS} operations")
            return
        order = _ORDER.fullmatch(line)
        if not order:
            self._fail(f"expected a send, recv, calc, requires or irequires, got {_shown(line)}")
        for label in (order[1], order[3]):
            if label not in rank.labels:
                self._fail(f"the label {_shown(label)} is not defined before")
        if order[1] == order[3]:
            self._fail("an operation cannot wait for itself")
        _, after, start = rank.drafts[rank.labels[order[1]]]
        (after if order[2] == "requires" else start).append(rank.labels[order[3]])

    def _op(self, found: re.Match[str]) -> Op:
        if found[9]:
            size = self._number(found[10], 2**63)
            number = "" if size else (found[1] or "").rpartition(_FENCE)[2]
            stage = self._number(number, MAX_STAGE) if number.isdigit() and _FENCE in found[1] else 0
            return Op(CALC, size, cpu=self._number(found[11] or "0", 256), stage=stage)
        kind = _KINDS[found[2]]
        if (found[4] == "to") != (kind == SEND) or (found[5] == "-1" and kind == SEND):
            self._fail(
                f"a {found[2]} is {'to a rank' if kind == SEND else 'from a rank or -1'}, got {_shown(found[0])}"
            )
        peer, tag = (ANY if t == "-1" else self._number(t or "0", 2**32) for t in (found[5], found[6]))
        cpu, nic = (self._number(t or "0", 256) for t in (found[7], found[8]))
        return Op(kind, self._number(found[3], 2**63), peer, tag, cpu, nic)

    def _number(self, text: str, limit: int) -> int:
        if len(text) > 20 or int(text) >= limit:
            self._fail(f"a number must be below {limit}, got {_shown(text)}")
        return int(text)

    def _fail(self, message: str) -> NoReturn:
        raise InputError(f"{self._path}, line {self._line}: {message}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
