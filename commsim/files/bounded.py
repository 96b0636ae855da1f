"""Read files of others whole, unpacked, and never more of them than a limit: a small gzip can unpack without end."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from .whole_files import MAX_TEXT_BYTES, parse_json, read_regular, shown

GZIP = b"\x1f\x8b"
_PIECE = 2**20


def read_bytes(path: str | Path, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Read a file; one that begins as gzip does is unpacked, whatever its name.

    Parameters
    ----------
    path : path
        A regular file.
    limit : int, bytes
        Most that it may hold, unpacked.

    Raises
    ------
    InputError
        If the file is missing, is not a regular file, holds more than `limit`, or is a damaged gzip.
    """
    data = read_regular(path, limit)
    return _unpacked(data, Path(path), limit) if data.startswith(GZIP) else data


def read_head(path: str | Path, n: int) -> bytes:
    """Read the first `n` bytes of a file, unpacked as in :func:`read_bytes`, or fewer where it is damaged.

    Raises
    ------
    InputError
        If the file is missing, or is not a regular file.
    """
    data = read_regular(path, n, whole=False)
    if not data.startswith(GZIP):
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, n)
    except zlib.error:
        return b""


def read_text(path: str | Path, limit: int = MAX_TEXT_BYTES) -> str:
    """Read a file of UTF-8 text as :func:`read_bytes` does; a byte order mark is dropped.

    Raises
    ------
    InputError
        As in :func:`read_bytes`, or if it is not UTF-8.
    """
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from None


def read_json(path: str | Path, limit: int = MAX_TEXT_BYTES) -> Any:
    """Read a file of JSON as :func:`read_text` does, strictly.

    Raises
    ------
    InputError
        As in :func:`read_text`, or if it is not well formed, is nested too deeply, or has a key twice.
    """
    text = read_text(path, limit)
    with refused_by_name(path):
        return parse_json(text)


@contextlib.contextmanager
def refused_by_name(path: str | Path) -> Iterator[None]:
    """Turn what a decoder raises into an error that names the file."""
    try:
        yield
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None


def _unpacked(data: bytes, path: Path, limit: int) -> bytes:
    """Unpack all members of a gzip, a piece at a time, so that no more than `limit` is ever in memory."""
    pieces, size = [], 0
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            while not stream.eof:
                piece = stream.decompress(data, _PIECE)
                data = stream.unused_data if stream.eof else stream.unconsumed_tail
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise InputError(f"{path}: unpacks to more than {shown(limit)}")
                if not piece and not data and not stream.eof:
                    raise InputError(f"{path}: a gzip file that ends early")
        except zlib.error as error:
            raise InputError(f"{path}: not a readable gzip file ({error})") from None
    return b"".join(pieces)
