"""Measurements of others and of ours as rows of one kind: which operation, how many bytes, how long it took.

A file is read by what it begins with, not by its name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation

# Of a file of measurements, unpacked.
MAX_BYTES = 256 * 2**20
# Of a log, which is read line by line.
MAX_LOG_BYTES = 64 * 2**20
# Of one source; benchmarks print hundreds, sweeps tens of thousands.
MAX_ROWS = 250_000
# How JSON begins; a log may begin with [1,0]<stdout>: instead.
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\[{\]])")


@dataclass(frozen=True, slots=True)
class Measured:
    """One time of one operation at one size.

    Parameters
    ----------
    operation : str
        One of ``commsim.core.operations``.
    size : float, bytes
        Size as nccl-tests counts it: for all-gather, reduce-scatter, all-to-all, gather and scatter the whole array.
    time : float, s
        What it took.
    n_ranks : int or None
        None where the file does not say.
    algorithm, protocol : str
        Names as in the file; ``stream`` for messages that do not wait for each other. Empty where the file has none.
    in_place : bool
        Whether input and output were the same memory.
    low, high : float or None, s
        Spread of the times: percentiles 5 and 95 where they can be had, else least and largest.
    source : str
        The file.
    line : int
        Line in it, or row of JSON and Parquet; from 1, 0 for the file as a whole.

    Raises
    ------
    InputError
        If the operation is unknown, or a number is not finite or is negative.
    """

    operation: str
    size: float
    time: float
    n_ranks: int | None = None
    algorithm: str = ""
    protocol: str = ""
    in_place: bool = False
    low: float | None = None
    high: float | None = None
    source: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        known_operation(self.operation)
        for name in ("size", "time", "low", "high"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                where = f"{self.source}, line {self.line}: " if self.source else ""
                raise InputError(f"{where}{name} must be 0 or more and finite, got {value}")
        if self.n_ranks is not None and not 1 <= self.n_ranks <= 2**31:
            raise InputError(f"{self.source}: there must be at least 1 rank, got {self.n_ranks}")

    @property
    def algbw(self) -> float:
        """Size over time, bytes/s; 0 where no time was seen to pass."""
        return self.size / self.time if self.time else 0.0

    @property
    def busbw(self) -> float | None:
        """Algbw times the operation's factor, bytes/s; None where the number of ranks is not known."""
        if self.n_ranks is None:
            return None
        return self.algbw * known_operation(self.operation).busbw_factor(self.n_ranks)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says about a file that may not say it itself, and where a reader puts its remarks.

    Parameters
    ----------
    operation : str
        Empty: the file says.
    n_ranks : int or None
        None: the file says.
    notes : list of str
        Receives what was left out, and what was assumed.
    """

    operation: str
    n_ranks: int | None
    notes: list[str]


def check_count(path: Path, n_rows: int) -> None:
    """Refuse more rows than are read: none is left out without a word."""
    if n_rows > MAX_ROWS:
        raise InputError(f"{path}: more than {MAX_ROWS} rows")


def read_measured(
    path: str | Path, *, operation: str = "", n_ranks: int | None = None, notes: list[str] | None = None
) -> tuple[Measured, ...]:
    """Read measurements, of whichever known form they are.

    Known are: the table of nccl-tests (and of ``commsim run``) and its JSON (``-J``), tables of the OSU
    micro-benchmarks, JSON and Parquet of commsim, NCCL inspector's JSON lines, PyTorch's flight recorder (JSON or
    pickle) and Kineto's traces. Any of them may be packed with gzip.

    Parameters
    ----------
    path : path
        A file, the folder of a sweep, or a folder of ``*.parquet``.
    operation : str
        Operation of a file that does not name its own; of a file that does, only the rows of this one are returned.
    n_ranks : int, optional
        Number of ranks, for a file that does not have it; where it does, both must agree.
    notes : list of str, optional
        Receives what was left out, and why.

    Returns
    -------
    tuple of Measured
        At least one, in the order of the file.

    Raises
    ------
    InputError
        If the file is of no known form, is too large or damaged, or holds no measurement.
    """
    if operation:
        known_operation(operation)
    asked = Asked(operation, n_ranks, [] if notes is None else notes)
    rows = [row for row in _reader(Path(path))(Path(path), asked) if not operation or row.operation == operation]
    if not rows:
        of = f" of {operation}" if operation else ""
        why = f" ({asked.notes[-1]})" if asked.notes else ""
        raise InputError(f"{path}: holds no measurement{of}{why}")
    for row in rows:
        if n_ranks is not None and row.n_ranks not in (None, n_ranks):
            raise InputError(f"{path}, line {row.line}: was measured on {row.n_ranks} ranks, got --ranks {n_ranks}")
    return tuple(rows)


Reader = Callable[[Path, Asked], Sequence[Measured]]


def _reader(path: Path) -> Reader:
    """Find out what a file is, by its first bytes rather than by its name."""
    if path.is_dir() or path.suffix == ".parquet":
        from commsim.files.sweep_store import STORE

        from .json_rows import read_parquet, read_sweep

        return read_sweep if (path / STORE).exists() else read_parquet
    from commsim.files.whole_files import read_bytes

    head = read_bytes(path, MAX_BYTES)
    if head[:1] == b"\x80":
        from .profiles import read_profile_rows

        return read_profile_rows
    if _JSON.match(head):
        from .json_rows import read_json_rows

        return read_json_rows
    if b"OSU MPI" in head or b"OSU NCCL" in head or b"OSU xCCL" in head:
        from .osu import read_osu

        return read_osu
    from .nccl_tests import read_nccl_tests_text

    return read_nccl_tests_text
