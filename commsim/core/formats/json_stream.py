"""Read JSON whose one long list does not fit into memory as objects: its members are decoded one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .files import no_constant, no_duplicates

MAX_MEMBER = 2**20
"""Characters of one member, and of every other value."""
MAX_MEMBERS = 3_000_000
_WINDOW = 4 * MAX_MEMBER
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant)


def parse_long_list(text: str, key: str, keep: Callable[[Any], bool]) -> dict[str, Any]:
    """Decode a table of which one field is a long list, or the long list alone.

    Parameters
    ----------
    text : str
        JSON.
    key : str
        The field; a list that stands alone is returned under this name.
    keep : callable
        From a member of the list to whether it is kept; the others are forgotten at once.

    Returns
    -------
    dict
        The table, of whose list only some members are left.

    Raises
    ------
    ValueError
        If it is not well formed, a key of the table is there twice, there are too many members, or one is too long.
    """
    source = _Source(text)
    tree = {key: source.members(keep)} if source.peek() == "[" else source.table(key, keep)
    if source.peek():
        raise ValueError(f"more follows the end, at character {source.at}")
    return tree


class _Source:
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._window, self._begin = "", 0

    def peek(self) -> str:
        """Return the next character that is not blank, empty at the end."""
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr] # it matches nothing, too
        return self.text[self.at : self.at + 1]

    def take(self, wanted: str) -> str:
        """Go past the next character, which must be one of some."""
        found = self.peek()
        if not found or found not in wanted:
            raise ValueError(f"expected {' or '.join(wanted)} at character {self.at}, got {found or 'the end'!r}")
        self.at += 1
        return found

    def value(self) -> Any:
        """Decode the next value."""
        self.peek()
        if not self._begin <= self.at <= self._begin + len(self._window) - MAX_MEMBER:
            self._begin, self._window = self.at, self.text[self.at : self.at + _WINDOW]
        try:
            value, end = _DECODER.raw_decode(self._window, self.at - self._begin)
        except json.JSONDecodeError as error:
            if self._begin + len(self._window) < len(self.text):
                raise ValueError(f"damaged, or longer than {MAX_MEMBER}, at character {self.at}: {error.msg}") from None
            raise ValueError(f"{error.msg} at character {self._begin + error.pos}") from None
        self.at = self._begin + end
        return value

    def members(self, keep: Callable[[Any], bool]) -> list[Any]:
        """Decode a list, and keep some of it."""
        self.take("[")
        kept: list[Any] = []
        if self.peek() == "]":
            self.at += 1
            return kept
        for _ in range(MAX_MEMBERS):
            value = self.value()
            if keep(value):
                kept.append(value)
            if self.take(",]") == "]":
                return kept
        raise ValueError(f"a list of more than {MAX_MEMBERS} members")

    def table(self, key: str, keep: Callable[[Any], bool]) -> dict[str, Any]:
        """Decode a table, and keep some of its long list."""
        self.take("{")
        tree: dict[str, Any] = {}
        if self.peek() == "}":
            self.at += 1
            return tree
        while True:
            name = self.value() if self.peek() == '"' else self.take('"')
            self.take(":")
            if name in tree:
                raise ValueError(f"key {name!r} appears twice")
            tree[name] = self.members(keep) if name == key and self.peek() == "[" else self.value()
            if self.take(",}") == "}":
                return tree
