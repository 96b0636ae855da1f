"""Read JSON whose one long list does not fit into memory as objects: its members are decoded a few at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from .whole_files import no_constant, no_duplicates

MAX_MEMBER = 2**20
"""Characters of one member, and of every other value."""
MAX_MEMBERS = 3_000_000
MAX_TABLES = 6_000_000
"""Tables and lists of the whole text: an event and its arguments are two."""
MAX_KEPT = 250_000
MAX_FIELDS = 10_000
"""Of the table beside its long list; Kineto writes a dozen."""
_WINDOW = 4 * MAX_MEMBER
_BATCH = 2**18
_ODD = 500_000
"""Members that are decoded one by one, which costs as much as ten of those that come together."""
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant)


def parse_long_list(text: str, key: str, keep: Callable[[Any], Any]) -> dict[str, Any]:
    """Decode a table of which one field is a long list, or the long list alone.

    Parameters
    ----------
    text : str
        JSON.
    key : str
        The field; a list that stands alone is returned under this name.
    keep : callable
        From a member of the list to what of it is kept, None for nothing; the rest is forgotten at once.

    Returns
    -------
    dict
        The table, of whose list only some members are left.

    Raises
    ------
    ValueError
        If it is not well formed, a key of a table is there twice, there are too many members or fields, or one is too
        long; whatever `keep` raises.
    """
    if text.count("{") + text.count("[") > MAX_TABLES:
        raise ValueError(f"more than {MAX_TABLES} tables and lists")
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
        self._odd_until = 0

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

    def members(self, keep: Callable[[Any], Any]) -> list[Any]:
        """Decode a list, and keep some of it."""
        self.take("[")
        kept: list[Any] = []
        if self.peek() == "]":
            self.at += 1
            return kept
        n = n_odd = 0
        while True:
            several = self._several()
            n_odd += not several
            found = several or [self.value()]
            n += len(found)
            if n > MAX_MEMBERS or n_odd > _ODD:
                raise ValueError(f"a list of more than {MAX_MEMBERS} members, or {_ODD} that follow no pattern")
            kept += [slim for value in found if (slim := keep(value)) is not None]
            if len(kept) > MAX_KEPT:
                raise ValueError(f"more than {MAX_KEPT} members are to be kept")
            if self.take(",]") == "]":
                return kept

    def _several(self) -> list[Any]:
        """Decode tables that follow each other, up to the last that ends within a batch; none if that is not plain."""
        if self.peek() != "{" or self.at < self._odd_until:
            return []
        end = self.text.rfind("},", self.at, self.at + _BATCH) + 1
        if not end:
            return []
        try:
            found: list[Any] = _DECODER.decode(f"[{self.text[self.at : end]}]")
        except (ValueError, RecursionError):  # it ends within a table, or is damaged: one by one that is said exactly
            self._odd_until = end
            return []
        self.at = end
        return found

    def table(self, key: str, keep: Callable[[Any], Any]) -> dict[str, Any]:
        """Decode a table, and keep some of its long list."""
        self.take("{")
        tree: dict[str, Any] = {}
        if self.peek() == "}":
            self.at += 1
            return tree
        while True:
            if len(tree) == MAX_FIELDS:
                raise ValueError(f"a table of more than {MAX_FIELDS} fields")
            name = self.value() if self.peek() == '"' else self.take('"')
            self.take(":")
            if name in tree:
                raise ValueError(f"key {name!r} appears twice")
            tree[name] = self.members(keep) if name == key and self.peek() == "[" else self.value()
            if self.take(",}") == "}":
                return tree
