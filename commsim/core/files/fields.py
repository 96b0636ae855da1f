"""Read the fields of a table from a TOML or JSON file strictly: every fault names file, line, field and value."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from commsim.core.errors import InputError, alike, did_you_mean, shorten
from commsim.core.files.opening import read_regular

Keys = tuple[str | int, ...]
MAX_BYTES = 2**23
MAX_FIELD = 200  # letters of a field's path that a message has

_TOKEN = re.compile(
    r'(?P<scalar>"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[^\s"\'#\][{},:=]+)'
    r"|(?P<mark>[][{},:=\n])|(?P<comment>\#[^\n]*)|(?P<other>.)",
    re.DOTALL,
)
_HEADER = re.compile(r"[ \t]*(\[\[?)([^\]\n]*)\]\]?[^\n]*")
T = TypeVar("T")

_EXAMPLES = {
    "parse_bandwidth": '"400Gbps"', "parse_rate": '"400Gbps"',
    "parse_time": '"1.5us"', "parse_size": '"64MiB"', "parse_cost": '"0.02ns/B"',
}  # fmt: skip


def line_of(path: str | Path, keys: Keys) -> int:
    """Line of a field such as ``("links", 3, "bandwidth")``, counted from 1.

    Returns
    -------
    int
        The line of the field, or of the innermost table around it that is found; 0 without one, or the file is
        large.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        return 0
    try:
        text = read_regular(path, MAX_BYTES).decode()  # a few million tokens a second
    except (InputError, UnicodeDecodeError):
        return 0
    best, depth = 0, 0
    for keys_there, line in _Walk(text, is_toml=path.suffix == ".toml").fields():
        n = min(len(keys_there), len(keys))  # [[jobs]] is the first line of jobs too
        if n > depth and keys_there[:n] == keys[:n]:
            best, depth = line, n
            if depth == len(keys):
                break
    return best


class _Walk:
    """One pass over the tokens of a file that is known to be well formed."""

    def __init__(self, text: str, is_toml: bool) -> None:
        self._text, self._is_toml = text, is_toml
        self._prefix: Keys = ()  # the table that the last [header] opened
        self._counts: dict[Keys, int] = {}
        self._open: list[str | int] = [""] if is_toml else []  # per open bracket: the key, or the member's number
        self._scalar = ""

    def fields(self) -> Iterator[tuple[Keys, int]]:
        """Every field and every member of a list with its line, in the order of the file."""
        position, line, line_starts, member_starts = 0, 1, True, False
        while position < len(self._text):
            header = _HEADER.match(self._text, position) if self._is_toml and line_starts else None
            if header is not None and len(self._open) == 1:
                position = header.end()
                yield self._enter(header), line
                continue
            token = _TOKEN.match(self._text, position)
            assert token is not None  # the last alternative takes any character
            word = token.group()
            if member_starts and token.lastgroup != "comment" and word not in "]\n \t\r":
                yield (*self._prefix, *self._open), line
                member_starts = False
            if token.lastgroup == "scalar":
                self._scalar = word
            elif token.lastgroup == "mark":
                member_starts = self._mark(word) or (member_starts and word == "\n")
                if word in (":", "="):
                    yield (*self._prefix, *self._open), line
            line += word.count("\n")
            line_starts = word == "\n"
            position = token.end()

    def _mark(self, word: str) -> bool:
        """Follow a bracket, comma or colon; return whether the next token begins a member of a list."""
        if word in ("[", "{"):
            self._open.append(0 if word == "[" else "")
        elif word in ("]", "}") and self._open:
            self._open.pop()
        elif word in (":", "=") and self._open and isinstance(self._open[-1], str):
            self._open[-1] = self._scalar.strip("\"'")
        elif word == "," and self._open and isinstance(self._open[-1], int):
            self._open[-1] += 1
            return True
        return word == "["

    def _enter(self, header: re.Match[str]) -> Keys:
        """Keys of the table that a TOML header opens; ``[[links]]`` counts."""
        names: Keys = tuple(part.strip().strip("\"'") for part in header[2].split("."))
        if header[1] == "[[":
            self._counts[names] = self._counts.get(names, -1) + 1
            names = (*names, self._counts[names])
        self._prefix, self._open = names, [""]
        return names


class TableFields:
    """One table of a file; remembers which fields were asked for, so that the others can be refused.

    Parameters
    ----------
    tree : mapping
        The table as the decoder returned it.
    path : path
        The file, for messages.
    keys : tuple of str and int
        Path to the table in the file: ``("links", 3)``.
    """

    def __init__(self, tree: Mapping[str, Any], path: str | Path, keys: Keys = ()) -> None:
        self._tree, self._path, self._keys = tree, path, keys
        self._asked: set[str] = set()
        self._looked_for: set[str] = set()  # fields that may be there, and were not: they are known too

    def __contains__(self, key: str) -> bool:
        self._looked_for.add(key)
        return key in self._tree

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Raise for a field whose value is not what was wanted."""
        if key not in self._tree:
            other = key.removesuffix("s") if key.endswith("s") else f"{key}s"
            self.fail(key, f"is missing: {wanted}" + (f"; {other} is no field" if other in self._tree else ""))
        self.fail(key, f"must be {wanted}, got {shorten(repr(self._tree[key]))}")

    def fail(self, key: str | int | None, message: str) -> NoReturn:
        """Raise an error that names the file, the line and the field."""
        keys = self._keys if key is None else (*self._keys, key)
        line = line_of(self._path, keys)
        where = f"{self._path}, line {line}" if line else f"{self._path}"
        gap = "" if message.startswith(":") else " "
        raise InputError(f"{where}: {_dotted(keys)}{gap}{message}" if keys else f"{where}: {message}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return a field that is text; required without a default."""
        value = self._get(key, default)
        return value if isinstance(value, str) else self.refuse(key, "text")

    def one_of(self, key: str, known: tuple[str, ...], default: str | None = None) -> str:
        """Return a field that is one of some words.

        Parameters
        ----------
        key : str
            The field.
        known : tuple of str
            The words.
        default : str, optional
            Default of a missing field; required without.
        """
        value = self._get(key, default)
        return value if isinstance(value, str) and value in known else self.refuse(key, f"one of {', '.join(known)}")

    def truth(self, key: str, default: bool) -> bool:
        """Return a field that is true or false."""
        value = self._get(key, default)
        return value if isinstance(value, bool) else self.refuse(key, "true or false")

    def whole(self, key: str, minimum: int = 0, maximum: int = 2**31 - 1, default: int | None = None) -> int:
        """Return a field that is a whole number in a range.

        Parameters
        ----------
        key : str
            The field.
        minimum, maximum : int
            Both included.
        default : int, optional
            Default of a missing field; required without.
        """
        value = self._get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        return self.refuse(key, f"a whole number {minimum}..{maximum}")

    def number(self, key: str, default: float | None = None) -> float:
        """Return a field that is a finite number."""
        value = self._get(key, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf:
            with contextlib.suppress(OverflowError):
                return float(value)
        return self.refuse(key, "a finite number")

    def quantity(self, key: str, parse: Callable[[str, str], float], default: float | None = None) -> float:
        """Return a field that is text with a unit; a bare number is refused.

        Parameters
        ----------
        key : str
            The field.
        parse : callable
            Function from text, and what to call it, to a number, such as ``parse_time``.
        default : float, optional
            Default of a missing field; required without.
        """
        value = self._get(key, default)
        if isinstance(value, float) and key not in self._tree:
            return value
        if not isinstance(value, str):
            self.refuse(key, f"text with a unit, as in {_EXAMPLES.get(parse.__name__, 'a quantity')}")
        try:
            return parse(value, "")
        except InputError as error:
            self.fail(key, str(error).strip())

    def items(self, key: str, kind: type[T], what: str) -> list[T]:
        """Return a field that is a list whose members are all of one type.

        Parameters
        ----------
        key : str
            The field.
        kind : type
            Type of all members.
        what : str
            What a member must be, for messages.
        """
        value = self._get(key, None)
        if not isinstance(value, list):
            self.refuse(key, f"a list of {what}")
        for i, member in enumerate(value):
            if not isinstance(member, kind) or isinstance(member, bool):
                self.member(key, i, f"must be {what}, got {shorten(repr(member))}")
        return value

    def wholes(self, key: str) -> list[int]:
        """Return a field that is a list of whole numbers of 32 bits; an empty one when it is missing."""
        values = self.items(key, int, "a whole number") if key in self else self._get(key, [])
        for i, value in enumerate(values):
            if not -(2**31) <= value < 2**31:
                self.member(key, i, f"must be a whole number of 32 bits, got {shorten(repr(value))}")
        return list(values)

    def numbers(self, key: str) -> list[float]:
        """Return a field that is a list of finite numbers."""
        values = self._get(key, None)
        if not isinstance(values, list):
            self.refuse(key, "a list of numbers")
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < sys.float_info.max:
                self.member(key, i, f"must be a finite number, got {shorten(repr(value))}")
        return [float(value) for value in values]

    def member(self, key: str, i: int, message: str) -> NoReturn:
        """Raise an error about one member of a list.

        Parameters
        ----------
        key : str
            The list.
        i : int
            Number of the member.
        message : str
            What is wrong with it.
        """
        TableFields({}, self._path, (*self._keys, key)).fail(i, message)

    def tables(self, key: str) -> list[TableFields]:
        """Return a field that is a list of tables."""
        members: list[dict[str, Any]] = self.items(key, dict, "a table")
        return [TableFields(member, self._path, (*self._keys, key, i)) for i, member in enumerate(members)]

    def table(self, key: str) -> TableFields:
        """Return a field that is a table; an empty one when it is missing."""
        value, keys = self._get(key, {}), (*self._keys, key)
        if not isinstance(value, dict):
            in_toml = str(self._path).endswith(".toml")
            self.refuse(key, f"a table, a line [{_dotted(keys)}] with its fields below it" if in_toml else "a table")
        return TableFields(value, self._path, keys)

    def raw(self, key: str) -> object:
        """Return a field as it is, None when it is missing."""
        value: object = self._get(key, None)
        return value

    def schema(self, required: bool = True) -> None:
        """Refuse a file of another version than ours, 1."""
        if self._get("schema", None if required else 1) != 1 or isinstance(self._tree.get("schema"), bool):
            self.refuse("schema", "1, the version of the format")

    def only(self, *keys: str) -> None:
        """Refuse fields other than these, before they are read: a wrong name is a better message than a missing one."""
        self._asked.update(keys)
        self.finish()

    def finish(self) -> None:
        """Refuse the fields that were not asked for."""
        for key in self._tree:
            if key not in self._asked:
                known = sorted(self._asked | self._looked_for)
                hint = did_you_mean([self._written(one, self._tree[key]) for one in alike(key, known)])
                self.fail(key, f"is not a field here; {hint}known: {', '.join(known)}")

    def _written(self, key: str, value: object) -> str:
        """Write a field as the file does: a list of tables of TOML is ``[[key]]``."""
        is_tables = isinstance(value, list) and value and all(isinstance(member, dict) for member in value)
        return f"[[{key}]]" if is_tables and str(self._path).endswith(".toml") else key

    def _get(self, key: str, default: Any) -> Any:
        self._asked.add(key)
        return self._tree.get(key, default)


def _dotted(keys: Keys) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    text = text if len(text) <= MAX_FIELD else f"{text[: MAX_FIELD - 3]}..."
    return text if text.isprintable() else repr(text)
