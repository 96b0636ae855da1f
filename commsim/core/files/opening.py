"""Open what a user names: the one place where files are opened to be read.

A file that a user names is never a device or a pipe, which may have no end or no beginning, and never read beyond a
limit. Links are followed. A test holds that nothing else opens files (``tests/hostile/test_opening.py``).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from commsim.core.errors import InputError, wrong_kind
from commsim.core.limits import require_files


@contextlib.contextmanager
def opening(path: str | Path) -> Iterator[BufferedReader]:
    """Open a regular file to read its bytes.

    The opened file is checked again, since a name may become a pipe in between.

    Parameters
    ----------
    path : path
        Links are followed.

    Raises
    ------
    InputError
        If it is missing, may not be read, or is not a regular file; also if reading it fails later.
    """
    check_regular(path)
    path = Path(path)
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path}: not a regular file")
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def path_of(value: object, what: str) -> Path:
    """Return the path of a file that a caller names.

    Raises
    ------
    InputError
        If it is neither text nor a path; `what` names the file.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise wrong_kind(what, "the path of a file", value)
    return Path(os.fspath(value))


def check_regular(path: str | Path) -> None:
    """Refuse a name that no file can have, and anything but a regular file: opening a pipe would wait for ever.

    Raises
    ------
    InputError
        Also if it is missing.
    """
    require_files(path)
    try:
        path = Path(path)
        path.stat()
        what = "is a directory" if path.is_dir() else "" if path.is_file() else "not a regular file"
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except ValueError:  # a NUL byte in the name
        raise InputError(f"{str(path)!r} is not the name of a file") from None
    if what:
        raise InputError(f"{path}: {what}")


def read_regular(path: str | Path, limit: int, whole: bool = True) -> bytes:
    """Read a regular file.

    Parameters
    ----------
    path : path
        Links are followed.
    limit : int, bytes
        Most that it may hold.
    whole : bool
        Whether a larger file is refused; else it is read up to the limit.

    Raises
    ------
    InputError
        If it is missing, is not a regular file, or holds more than `limit`.
    """
    with opening(path) as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)  # what is asked for is allocated first
    if len(data) > limit and whole:
        raise InputError(f"{path}: larger than {bytes_text(limit)}")
    return data[:limit]


def bytes_text(limit: int) -> str:
    """Format a number of bytes as people write it."""
    return f"{limit >> 20} MiB" if limit >= 2**20 else f"{limit} bytes"
