"""Read gradients from NumPy files: one array for all ranks, one array per rank, or one file per rank."""

from __future__ import annotations

import contextlib
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.npz import read_arrays
from commsim.core.files.opening import check_regular
from commsim.sparse.bitmap import refuse_non_finite

Array = NDArray[Any]
_NUMBER = re.compile(r"\d{1,9}$", re.ASCII)


def read_gradients(path: str | Path, n_ranks: int | None = None) -> list[Array]:
    """Read the gradients of all ranks.

    Parameters
    ----------
    path : path
        An ``.npy`` file that holds [n_ranks, n_elements]; an ``.npz`` file that holds such an array, or one array of
        any shape per rank, whose name ends in the rank's number; or a folder with one ``.npy`` file per rank, whose
        name ends so.
    n_ranks : int, optional
        How many ranks there must be: a wrong number is refused before any value is read.

    Returns
    -------
    list of [n_elements]
        Floats or integers. Those of ``.npy`` files are mapped, so that memory is needed for what is looked at only.

    Raises
    ------
    InputError
        If the file is missing, damaged or holds objects (which would be pickles), shapes or kinds of number differ or
        are no gradients, ranks are missing, or a value is NaN or infinite.
    """
    path = Path(path)
    if path.is_dir():
        files = {file.stem: _mapped(file) for file in sorted(path.glob("*.npy"))}
        rows = _one_per_rank(path, files, ".npy file")
    elif path.suffix == ".npz":
        _check_names(path, n_ranks)
        arrays = read_arrays(path)
        alone = next(iter(arrays.values())) if len(arrays) == 1 else None
        rows = _one_per_rank(path, arrays, "array") if alone is None else _rows(path, alone)
    else:
        rows = _rows(path, _mapped(path))
    _check_alike(path, rows, n_ranks)
    for rank, row in enumerate(rows):
        refuse_non_finite(row, f"{path}: rank {rank}")
    return rows


def _mapped(path: Path) -> Array:
    """Map an ``.npy`` file: its header is read, its values when they are looked at."""
    check_regular(path)
    try:
        with warnings.catch_warnings(action="error"):
            array: Array = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a damaged header fails in tokenize, struct, ast and mmap
        reason = "holds objects, which are never loaded" if "object" in str(error) else "not a readable npy file"
        raise InputError(f"{path}: {reason} ({str(error).splitlines()[0] if str(error) else error!r})") from None
    return array


def _rows(path: Path, array: Array) -> list[Array]:
    if array.ndim != 2 or not array.size:
        raise InputError(f"{path}: gradients of all ranks must be [n_ranks, n_elements], got shape {array.shape}")
    return list(array)


def _one_per_rank(path: Path, files: dict[str, Array], what: str) -> list[Array]:
    """Put arrays in the order of the numbers that their names end in, which must be 0, 1, ... n - 1."""
    if not files:
        raise InputError(f"{path}: holds no {what}")
    by_rank: dict[int, Array] = {}
    for name, array in files.items():
        number = _NUMBER.search(name)
        rank = int(number[0]) if number else -1
        if rank < 0 or rank in by_rank:
            wanted = "the name of each must end in the number of its rank" if rank < 0 else f"rank {rank} appears twice"
            raise InputError(f"{path}: {wanted}, got {name!r}")
        by_rank[rank] = array.reshape(-1)
    missing = sorted(set(range(len(by_rank))) - set(by_rank))
    if missing:
        raise InputError(f"{path}: needs one {what} for each rank 0..{len(by_rank) - 1}, rank {missing[0]} is missing")
    return [by_rank[rank] for rank in range(len(by_rank))]


def _check_names(path: Path, n_ranks: int | None) -> None:
    """Refuse an npz file of another number of ranks by its list of members, before it is unpacked."""
    n = 1
    check_regular(path)
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:  # refused when it is read
        n = len(archive.namelist())
    if n_ranks is not None and n not in (1, n_ranks):
        raise InputError(f"{path}: needs gradients of {n_ranks} ranks, got {n} arrays")


def _check_alike(path: Path, rows: list[Array], n_ranks: int | None) -> None:
    """Refuse another number of ranks than wanted, what are no gradients, and ranks that differ."""
    if n_ranks is not None and len(rows) != n_ranks:
        raise InputError(f"{path}: needs gradients of {n_ranks} ranks, got {len(rows)}")
    first = rows[0]
    if first.dtype.kind not in "iuf" or first.dtype.itemsize > 8 or not first.dtype.isnative or not first.size:
        raise InputError(
            f"{path}: gradients must be at least one native float of 16, 32 or 64 bits or integer, got {first.size} of "
            f"{first.dtype.str}"
        )
    for rank, row in enumerate(rows):
        if (row.shape, row.dtype) != (first.shape, first.dtype):
            raise InputError(
                f"{path}: rank {rank} has {row.size} elements of {row.dtype}, rank 0 {first.size} of {first.dtype}"
            )
