"""Messages of the control server: JSON objects, one to a line, of bounded length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import parse_json

MAX_FROM_WORKER = 4096  # bytes of a line
MAX_FROM_SWITCH = 1 << 22


class LineReader:
    """Cuts what arrives into messages.

    Parameters
    ----------
    most : int
        Bytes of the longest line.
    """

    def __init__(self, most: int) -> None:
        self._most, self._rest = most, b""

    def lines(self, data: bytes) -> list[bytes]:
        """Take what arrived; return the lines that are complete now and not empty.

        Raises
        ------
        InputError
            If a line is too long.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if max(map(len, (*lines, self._rest))) > self._most:
            raise InputError(f"a line has at most {self._most} bytes")
        return [line for line in lines if line.strip()]


def write_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def whole_field(message: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number from a message.

    Raises
    ------
    InputError
        If it is missing, no whole number, or outside.
    """
    value = message.get(name)
    if type(value) is not int or not least <= value <= most:
        raise InputError(f"{name} is a whole number from {least} to {most}, got {str(value)[:40]}")
    return value


def text(message: Mapping[str, Any], name: str, most: int = 64) -> str:
    """Return a printable text from a message.

    Raises
    ------
    InputError
        If it is missing, no text, empty, too long or not printable.
    """
    value = message.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isprintable():
        raise InputError(f"{name} is a text of 1 to {most} printable characters, got {str(value)[:40]!r}")
    return value


def read_line(line: bytes) -> dict[str, Any]:
    """Return a line as a message.

    Raises
    ------
    InputError
        If it is no JSON object.
    """
    try:
        message = parse_json(line.decode())
    except (ValueError, RecursionError):
        raise InputError(f"expected a JSON object on a line, got {line[:40]!r}") from None
    if not isinstance(message, dict):
        raise InputError(f"expected a JSON object on a line, got {line[:40]!r}")
    return message
