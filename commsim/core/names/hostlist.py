"""Slurm's host lists: ``node[01-16,20],login1``."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from commsim.core.errors import InputError

# More than this are refused before they are written out, so that a short text cannot fill the memory.
MAX_NAMES = 2**17

_PIECE = re.compile(r"[^\[\],\s]+|\[[^\[\]]*\]")
_RANGE = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?", re.ASCII)
_NUMBERED = re.compile(r"(.*?)(\d{1,15})", re.ASCII | re.DOTALL)
_NAME = re.compile(r"[^\s,\[\]#=\"'{}]+")

# Of the forms that our own tables print: ``n[0-3]x2``, ``h0x4``, ``h0-3x4``.
_LISTED = re.compile(r"([^\[\]]*\[.*\][^\[\]x]*)(?:x([1-9]\d{0,3}))?", re.ASCII)
_COUNT = re.compile(r"(.+)x([1-9]\d{0,4})", re.ASCII)
_SPAN = re.compile(r"(.*?)(0|[1-9]\d{0,8})-(0|[1-9]\d{0,8})(?:x([1-9]\d{0,4}))?", re.ASCII)
_MOST = 100_000  # nodes of one range


def expand_hosts(text: str, limit: int = MAX_NAMES) -> tuple[str, ...]:
    """Write out a list of names.

    Parameters
    ----------
    text : str
        Names separated by commas; each may have ranges in brackets. The number of digits of a range's lower end is
        that of all its numbers: ``n[08-10]`` is n08, n09, n10. Several brackets in a name are all combinations, the
        last one running fastest.
    limit : int
        Largest number of names.

    Returns
    -------
    tuple of str
        In the order of the text; repeated names are kept.

    Raises
    ------
    InputError
        If the brackets are not well formed, a range runs backwards, or there would be more than `limit` names.
    """
    names: list[str] = []
    words = split_hosts(text.strip())
    if "" in words:
        raise InputError(f"{text!r} is not a list of hosts: a name is missing")
    for word in words:
        parts = [_numbers(piece, text) if piece[0] == "[" else [piece] for piece in _PIECE.findall(word)]
        if sum(map(len, _PIECE.findall(word))) != len(word):
            raise InputError(f"{text!r} is not a list of hosts: the brackets of {word!r} do not close")
        n_names = math.prod(len(part) for part in parts)
        if len(names) + n_names > limit:
            raise InputError(f"{text!r} names more than {limit} hosts")
        names += map("".join, itertools.product(*parts))
    return tuple(names)


def compress_hosts(names: Iterable[str]) -> str:
    """Write names shortly, in their order; :func:`expand_hosts` gives exactly them back.

    Raises
    ------
    InputError
        If a name has a character that the syntax needs.
    """
    runs: list[tuple[str, list[list[str]]]] = []  # what comes before the numbers, and first and last of each range
    for name in names:
        match = _NUMBERED.fullmatch(check_name(name))
        prefix, number = (match[1], match[2]) if match else (name, "")
        if not number or not runs or runs[-1][0] != prefix or not runs[-1][1]:
            runs.append((prefix, [[number, number]] if number else []))
        elif _follows(number, *runs[-1][1][-1]):
            runs[-1][1][-1][1] = number
        else:
            runs[-1][1].append([number, number])
    return ",".join(_range_text(prefix, ranges) for prefix, ranges in runs)


def check_name(name: str, what: str = "a host") -> str:
    """Return a name that can be written in the files of schedulers.

    Raises
    ------
    InputError
        If it is empty, or has a character that means something there.
    """
    if not (_NAME.fullmatch(name) and name.isprintable()):
        raise InputError(f"the name of {what} must be text without spaces and any of , [ ] # = {{ }}, got {name!r}")
    return name


def split_hosts(text: str) -> list[str]:
    """Split a list of names at the commas outside of brackets."""
    depth, start = 0, 0
    words = []
    for end, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            words.append(text[start:end])
            start = end + 1
    return [*words, text[start:]]


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return each name as often as it counts: ``h2x4`` is ``h2`` four times."""
    matches = [(name, _COUNT.fullmatch(name)) for name in names]
    return [one for name, match in matches for one in ([match[1]] * int(match[2]) if match else [name])]


def spelled_out(names: Sequence[str]) -> list[str]:
    """Return a name for each GPU: ``h2x4`` is ``h2`` four times, ``h2-3x2`` is ``h2 h2 h3 h3``.

    Host lists of Slurm are written out, ``n[019-021,027]x2`` too.
    """
    found = []
    for name in names:
        if listed := _LISTED.fullmatch(name):
            found += [host for host in expand_hosts(listed[1]) for _ in range(int(listed[2] or 1))]
            continue
        match = _SPAN.fullmatch(name)
        first, last, times = (int(match[i] or 1) for i in (2, 3, 4)) if match else (0, -1, 1)
        if match and 0 <= last - first < _MOST // times:
            found += [f"{match[1]}{number}" for number in range(first, last + 1) for _ in range(times)]
        else:
            found += repeated_names([name])
    return found


def _numbers(bracket: str, text: str) -> Sequence[str]:
    """Numbers of one pair of brackets; a range of ranges is counted before it is written out."""
    ranges: list[range] = []
    widths: list[int] = []
    for part in bracket[1:-1].split(","):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InputError(f"{text!r}: {part!r} is not a range of numbers such as 01-16")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
        widths.append(len(match[1]))
    n_numbers = sum(len(numbers) for numbers in ranges)
    if n_numbers > MAX_NAMES:
        raise InputError(f"{text!r} names more than {MAX_NAMES} hosts")
    return [f"{i:0{width}d}" for numbers, width in zip(ranges, widths, strict=True) for i in numbers]


def _follows(number: str, first: str, last: str) -> bool:
    return number == f"{int(last) + 1:0{len(first)}d}" and last == f"{int(last):0{len(first)}d}"


def _range_text(prefix: str, ranges: list[list[str]]) -> str:
    if not ranges or ranges == [[ranges[0][0]] * 2]:
        return prefix + (ranges[0][0] if ranges else "")
    return f"{prefix}[{','.join(a if a == b else f'{a}-{b}' for a, b in ranges)}]"
