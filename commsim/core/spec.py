"""Read ``name:key=value,key=value``, turn the values into what the function's annotations ask for, and write it."""

from __future__ import annotations

import inspect
import numbers
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any

from commsim.core.limits import is_there

from .errors import InputError, alike, did_you_mean, wrong_kind
from .units import PARSERS, WRITERS

# Of files that hold a network, a placement, a schedule or a result of ours.
SUFFIXES = (".toml", ".json", ".npz")
# ``FILE.py``, and what is asked of it.
OWN_FILE = re.compile(r"(.*?\.py)(?::(.*))?", re.DOTALL)
# What a number of each kind is.
_NUMBERS: dict[Any, re.Pattern[str]] = {
    int: re.compile(r"[+-]?\d{1,4000}", re.ASCII),
    float: re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII),
}


class OwnFile(str):
    """Text that may name Python code to be executed, such as ``FILE.py:function:key=value,...``.

    Only text of this type is: that of a flag of the command line, and what a caller of Python made of it. What data
    says, a file or a request, is plain text, and so is all that is computed from text, whose code is refused.

    Examples
    --------
    >>> import commsim as cs
    >>> time = cs.predict(cs.OwnFile("my_ring.py:backwards=true"), "star:n_hosts=4", "1MiB")  # doctest: +SKIP
    """

    __slots__ = ()


def derived(text: str, part: str) -> str:
    """Return a part of a text, or what was made of it, which may be executed if the text may be."""
    return OwnFile(part) if isinstance(text, OwnFile) else part


def is_own_file(text: str) -> bool:
    """Whether `text` is ``FILE.py``, ``FILE.py:key=value,...`` or ``FILE.py:function:key=value,...``."""
    match = OWN_FILE.fullmatch(text)
    return match is not None and ("@" not in match[1] or is_there(match[1]))


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """Split ``name:key=value,key=value`` into the name and the raw values.

    Raises
    ------
    InputError
        If the name is empty, a parameter has no ``=``, or a key comes twice.
    """
    if not isinstance(text, str):
        raise wrong_kind("name", "text such as 'name:key=value,key=value'", text)
    name, _, rest = text.partition(":")
    if not name.strip():
        raise InputError(f"expected name:key=value,key=value, got {text!r}")
    raw: dict[str, str] = {}
    for part in rest.split(",") if rest.strip() else []:
        key, equals, value = (p.strip() for p in part.partition("="))
        if not (equals and key and value):
            raise InputError(f"expected key=value in {text!r}, got {part!r}")
        if key in raw:
            raise InputError(f"{key} is given twice in {text!r}")
        raw[key] = value
    return name.strip(), raw


def with_parameter(spec: str, parameter: str) -> str:
    """Return a spec with a further ``key=value``.

    Examples
    --------
    >>> with_parameter("nccl", "algorithm=ring"), with_parameter("nccl:version=2.27", "algorithm=ring")
    ('nccl:algorithm=ring', 'nccl:version=2.27,algorithm=ring')
    """
    return f"{spec}{',' if ':' in spec else ':'}{parameter}"


def network_with(text: str, parameter: str) -> str:
    """Return the text of a network with a further ``key=value``, which in ``MACHINE@FABRIC`` belongs to the fabric.

    Examples
    --------
    >>> network_with("dgx-h100:rates=spec@star", "machines=2")
    'dgx-h100:rates=spec@star:machines=2'
    """
    machine, at, fabric = text.rpartition("@")
    return f"{machine}{at}{with_parameter(fabric, parameter)}"


def split_file(text: str) -> tuple[str, dict[str, str]]:
    """Split ``FILE:key=value,...`` into the file and its options; a name with a colon that is there is a file."""
    if is_there(text) or ":" not in text:
        return text, {}
    return split_spec(text)


def full_keys(raw: Mapping[str, str], parameters: Collection[str]) -> dict[str, str]:
    """Return arguments with the full names of counts: ``gpus=4`` where there is `n_gpus` and no `gpus`.

    Raises
    ------
    InputError
        If a count is given under both names.
    """
    found: dict[str, str] = {}
    for key, value in raw.items():
        full = f"n_{key}" if key not in parameters and f"n_{key}" in parameters else key
        if full in found:
            raise InputError(f"{full} is given twice: {found[full]} and {value}")
        found[full] = value
    return found


def read_arguments(
    build: Callable[..., Any], raw: Mapping[str, str], names: tuple[str, ...] = (), name: str = "", more: str = ""
) -> dict[str, Any]:
    """Convert raw text to the types that `build` declares.

    Parameters
    ----------
    build : callable
        A registered function with annotated parameters.
    raw : mapping of str to str
        What the user wrote.
    names : tuple of str
        Parameters that the caller supplies itself; the user may not.
    name : str
        Name that the user knows it by, for messages; default: that of the function.
    more : str
        Names of parameters that the caller has read before, for messages.

    Raises
    ------
    InputError
        For an unknown, missing or unreadable parameter.
    """
    name = name or build.__name__
    hints = typing.get_type_hints(build, include_extras=True)
    parameters = {k: p for k, p in inspect.signature(build).parameters.items() if k not in names}
    values: dict[str, Any] = {}
    given = raw if raw.keys() <= parameters.keys() else full_keys(raw, parameters)
    for key, text in given.items():
        if key not in parameters:
            hint = did_you_mean(alike(key, parameters))
            known = ", ".join((*parameters, *([more] if more else ()))) or "none"
            raise InputError(f"{name} has no parameter {key!r}; {hint}known: {known}")
        values[key] = _convert(text, hints[key], f"{name}: {key}")
    missing = [k for k, p in parameters.items() if p.default is inspect.Parameter.empty and k not in values]
    if missing:
        example = ",".join(f"{key}=4" for key in missing)
        such = f", such as {name}:{example}" if all(hints[key] is int for key in missing) else ""
        raise InputError(f"{name} needs {', '.join(missing)}{such}")
    return values


def write_spec(build: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Write a call so that :func:`split_spec` and :func:`read_arguments` give exactly `arguments` back.

    Parameters
    ----------
    build : callable
        A registered function with annotated parameters.
    arguments : mapping of str to Any
        Its arguments; those that are None are left out.
    """
    hints = typing.get_type_hints(build, include_extras=True)
    parts: list[str] = []
    for key, value in arguments.items():
        if value is None:
            continue
        _, quantity, _ = _meaning(hints[key])
        if quantity:
            value = WRITERS[quantity](value)
        elif isinstance(value, bool):
            value = str(value).lower()
        parts.append(f"{key}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}")
    return f"{build.__name__}:{','.join(parts)}" if parts else build.__name__


def check_arguments(build: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse from Python what the command line would refuse: a fraction for a count, text for a quantity.

    Raises
    ------
    InputError
        If an argument is not of the type that `build` declares.
    """
    hints = typing.get_type_hints(build, include_extras=True)
    for key, value in arguments.items():
        hint, quantity, optional = _meaning(hints[key])
        if value is None and optional:
            continue
        if typing.get_origin(hint) is typing.Literal and value not in typing.get_args(hint):
            known = ", ".join(typing.get_args(hint))
            raise InputError(f"{build.__name__}: {key} must be one of {known}, got {value!r}")
        if hint is int and not _is_whole(value):
            raise InputError(f"{build.__name__}: {key} must be a whole number, got {value!r}")
        if hint == tuple[int, ...] and not (isinstance(value, tuple) and all(map(_is_whole, value))):
            raise InputError(f"{build.__name__}: {key} must be whole numbers such as (4, 4, 4), got {value!r}")
        takes_number = hint is float or quantity
        if takes_number and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            si = {"bandwidth": " of bytes per second", "time": " of seconds", "size": " of bytes", "ratio": "", "": ""}
            raise InputError(f"{build.__name__}: {key} must be a number{si[quantity]}, got {value!r}")


def _meaning(hint: Any) -> tuple[Any, str, bool]:
    """Return the type that an annotation ``X`` or ``X | None`` has, its quantity or "", and whether None is allowed."""
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if optional:
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    return hint, str(next(iter(getattr(hint, "__metadata__", ())), "")), optional


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _letters(name: str) -> str:
    """Return a name as others may write it: NCCL's own ``NVLSTree`` is our ``nvls_tree``."""
    return name.lower().replace("_", "").replace("-", "")


def _convert(text: str, hint: Any, name: str) -> Any:
    hint, quantity, _ = _meaning(hint)
    if quantity:
        return PARSERS[quantity](text, name)
    if typing.get_origin(hint) is typing.Literal:
        known = {_letters(one): one for one in typing.get_args(hint)}
        if _letters(text) not in known:
            raise InputError(f"{name} must be one of {', '.join(typing.get_args(hint))}, got {text!r}")
        return known[_letters(text)]
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} must be true or false, got {text!r}")
        return text.lower() == "true"
    if hint is int:
        return _number(int, text, name, "a whole number")
    if hint is float:
        value = _number(float, text.removesuffix("%"), name, "a number")
        return value / 100 if text.endswith("%") else value
    if typing.get_origin(hint) is tuple:
        kind, wanted = (
            (float, "numbers such as 1.5x2") if float in typing.get_args(hint) else (int, "whole numbers such as 4x4x4")
        )
        return tuple(_number(kind, part, name, wanted) for part in text.split("x"))
    return text


def is_whole(text: str, most_digits: int = 9) -> bool:
    """Whether text is a whole number, of so many digits 0 to 9; ``str.isdecimal`` also takes those of other scripts."""
    return text.isascii() and text.isdecimal() and len(text) <= most_digits


def as_number(text: str) -> float:
    """Return the number that a text is, with digits 0 to 9; ``float`` also takes ``1_0``, other scripts' and ``nan``.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not is_number(text.strip(), float):
        raise ValueError(text)
    return float(text)


def as_whole(text: str) -> int:
    """Return the whole number that a text is, with digits 0 to 9.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not is_number(text.strip(), int):
        raise ValueError(text)
    return int(text)


def is_number(text: str, kind: type[int] | type[float]) -> bool:
    """Whether text is a number of a kind: not 1_000, other scripts' digits, nan or infinity, as Python has it."""
    return _NUMBERS[kind].fullmatch(text) is not None


def _number(kind: type[int] | type[float], text: str, name: str, wanted: str) -> Any:
    if _NUMBERS[kind].fullmatch(text) is None:
        raise InputError(f"{name} must be {wanted}, got {text!r}")
    value = kind(text)
    if abs(value) > (2**63 if kind is int else sys.float_info.max):
        raise InputError(f"{name} is out of range, got {text!r}")
    return value
