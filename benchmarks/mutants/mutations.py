"""Small changes of Python code that a good test notices, found by their place in the syntax tree."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
            ast.BitAnd: "|", ast.BitOr: "&"}  # fmt: skip
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
# Calls whose arguments only say something to a reader, or register a name.
SPOKEN = {"InputError", "BackendError", "PhysicsError", "print", "expect", "warn", "TypeVar", "remark"}
TOKENS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Add: "+",
          ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
          ast.BitOr: "|", ast.And: "and", ast.Or: "or"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one file.

    Parameters
    ----------
    path : Path
        The file, relative to the root of the repository.
    line : int
        Its line, from 1.
    first, end : int
        Bytes of the file that are replaced.
    new : str
        What takes their place.
    """

    path: Path
    line: int
    first: int
    end: int
    new: str

    def apply(self, text: bytes) -> bytes:
        """Return the file's text with the change."""
        return text[: self.first] + self.new.encode() + text[self.end :]

    def shown(self, text: bytes) -> str:
        """Return place, old line and new line."""
        old, new = (one.splitlines()[self.line - 1].decode().strip() for one in (text, self.apply(text)))
        return f"{self.path}:{self.line}: `{old}` -> `{new}`"


def mutations(path: Path, text: bytes) -> list[Mutation]:
    """Find every change of a file, in the order of its text.

    Operators of comparison, arithmetic and bits are replaced by their neighbours, ``and`` by ``or``, ``min`` by
    ``max``, ``any`` by ``all``, an integer by the next one, and conditions of ``if`` and ``while`` are negated.
    Annotations, decorators, messages and what is raised are left out.
    """
    starts = [0]
    for one in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(one))

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    found = []
    for node in _walked(ast.parse(text)):
        for first, end, new in _edits(node, text, at):
            line = text.count(b"\n", 0, first) + 1
            found.append(Mutation(path, line, first, end, new))
    return sorted(set(found), key=lambda one: (one.first, one.end, one.new))


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without annotations, decorators, text, messages and what is raised."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Call) and _name(node.func) in SPOKEN:
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walked(child)


def _edits(node: ast.AST, text: bytes, at: Callable[[int, int], int]) -> Iterator[tuple[int, int, str]]:
    """Yield first byte, end and new text of each change of one node."""

    def begin(one: ast.expr) -> int:
        return at(one.lineno, one.col_offset)

    def end(one: ast.expr) -> int:
        return at(one.end_lineno or one.lineno, one.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, kind: type[ast.AST], new: str) -> Iterator[tuple[int, int, str]]:
        # the operator stands between its operands, perhaps beside brackets
        place = text.find(TOKENS[kind].encode(), end(left), begin(right))
        if place >= 0 and b"#" not in text[end(left) : place]:
            yield place, place + len(TOKENS[kind]), new

    match node:
        case ast.Compare(left=left, ops=ops, comparators=rights):
            for a, op, b in zip([left, *rights], ops, rights, strict=False):
                if type(op) in COMPARED:
                    yield from between(a, b, type(op), COMPARED[type(op)])
        case ast.BoolOp(op=op, values=values):
            for a, b in itertools.pairwise(values):
                yield from between(a, b, type(op), "or" if isinstance(op, ast.And) else "and")
        case ast.BinOp(left=a, op=op, right=b) if type(op) in COMPUTED and not _is_text(a):
            yield from between(a, b, type(op), COMPUTED[type(op)])
        case ast.AugAssign(target=a, op=op, value=b) if type(op) in COMPUTED:
            yield from between(a, b, type(op), COMPUTED[type(op)])
        case ast.Constant(value=value) if type(value) is int:
            yield begin(node), end(node), str(value + 1)
        case ast.Call(func=ast.Name() | ast.Attribute() as function) if _name(function) in SWAPPED:
            name = _name(function)
            yield end(function) - len(name), end(function), SWAPPED[name]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if _name(test) != "TYPE_CHECKING" and not isinstance(test, ast.Compare | ast.BoolOp | ast.Constant):
                yield begin(test), end(test), f"(not ({text[begin(test) : end(test)].decode()}))"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
