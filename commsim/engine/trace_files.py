"""Times of transfers on disk, all or every n-th, for runs whose times do not fit in memory.

A file is a NumPy array of records in program order, so it is read by mapping it into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.result import Trace

PIECE = 2**20
Times = NDArray[np.float64]
# From numbers of transfers to when they started, had left and were complete.
Columns = Callable[[NDArray[np.int64]], tuple[Times, Times, Times]]

TRACE_ROW = np.dtype([("transfer", "<i8"), ("start", "<f8"), ("sent", "<f8"), ("done", "<f8")])


@dataclass(frozen=True, slots=True)
class TraceFile:
    """Where times go in place of the result, and how many of them.

    Parameters
    ----------
    path : Path
        A ``.npy`` file; appears whole or not at all.
    every : int
        Transfers 0, n, 2n and so on are kept.

    Raises
    ------
    InputError
        If the file is no ``.npy``, or `every` is below 1.
    """

    path: Path
    every: int = 1

    def __post_init__(self) -> None:
        if Path(self.path).suffix != ".npy":
            raise InputError(f"a trace goes to a .npy file, got {self.path}")
        if self.every < 1:
            raise InputError(f"a trace keeps every n-th transfer, n at least 1, got every={self.every}")


def keep_trace(wanted: bool | TraceFile, n_transfers: int, columns: Columns) -> Trace | None:
    """Return the times of all transfers, or write them piece by piece, or do nothing.

    Parameters
    ----------
    wanted : bool or TraceFile
        Whether to return the times, or the file to write them to.
    n_transfers : int
        How many there are.
    columns : callable
        Says their times.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if isinstance(wanted, TraceFile):
        _write(wanted, n_transfers, columns)
        return None
    return Trace(*columns(np.arange(n_transfers))) if wanted else None


def _write(wanted: TraceFile, n_transfers: int, columns: Columns) -> None:
    n = -(-n_transfers // wanted.every)
    header = {"descr": np.lib.format.dtype_to_descr(TRACE_ROW), "fortran_order": False, "shape": (n,)}
    with replacing(wanted.path) as out:
        np.lib.format.write_array_header_1_0(out, header)
        for low in range(0, n, PIECE):
            which = np.arange(low, min(low + PIECE, n)) * wanted.every
            rows = np.empty(len(which), TRACE_ROW)
            rows["transfer"] = which
            rows["start"], rows["sent"], rows["done"] = columns(which)
            out.write(rows.tobytes())
