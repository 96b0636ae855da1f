"""One measured time, of whatever tool: which operation, how many bytes, how long it took.

Each reader of a tool's files returns a list of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation

# Largest file of measurements, unpacked.
MAX_BYTES = 256 * 2**20
# Largest log; logs are read line by line.
MAX_LOG_BYTES = 64 * 2**20
# Most rows of one source; benchmarks print hundreds, sweeps tens of thousands.
MAX_ROWS = 250_000


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
