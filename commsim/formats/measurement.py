"""One measured time, of whatever tool: which operation, how many bytes, how long it took.

Each reader of a tool's files returns a list of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation

from .log_health import LogHealth

# Largest file of measurements, unpacked.
MAX_BYTES = 256 * 2**20
# Largest log; logs are read line by line.
MAX_LOG_BYTES = 64 * 2**20
# Most rows of one source; benchmarks print hundreds, sweeps tens of thousands.
MAX_ROWS = 250_000
_PRINTED = re.compile(r"\d{1,16}(?:\.\d{1,16})?", re.ASCII)
# Above this the printed digits cannot tell two numbers of ranks apart.
MAX_RANKS = 4096


@dataclass(frozen=True, slots=True)
class Measurement:
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
    ranks_between : (int, int) or None
        Least and most ranks that its rates allow, where the file does not say the number; None where they say nothing.
    interval : (float, float) or None, s
        Of a prediction: between what 80 % of measurements are expected.
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
    ranks_between: tuple[int, int] | None = None
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        known_operation(self.operation)
        for name in ("size", "time", "low", "high"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                where = f"{self.source}, line {self.line}: " if self.source else ""
                raise InputError(f"{where}{name} must be 0 or more and finite, got {value}")
        if self.interval is not None and not 0 <= self.interval[0] <= self.interval[1] < math.inf:
            raise InputError(f"{self.source}: an interval must be two finite times in order, got {self.interval}")
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
class ReadingContext:
    """What the user says about a file that may not say it itself, and where a reader puts its remarks.

    Parameters
    ----------
    operation : str
        Empty: the file says.
    n_ranks : int or None
        None: the file says.
    notes : list of str
        Receives what was left out, and what was assumed.
    health : LogHealth
        Receives what the file says of the run beside its times.
    streams : bool
        Keep rates of messages that do not wait for each other beside the times of messages that do.
    """

    operation: str
    n_ranks: int | None
    notes: list[str]
    health: LogHealth = field(default_factory=LogHealth)
    streams: bool = False


def check_count(path: Path, n_rows: int) -> None:
    """Refuse more rows than are read: none is left out without a word."""
    if n_rows > MAX_ROWS:
        raise InputError(f"{path}: more than {MAX_ROWS} rows")


def ranks_between(name: str, rates: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    """Find the least and the largest number of ranks for which all rates are right as they are rounded.

    Parameters
    ----------
    name : str
        The operation.
    rates : sequence of (str, str)
        Algbw and busbw of each row, as printed.

    Returns
    -------
    (int, int) or None
        None if there is no such number, or any would do.
    """
    low, high = 0.0, math.inf
    for algbw, busbw in rates:
        (a_low, a_high), (b_low, b_high) = interval(algbw), interval(busbw)
        if a_low > 0:
            low, high = max(low, float(b_low / a_high)), min(high, float(b_high / a_low))
    factor = known_operation(name).busbw_factor
    if not low or factor(2) == factor(3):
        return None
    fitting = [n for n in range(2, MAX_RANKS + 1) if low <= factor(n) <= high]
    return (fitting[0], fitting[-1]) if fitting else None


def require_ranks(rows: Iterable[Measurement], n_ranks: int) -> None:
    """Refuse a number of ranks that the rates of a row do not allow.

    Raises
    ------
    InputError
        Naming the file and the numbers that they allow.
    """
    for row in rows:
        least, most = row.ranks_between or (n_ranks, n_ranks)
        if n_ranks < least or most < min(n_ranks, MAX_RANKS):  # of more ranks the digits say nothing
            more = f"{least} to {most}" if most < MAX_RANKS else f"{least} or more"
            raise InputError(f"{row.source}: busbw over algbw is that of {more} ranks, got {n_ranks}")


def interval(text: str) -> tuple[Fraction, Fraction]:
    """Return the least and the largest number that is printed so; 0 and 0 of what is no number.

    Parameters
    ----------
    text : str
        Number as printed, such as ``23.66``.
    """
    if not _PRINTED.fullmatch(text):
        return Fraction(0), Fraction(0)
    value = Fraction(text)
    half = Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
    return max(Fraction(0), value - half), value + half
