"""The bytes of a file that a user names: never those of a device or a pipe, which may have no end or no beginning."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError


def check_regular(path: str | Path) -> None:
    """Refuse a name that is none, and what is there but is no regular file: opening a pipe would wait for ever.

    Raises
    ------
    InputError
        Also if it is missing.
    """
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
    check_regular(path)
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(min(path.stat().st_size, limit) + 1)  # what is asked for is allocated first
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if len(data) > limit and whole:
        raise InputError(f"{path}: larger than {shown(limit)}")
    return data[:limit]


def shown(limit: int) -> str:
    """Say a number of bytes as people do."""
    return f"{limit >> 20} MiB" if limit >= 2**20 else f"{limit} bytes"
