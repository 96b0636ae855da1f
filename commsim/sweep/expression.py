"""Filters: comparisons and arithmetic over a point's parameters; docs/design_parts.md has why no library is used."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from commsim.core.errors import InputError, alike, did_you_mean

from .quantities import read_quantity

MAX_CHARACTERS = 1000
MAX_DEPTH = 50
MAX_DIGITS = 30

# From a name in a filter to its value.
Values = Callable[[str], Any]
# A part of a filter, ready to be evaluated.
Part = Callable[[Values], Any]


class Expression:
    """One filter, such as ``collective.ranks <= topology.n_hosts and collective.size >= "1MiB"``.

    Known are ``and``, ``or``, ``not``, ``== != < <= > >= in``, ``+ - * / // % **``, numbers, text, lists and the names
    of parameters; nothing can be called. Text beside a number is read as a quantity with a unit.

    Parameters
    ----------
    text : str
        Text of the filter.

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
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise InputError(f"filter {text!r} cannot be read; an example: ranks <= 64 and size > '1MiB'") from None
        self._whole = self._part(tree, 0)

    def __call__(self, values: Values) -> bool:
        """Whether a point stays.

        Parameters
        ----------
        values : callable
            Function from a name in the filter to its value.

        Raises
        ------
        InputError
            If it divides by zero, compares what cannot be compared, or is not true or false.
        """
        try:
            answer = self._whole(values)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InputError(f"filter {self.text!r}: {error}") from None
        if not isinstance(answer, bool):
            raise InputError(f"filter {self.text!r} must be true or false, got {answer!r}")
        return answer

    def _part(self, node: ast.expr, depth: int) -> Part:
        """Turn a node into a function; what is not allowed is refused here, whether or not it is ever evaluated."""
        if depth > MAX_DEPTH:
            raise InputError(f"filter {self.text!r} is nested more than {MAX_DEPTH} deep")
        name = _dotted(node)
        if name is not None:
            return lambda values: values(name)
        if isinstance(node, ast.Constant):
            constant = self._constant(node.value)
            return lambda _: constant
        parts = [self._part(child, depth + 1) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, (ast.List, ast.Tuple)):
            return lambda values: [part(values) for part in parts]
        if isinstance(node, ast.BoolOp):
            ends = isinstance(node.op, ast.Or)
            return lambda values: ends if any(_truth(part(values)) is ends for part in parts) else not ends
        if isinstance(node, ast.Compare):
            tests = [_COMPARISONS.get(type(op)) or self._refuse(op) for op in node.ops]
            return lambda values: _compared(tests, parts, values)
        if isinstance(node, (ast.UnaryOp, ast.BinOp)) and type(node.op) in _ARITHMETIC:
            compute = _ARITHMETIC[type(node.op)]
            return lambda values: compute(*(part(values) for part in parts))
        return self._refuse(getattr(node, "op", node))

    def _refuse(self, node: ast.AST) -> NoReturn:
        known = "names, numbers, text, lists, and or not, comparisons and arithmetic"
        raise InputError(f"filter {self.text!r}: {type(node).__name__} is not allowed; known: {known}")

    def _constant(self, value: object) -> object:
        if not isinstance(value, (bool, int, float, str)):
            raise InputError(f"filter {self.text!r}: values are numbers, text, True and False, got {value!r}")
        if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
            raise InputError(f"filter {self.text!r}: a whole number has at most {MAX_DIGITS} digits")
        return value


def _dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _compared(tests: Sequence[Callable[[Any, Any], bool]], parts: Sequence[Part], values: Values) -> bool:
    left = parts[0](values)
    for test, part in zip(tests, parts[1:], strict=True):
        right = part(values)
        if not test(left, right):
            return False
        left = right
    return True


def _is_in(one: Any, members: Any) -> bool:
    if not isinstance(members, list):
        raise TypeError(f"after `in` comes a list, got {members!r}")
    return any(operator.eq(*_alike(one, member)) for member in members)


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


def _of_numbers(compute: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: compute(*map(_number, values))


def _of_alike(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: compare(*_alike(left, right))


_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Not: lambda value: not _truth(value), ast.UAdd: _of_numbers(operator.pos), ast.USub: _of_numbers(operator.neg),
    ast.Add: _of_numbers(operator.add), ast.Sub: _of_numbers(operator.sub), ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv), ast.FloorDiv: _of_numbers(operator.floordiv),
    ast.Mod: _of_numbers(operator.mod), ast.Pow: _of_numbers(math.pow),
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.In: _is_in, ast.NotIn: lambda one, members: not _is_in(one, members),
    ast.Eq: _of_alike(operator.eq), ast.NotEq: _of_alike(operator.ne), ast.Lt: _of_alike(operator.lt),
    ast.LtE: _of_alike(operator.le), ast.Gt: _of_alike(operator.gt), ast.GtE: _of_alike(operator.ge),
}  # fmt: skip


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
        hint = did_you_mean(alike(name, [key for full in parameters for key in (full, full.rpartition(".")[2])]))
        problem = f"{name} may be {' or '.join(ending)}" if ending else f"no {name}; {hint}known: {known}"
        raise InputError(problem)

    return value
