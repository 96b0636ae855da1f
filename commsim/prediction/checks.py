"""Checks of what callers give: each reads a kind of value and says what would be right."""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from commsim.core.cost import Framing
from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.operations import OPERATIONS
from commsim.core.registry import usual_spelling
from commsim.core.units import share
from commsim.extensions import house

__all__ = [
    "CHECKS",
    "Check",
    "check_names",
    "checked",
    "checked_all",
    "fraction",
    "numbers_of",
    "quantity",
    "text",
    "texts",
    "whole_number",
]


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

    def __call__(self, name: str, value: Any) -> Any:
        """Return the value of an option.

        Raises
        ------
        InputError
            Naming the option, what was given and what would be right.
        """
        try:
            return self.read(value)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be {self.right}, got {reprlib.repr(value)}") from None


def text(example: str, *, may_be_empty: bool = False) -> Check:
    """Take text, but no empty one."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not (value or may_be_empty):
            raise TypeError
        return value

    return Check(f"text such as {example!r}", read)


def operation() -> Check:
    """Take an operation's name, in the spellings of MPI and nccl-tests too."""
    name = text("all_reduce")
    return Check(name.right, lambda value: usual_spelling(name.read(value), OPERATIONS))


def texts(example: str) -> Check:
    """Take several texts; one alone is refused, since it is a sequence of letters."""

    def read(value: Any) -> tuple[str, ...]:
        several = _several(value)
        if not all(isinstance(one, str) for one in several):
            raise TypeError
        return several

    return Check(f"a list such as [{example!r}]", read)


def whole_number(least: int | None = None) -> Check:
    """Take a whole number, numpy's too."""

    def read(value: Any) -> int:
        number = _index(value)
        if least is not None and number < least:
            raise ValueError
        return number

    return Check("a whole number" + ("" if least is None else f", {least} or more"), read)


def quantity(example: str) -> Check:
    """Take a number in SI units, or text with a unit, which is read where it is used."""
    return Check(
        f"a number or text such as {example!r}", lambda given: given if isinstance(given, str) else _real(given)
    )


def fraction(example: str) -> Check:
    """Take a number, or text such as ``10%``."""

    def read(given: object) -> float:
        try:
            return share(given) if isinstance(given, str) else _real(given)
        except InputError:  # the message has the option's name, and says that a number is right too
            raise ValueError(given) from None

    return Check(f"a number or text such as {example!r}", read)


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

    def read(value: Any) -> bool:
        if type(value).__name__ not in ("bool", "bool_"):
            raise TypeError
        return bool(value)

    return Check("True or False", read)


def mapping(example: str) -> Check:
    """Take a mapping from names."""

    def read(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError
        return value

    return Check(f"a mapping such as {example}", read)


def instance(right: str, kind: type | str, *, or_text: bool = False) -> Check:
    """Take a value of a type, an extension's by its name; with `or_text` also text or a path."""

    def read(value: Any) -> Any:
        if or_text and isinstance(value, (str, PathLike)):
            return value
        if not isinstance(value, house().services[f"value {kind}"] if isinstance(kind, str) else kind):
            raise TypeError
        return value

    return Check(right, read)


def _several(values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, Mapping)):
        raise TypeError
    return tuple(values)


def _index(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError
    number = float(value)
    if number != number:
        raise ValueError
    return number


# How the value of each keyword is checked; `placement` is read with its network, `work` by the work.
CHECKS: Mapping[str, Check] = {
    "fail": texts("links:5%"),
    "scale": texts("links:1*0.5"),
    "flap": texts("link:leaf0:spine0@1ms+1ms"),
    "detection": quantity("1ms"),
    "rto": quantity("1ms"),
    "overhead": quantity("1us"),
    "recv_overhead": quantity("1us"),
    "reduce_rate": quantity("50GB/s"),
    "software": text("gloo"),
    "n_ranks": whole_number(),
    "placement": Check("", lambda given: given),
    "routing": text("ecmp"),
    "seed": whole_number(0),
    "hashes": whole_number(1),
    "engine": text("flow", may_be_empty=True),
    "transport": instance("the name of a transport, such as 'dctcp', or a Spraying", "Spraying", or_text=True),
    "fabric": instance("a Fabric", "Fabric"),
    "packets": mapping("{'window': '64KiB'}"),
    "operation": operation(),
    "compressor": text("top_k:density=0.01"),
    "groups": lists("[[0, 1], [2, 3]]"),
    "jobs": instance("a file of jobs or a Composition", "Composition", or_text=True),
    "traffic": instance("a pattern such as 'incast:senders=8', a CSV file, or Messages", "Messages", or_text=True),
    "work": Check("", lambda given: given),
    "assume_programmable": flag(),
    "tolerance": fraction("10%"),
    "method": text("auto"),
    "start_jitter": quantity("1ms"),
    "iterations": whole_number(1),
    "payload": quantity("4096B"),
    "header": quantity("82B"),
    "framing": instance("a Framing", Framing),
    "trace": flag(),
}
# Keywords of single questions.
OF_QUESTIONS: Mapping[str, Check] = {
    "algorithms": texts("ring_all_reduce"),
    "named": texts("nccl"),
    "collective": text("ring_all_reduce"),
    "root": whole_number(0),
    "max_messages": whole_number(1),
    "n_workers": whole_number(),
    "n_servers": whole_number(),
    "density": numbers_of("[0.01, 0.1]"),
    "block": whole_number(),
    "pattern": text("random"),
}


def checked(name: str, value: Any) -> Any:
    """Return the value of a keyword.

    Raises
    ------
    InputError
        Naming the keyword, what was given and what would be right.
    """
    return (CHECKS.get(name) or OF_QUESTIONS[name])(name, value)


def checked_all(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the keywords that are given; None is the same as not given.

    Raises
    ------
    InputError
        Same as :func:`checked`.
    """
    return {name: checked(name, value) for name, value in options.items() if value is not None}


def check_names(keywords: Mapping[str, object], options: type) -> None:
    """Refuse a keyword that is no option.

    Parameters
    ----------
    keywords : mapping of str to value
        Keywords by name.
    options : type
        Typed dictionary of those that are known, from this module.

    Raises
    ------
    TypeError
        It says what the keyword may have been meant for.
    """
    known = sorted(options.__annotations__)
    for name in sorted(keywords.keys() - known):
        hint = did_you_mean(alike(name, known))
        raise TypeError(f"no option is called {name!r}; {hint}known: {', '.join(known)}")
