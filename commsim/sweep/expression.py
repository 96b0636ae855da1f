"""Filters: comparisons and arithmetic over the parameters of a point, read by a small evaluator of our own."""

from __future__ import annotations

import ast
import difflib
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from commsim.core.errors import InputError

from .axis import read_quantity

MAX_CHARACTERS = 1000
MAX_DEPTH = 50
MAX_DIGITS = 30

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: math.pow,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


class Expression:
    """One filter, such as ``collective.ranks <= topology.n_hosts and collective.size >= "1MiB"``.

    Known are ``and``, ``or``, ``not``, ``== != < <= > >= in``, ``+ - * / // % **``, numbers, text, lists and the names
    of parameters; nothing can be called. Text beside a number is read as a quantity with a unit.

    Parameters
    ----------
    text : str
        As it was written.

    Raises
    ------
    InputError
        If it is too long or too deep, or has anything else in it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_CHARACTERS:
            raise InputError(f"a filter has at most {MAX_CHARACTERS} characters, got {len(text)}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise InputError(f"filter {text!r} cannot be read; an example: ranks <= 64 and size > '1MiB'") from None
        names: dict[str, None] = {}
        self._check(self._tree, names, 0)
        self.names = tuple(names)

    def __call__(self, values: Callable[[str], Any]) -> bool:
        """Whether a point stays.

        Parameters
        ----------
        values : callable
            From a name in the filter to its value.

        Raises
        ------
        InputError
            If it divides by zero, compares what cannot be compared, or is not true or false.
        """
        try:
            answer = self._value(self._tree, values)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InputError(f"filter {self.text!r}: {error}") from None
        if not isinstance(answer, bool):
            raise InputError(f"filter {self.text!r} must be true or false, got {answer!r}")
        return answer

    def _check(self, node: ast.AST, names: dict[str, None], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InputError(f"filter {self.text!r} is nested more than {MAX_DEPTH} deep")
        dotted = _dotted(node)
        if dotted is not None:
            names[dotted] = None
            return
        if isinstance(node, ast.Constant):
            self._check_constant(node.value)
        elif not isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.List, ast.Tuple)):
            self._refuse(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._check(child, names, depth + 1)
            elif isinstance(child, (ast.operator, ast.cmpop)) and type(child) not in _KNOWN:
                self._refuse(child)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, (ast.Not, ast.USub, ast.UAdd)):
            self._refuse(node.op)

    def _check_constant(self, value: object) -> None:
        if not isinstance(value, (bool, int, float, str)):
            raise InputError(f"filter {self.text!r}: values are numbers, text, True and False, got {value!r}")
        if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
            raise InputError(f"filter {self.text!r}: a whole number has at most {MAX_DIGITS} digits")

    def _refuse(self, node: ast.AST) -> None:
        known = "names, numbers, text, lists, and or not, comparisons and arithmetic"
        raise InputError(f"filter {self.text!r}: {type(node).__name__} is not allowed; known: {known}")

    def _value(self, node: ast.expr, values: Callable[[str], Any]) -> Any:
        dotted = _dotted(node)
        if dotted is not None:
            return values(dotted)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(member, values) for member in node.elts]
        if isinstance(node, ast.BoolOp):
            return self._joined(node, values)
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand, values)
            if isinstance(node.op, ast.Not):
                return not _truth(inner)
            return -_number(inner) if isinstance(node.op, ast.USub) else _number(inner)
        if isinstance(node, ast.BinOp):
            left, right = (_number(self._value(side, values)) for side in (node.left, node.right))
            return _ARITHMETIC[type(node.op)](left, right)
        assert isinstance(node, ast.Compare)  # _check let nothing else pass
        return self._compared(node, values)

    def _joined(self, node: ast.BoolOp, values: Callable[[str], Any]) -> bool:
        wanted = isinstance(node.op, ast.Or)
        return wanted if any(_truth(self._value(part, values)) is wanted for part in node.values) else not wanted

    def _compared(self, node: ast.Compare, values: Callable[[str], Any]) -> bool:
        left = self._value(node.left, values)
        for op, side in zip(node.ops, node.comparators, strict=True):
            right = self._value(side, values)
            if isinstance(op, (ast.In, ast.NotIn)):
                if not isinstance(right, list):
                    raise InputError(f"filter {self.text!r}: after `in` comes a list, got {right!r}")
                good = any(operator.eq(*_alike(left, one)) for one in right) is isinstance(op, ast.In)
            else:
                good = _COMPARISONS[type(op)](*_alike(left, right))
            if not good:
                return False
            left = right
        return True


_KNOWN = {*_ARITHMETIC, *_COMPARISONS, ast.In, ast.NotIn}


def _dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"and, or and not join comparisons, got {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, str):
        value = read_quantity(value)[0]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"arithmetic is of numbers, got {value!r}")
    return value


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Read text beside a number as a quantity."""
    if isinstance(left, str) is isinstance(right, str):
        return left, right
    return (_number(left), right) if isinstance(left, str) else (left, _number(right))


def all_of(filters: tuple[Expression, ...], values: Callable[[str], Any]) -> bool:
    """Whether a point passes every filter."""
    return all(keep(values) for keep in filters)


def lookup(parameters: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return a function from a dotted name, or a last part that only one parameter has, to its value."""

    def value(name: str) -> Any:
        if name in parameters:
            return parameters[name]
        ending = [known for known in parameters if known.endswith(f".{name}")]
        if len(ending) == 1:
            return parameters[ending[0]]
        known = ", ".join(ending or parameters)
        close = difflib.get_close_matches(
            name, [key for full in parameters for key in (full, full.rpartition(".")[2])], n=1
        )
        hint = f"did you mean {close[0]}? " if close else ""
        problem = f"{name} may be {' or '.join(ending)}" if ending else f"there is no {name}; {hint}known: {known}"
        raise InputError(problem)

    return value
