"""Values in npz files: arrays by name, and one JSON header that is stored as bytes; never a pickle."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.opening import check_regular

from .fields import TableFields
from .whole_files import first_line, parse_json, replacing

MAX_ARRAY_BYTES = 16 * 2**30
Array = np.ndarray[Any, Any]


def read_arrays(path: str | Path, limit: int | None = None, only: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of an ``.npz`` file; object arrays are refused, since they would be pickles.

    Parameters
    ----------
    path : path
        The file.
    limit : int, bytes, optional
        Most that it may unpack to; by default ``MAX_ARRAY_BYTES``.
    only : str, optional
        The one array to read; by default all.

    Raises
    ------
    InputError
        If the file is missing, is not an npz, is damaged, unpacks to too much, or holds objects.
    """
    check_regular(path)
    limit = min(limit or MAX_ARRAY_BYTES, MAX_ARRAY_BYTES)
    try:
        with zipfile.ZipFile(path) as archive:
            wanted = [member for member in archive.infolist() if only in ("", member.filename.removesuffix(".npy"))]
            n_bytes = sum(member.file_size for member in wanted)
        if n_bytes > limit:
            raise InputError(f"{path}: would unpack to more than {limit >> 20} MiB")
        with warnings.catch_warnings(action="error"), np.load(path, allow_pickle=False) as arrays:
            by_name = {name: arrays[name] for name in arrays.files if only in ("", name)}
        if not all(isinstance(array, np.ndarray) for array in by_name.values()):
            raise InputError(f"{path}: contains an object that is not an array")
        return by_name
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'not a readable npz file'}") from None
    except Exception as error:  # a damaged file fails in zipfile, zlib, struct, tokenize, numpy and other places
        raise InputError(f"{path}: not a readable npz file ({first_line(error)})") from None


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write `arrays` as a compressed ``.npz``; the file appears whole or not at all."""
    with replacing(path) as out:
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]


class Archive:
    """What one npz file holds.

    Parameters
    ----------
    path : path
        The file, for messages.
    header : TableFields
        The JSON header, its schema and kind already checked.
    arrays : mapping of str to array
        The other members.
    """

    def __init__(self, path: str | Path, header: TableFields, arrays: dict[str, Array]) -> None:
        self.path, self.header, self._arrays = path, header, arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, dtype: Any) -> Array:
        """Remove and return a one-dimensional array.

        Raises
        ------
        InputError
            If it is missing, or has another type or number of dimensions.
        """
        if name not in self._arrays:
            raise InputError(f"{self.path}: {name} is missing: an array of {np.dtype(dtype).name}")
        array = self._arrays.pop(name)
        if array.dtype != dtype or array.ndim != 1:
            wanted = f"a one-dimensional array of {np.dtype(dtype).name}"
            raise InputError(f"{self.path}: {name} must be {wanted}, got {array.ndim} dimensions of {array.dtype.name}")
        return array

    def finish(self) -> None:
        """Refuse the fields and arrays that were not asked for."""
        self.header.finish()
        for name in self._arrays:
            raise InputError(f"{self.path}: {name} is not an array of this kind of file")


def write_archive(path: str | Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write `arrays` and `header`; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        The file.
    kind : str
        What it holds.
    header : mapping
        Values that JSON has.
    arrays : mapping of str to array
        All others.
    """
    text = json.dumps({"schema": 1, "kind": kind, **header}, allow_nan=False)
    write_arrays(path, {"header": np.frombuffer(text.encode(), np.uint8), **arrays})


def read_archive(path: str | Path, kind: str, limit: int | None = None) -> Archive:
    """Read what :func:`write_archive` wrote; `limit` is as in :func:`~commsim.core.files.npz.read_arrays`.

    Parameters
    ----------
    path : path
        The file.
    kind : str
        What it must hold.
    limit : int, bytes, optional
        Most that it may unpack to.

    Raises
    ------
    InputError
        If the file is no readable npz file, or holds something else.
    """
    arrays = read_arrays(path, limit)
    header = arrays.pop("header", None)
    if header is None or header.dtype != np.uint8 or header.ndim != 1:
        raise InputError(f"{path}: not a commsim file: header must be JSON text as an array of uint8")
    try:
        tree = parse_json(header.tobytes().decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: header is not JSON ({error})") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: header must be a table, got {type(tree).__name__}")
    fields = TableFields(tree, path)
    fields.schema()
    fields.one_of("kind", (kind,))
    return Archive(path, fields, arrays)
