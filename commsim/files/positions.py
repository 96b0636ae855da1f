"""Find the line of a field in a TOML or JSON file, for error messages; called only when something is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Keys = tuple[str | int, ...]
MAX_BYTES = 2**23

_TOKEN = re.compile(
    r'(?P<scalar>"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[^\s"\'#\][{},:=]+)'
    r"|(?P<mark>[][{},:=\n])|(?P<comment>\#[^\n]*)|(?P<other>.)",
    re.DOTALL,
)
_HEADER = re.compile(r"[ \t]*(\[\[?)([^\]\n]*)\]\]?[^\n]*")


def line_of(path: str | Path, keys: Keys) -> int:
    """Line of a field such as ``("links", 3, "bandwidth")``, counted from 1.

    Returns
    -------
    int
        The line of the field, or of the innermost table around it that is found; 0 when there is none, or the file is
        large.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        return 0
    try:
        if path.stat().st_size > MAX_BYTES:  # a few million tokens a second
            return 0
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return 0
    best, depth = 0, 0
    for found, line in _Walk(text, is_toml=path.suffix == ".toml").fields():
        if len(found) > depth and found == keys[: len(found)]:
            best, depth = line, len(found)
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
