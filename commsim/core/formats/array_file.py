"""Read and write npz files: arrays by name, never a pickle."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .files import first_line, replacing
from .regular_file import check_regular

MAX_ARRAY_BYTES = 16 * 2**30


def read_arrays(path: str | Path, limit: int | None = None, only: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of an ``.npz`` file; object arrays are refused, since they would be pickles.

    Parameters
    ----------
    path : path
        The file.
    limit : int, bytes, optional
        Most that it may unpack to; ``MAX_ARRAY_BYTES`` unless given.
    only : str, optional
        The one array to read; all unless given.

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
            found = {name: arrays[name] for name in arrays.files if only in ("", name)}
        if not all(isinstance(array, np.ndarray) for array in found.values()):
            raise InputError(f"{path}: holds something that is no array")
        return found
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
