"""Checks of what callers give: each reads a kind of value and says what would be right."""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from commsim.core.errors import InputError
from commsim.core.units import share

__all__ = ["Check", "flag", "instance", "lists", "mapping", "numbers_of", "part", "quantity", "text", "texts", "whole"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a value must be.

    Parameters
    ----------
    right : str
        What would be right, as a message says it after "must be".
    read : callable
        Function from what was given to the value; raises ``TypeError``, ``ValueError`` or ``OverflowError``.
    """

    right: str
    read: Callable[[Any], Any]

    def __call__(self, name: str, given: Any) -> Any:
        """Return the value of an option.

        Raises
        ------
        InputError
            Naming the option, what was given and what would be right.
        """
        try:
            return self.read(given)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be {self.right}, got {reprlib.repr(given)}") from None


def text(example: str, *, may_be_empty: bool = False) -> Check:
    """Take text, but no empty one."""

    def read(given: Any) -> str:
        if not isinstance(given, str) or not (given or may_be_empty):
            raise TypeError
        return given

    return Check(f"text such as {example!r}", read)


def texts(example: str) -> Check:
    """Take several texts; one alone is refused, since it is a sequence of letters."""

    def read(given: Any) -> tuple[str, ...]:
        several = _several(given)
        if not all(isinstance(one, str) for one in several):
            raise TypeError
        return several

    return Check(f"a list such as [{example!r}]", read)


def whole(least: int | None = None) -> Check:
    """Take a whole number, numpy's too."""

    def read(given: Any) -> int:
        number = _index(given)
        if least is not None and number < least:
            raise ValueError
        return number

    return Check("a whole number" + ("" if least is None else f", {least} or more"), read)


def quantity(example: str) -> Check:
    """Take a number in SI units, or text with a unit, which is read where it is used."""
    return Check(
        f"a number or text such as {example!r}", lambda given: given if isinstance(given, str) else _real(given)
    )


def part(example: str) -> Check:
    """Take a number, or text such as ``10%``."""
    return Check(
        f"a number or text such as {example!r}", lambda given: share(given) if isinstance(given, str) else _real(given)
    )


def numbers_of(example: str) -> Check:
    """Take one number or several."""
    return Check(
        f"a number or a list such as {example}",
        lambda given: tuple(map(_real, _several(given) if isinstance(given, Iterable) else (given,))),
    )


def lists(example: str) -> Check:
    """Take a sequence of sequences, which are read where they are used."""
    return Check(f"lists such as {example}", _several)


def flag() -> Check:
    """Take a truth value."""

    def read(given: Any) -> bool:
        if type(given).__name__ not in ("bool", "bool_"):
            raise TypeError
        return bool(given)

    return Check("True or False", read)


def mapping(example: str) -> Check:
    """Take a mapping from names."""

    def read(given: Any) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise TypeError
        return given

    return Check(f"a mapping such as {example}", read)


def instance(right: str, types: Callable[[], tuple[type, ...]], *, or_text: bool = False) -> Check:
    """Take a value of a type, which is imported when one is given; with `or_text` also text or a path."""

    def read(given: Any) -> Any:
        if not (or_text and isinstance(given, (str, PathLike))) and not isinstance(given, types()):
            raise TypeError
        return given

    return Check(right, read)


def _several(given: Any) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes, Mapping)):
        raise TypeError
    return tuple(given)


def _index(given: Any) -> int:
    if isinstance(given, bool):
        raise TypeError
    return operator.index(given)


def _real(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise TypeError
    number = float(given)
    if number != number:
        raise ValueError
    return number
