"""Read and write whole files: JSON and TOML, and bytes and text that may be packed with gzip.

Files are opened by :mod:`commsim.core.files.opening`; what is packed is read up to a limit too, since a small gzip can
unpack without end. Any file is written whole or not at all.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from commsim.core.errors import InputError
from commsim.core.files.opening import bytes_text, read_regular

MAX_TEXT_BYTES = 128 * 2**20
MAX_TOML_BYTES = 32 * 2**20
# Characters of what another library says.
MAX_QUOTED = 300
# Parts of a dotted key; reading one takes the square of that.
MAX_DEPTH = 100
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+[.][ \t]*+)++""", re.ASCII)
# Of one JSON text; they then take less than 500 MB.
MAX_VALUES = 6_000_000
GZIP = b"\x1f\x8b"


def read_tree(path: str | Path) -> dict[str, Any]:
    """Read a ``.toml`` or ``.json`` file whose top level is a table.

    Raises
    ------
    InputError
        If the file is missing, too large, not UTF-8, not well formed, or has a key twice.
    """
    tree = read_any(path)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a table at the top level, got {type(tree).__name__}")
    return tree


def read_any(path: str | Path) -> Any:
    """Read a ``.toml`` or ``.json`` file whatever its top level is.

    Raises
    ------
    InputError
        If the file is missing, too large, not UTF-8, not well formed, or has a key twice.
    """
    path = Path(path)
    if path.suffix != ".toml":
        return read_json(path, MAX_TEXT_BYTES)
    import tomllib

    text = read_text(path, MAX_TOML_BYTES)
    with refused_by_name(path):
        if any(key[0].count(".") > MAX_DEPTH for key in _DOTTED.finditer(text)):
            raise RecursionError
        return tomllib.loads(text)


def parse_json(text: str, most: int = 0, table: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Decode JSON strictly: no key twice, no NaN or Infinity.

    Parameters
    ----------
    text : str
        The whole text.
    most : int
        Values that it may have; by default ``MAX_VALUES``, since two characters can become 64 bytes.
    table : callable, optional
        Makes a table of its fields; by default :func:`no_duplicates`.

    Raises
    ------
    ValueError
        If it is not well formed, or has too many values; whatever `table` raises.
    """
    most = most or MAX_VALUES
    if sum(map(text.count, ",[{")) > most:
        raise ValueError(f"more than {most} values")
    return json.loads(text, object_pairs_hook=table or no_duplicates, parse_constant=no_constant)


def write_json(path: str | Path, tree: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write `tree` as JSON; the file appears whole or not at all.

    Raises
    ------
    InputError
        If a number is not finite, or the file cannot be written.
    """
    try:
        text = json.dumps(tree, indent=1, allow_nan=False)
    except ValueError as error:
        raise InputError(f"{path}: cannot be written as JSON: {error}") from None
    with replacing(path) as out:
        out.write(f"{text}\n".encode())


def write_tree(path: str | Path, tree: Mapping[str, Any]) -> None:
    """Write `tree` as TOML or JSON, by the suffix of `path`."""
    path = Path(path)
    if path.suffix == ".json":
        write_json(path, tree)
        return
    import tomli_w

    with replacing(path) as out:
        tomli_w.dump(tree, out)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place when the block ends well, and vanishes otherwise."""
    path = Path(path)
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse what cannot become a file: no name, a folder, a device, a pipe, in no folder, or in one that takes none.

    Raises
    ------
    InputError
        Saying which of them it is.
    """
    if not path.name or "\0" in str(path):
        raise InputError(f"{str(path)!r} is not the name of a file")
    with contextlib.suppress(OSError):  # such as a name that is too long
        if path.is_dir():
            raise InputError(f"{path}: cannot write: Is a directory")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: cannot write: not a regular file")
        if not path.parent.is_dir():
            raise InputError(f"{path}: cannot write: no such folder")
    try:
        with tempfile.TemporaryFile(dir=path.parent), contextlib.suppress(FileNotFoundError):
            os.lstat(path.with_name(f".{path.name}.{'_' * 8}"))  # as the temporary file: a name may be too long
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those that any new file gets here."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def first_line(error: Exception) -> str:
    """Return what an error of another library says, in one line; long ones quote the file, and are cut."""
    text = (str(error) or type(error).__name__).splitlines()[0]
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]} ..."


def no_constant(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a table of its fields, each there at most once."""
    tree = dict(pairs)
    if len(tree) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} appears twice")
    return tree


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
    if not text.strip():
        raise InputError(f"{path}: is empty")
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
        what = "not JSON: " if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path}: {what}{first_line(error)}") from None


def _unpacked(data: bytes, path: Path, limit: int) -> bytes:
    """Unpack all members of a gzip, and no more than `limit` of them."""
    import gzip

    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)
    except EOFError:
        raise InputError(f"{path}: a gzip file that ends early") from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{path}: not a readable gzip file ({error})") from None
    if len(unpacked) > limit:
        raise InputError(f"{path}: unpacks to more than {bytes_text(limit)}")
    return unpacked
