"""A log held against what its machines should reach: which sizes are below their floors, and whether the log is.

A few sizes of a healthy log are often far out, where a library changes its algorithm; all large ones are not. So a log
is judged by the middle of its sizes of each class (below 64 KiB, below 64 MiB, from there on), which is less often far
out than one size: by the least middle of the largest three, four, and so on up to all of the class. Rows at smaller
sizes or in other classes so never make a verdict milder. Each of the three classes takes its part of the false alarms,
whichever of them a log has, and large sizes most of them: there healthy machines differ least, and a lost rate shows.
``python -m benchmarks.diagnosis.floors`` counts the false alarms of healthy logs.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.files.opening import path_of
from commsim.core.network import Network
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text
from commsim.core.value import Shown
from commsim.formats.log_health import LogHealth, unhealthy
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement, require_ranks
from commsim.nccl.error_model import ErrorModel, error_class
from commsim.prediction.inputs import NetworkLike, network_of
from commsim.real.comparison.runs_of_log import least_middle, lost_rows, runs_by_operation, said_of_runs

from .expectation import FALSE_ALARMS, Expectation, ExpectedSize, expect
from .gpus_of_log import require_gpus
from .machines_asked import check_rate, on_machines

# Part of the false alarms that each class of sizes takes; their sum is 1.
ALARMS = {"small": 0.1, "middle": 0.1, "large": 0.8}
BELOW, SLOW, NORMAL, FAST = "below", "slow", "normal", "fast"
__all__ = ["CheckedClass", "CheckedSize", "LogCheck", "check_log", "least_middle", "verdict_of"]


class CheckedSize(NamedTuple):
    """One measured size beside what is expected of it.

    Parameters
    ----------
    expected : ExpectedSize
        What the machines should reach.
    time, busbw : float, s and bytes/s
        Measured time and its bus bandwidth.
    line : int
        Line of the file; 0 where it has none.
    """

    expected: ExpectedSize
    time: float
    busbw: float
    line: int = 0

    @property
    def ratio(self) -> float:
        """Measured over expected bus bandwidth."""
        return self.busbw / self.expected.busbw if self.expected.busbw else math.inf

    @property
    def verdict(self) -> str:
        """Whether it is ``below`` the floor, ``slow`` or ``fast`` (outside of the interval of 80 %), or ``normal``."""
        return verdict_of(self.busbw, self.expected)

    def row(self) -> dict[str, Any]:
        """Return the row of the JSON and the CSV: SI units, times in s."""
        return self.expected.row() | {
            "measured_s": self.time, "measured_busbw_Bps": self.busbw, "ratio": self.ratio, "verdict": self.verdict,
            "line": self.line,
        }  # fmt: skip


class CheckedClass(NamedTuple):
    """The sizes of one operation and class, by which a log is judged.

    Parameters
    ----------
    operation : str
        Name of the operation.
    sizes : str
        Class of the sizes: ``small``, ``middle`` or ``large``.
    n_sizes : int
        Number of sizes.
    ratio : float
        Middle of measured over expected bus bandwidth, of all of them or of the largest, where that is less.
    floor : float
        Ratio that only the stated share of healthy machines does not reach.
    n_tables, n_operators : int
        Public tables of such machines and sizes that the floor is made of, and operators of them; 0: those of others.
    """

    operation: str
    sizes: str
    n_sizes: int
    ratio: float
    floor: float
    n_tables: int = 0
    n_operators: int = 0

    @property
    def is_below(self) -> bool:
        """Whether it is below its floor."""
        return self.ratio < self.floor

    def row(self) -> dict[str, Any]:
        """Return the row of the JSON."""
        return {**self._asdict(), "below": self.is_below}


@dataclass(frozen=True, slots=True, repr=False)
class LogCheck(Shown):
    """A log beside what its machines should reach.

    Parameters
    ----------
    path : str
        File of the measurements.
    expected : Expectation
        What the machines should reach at the sizes of the log.
    rows : tuple of CheckedSize
        One for each operation and size.
    classes : tuple of CheckedClass
        One for each operation and class of sizes: what the log is judged by.
    false_alarms : float
        Share of healthy machines that are below the floor of a size, and share of healthy logs that are judged so.
    notes : tuple of Remark
        What was left out and derived.
    faults : tuple of str
        Why the run did not go well, whatever its times are: wrong results, an error, a log that is cut.
    n_runs : int
        Runs of the same sizes in the file; the rows are those of the one that is the least above its floors.
    """

    path: str
    expected: Expectation
    rows: tuple[CheckedSize, ...]
    classes: tuple[CheckedClass, ...]
    false_alarms: float
    notes: tuple[Remark, ...] = ()
    faults: tuple[str, ...] = ()
    n_runs: int = 1

    @property
    def below(self) -> tuple[CheckedSize, ...]:
        """The sizes that are below their floors."""
        return tuple(row for row in self.rows if row.verdict == BELOW)

    @property
    def is_healthy(self) -> bool:
        """Whether the run went well, and the middle of no class of sizes is below its floor."""
        return not self.faults and not any(one.is_below for one in self.classes)

    @property
    def verdict(self) -> str:
        """How the log is judged: ``healthy``, ``below the floor``, or ``not healthy`` with what went wrong."""
        if self.faults:
            return unhealthy(self.faults)
        return "healthy" if self.is_healthy else "below the floor"

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was left out and assumed."""
        return (*self.notes, *self.expected.remarks)

    def __repr__(self) -> str:
        return f"LogCheck({self.path}, {count_text(len(self.rows), 'size')}: {self.verdict})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each operation and size, as a data frame of pandas or polars."""
        return frame_of((row.row() for row in self.rows), library)


def verdict_of(busbw: float, expected: ExpectedSize) -> str:
    """Return what a bus bandwidth is beside an expectation.

    Parameters
    ----------
    busbw : float, bytes/s
        Measured bus bandwidth.
    expected : ExpectedSize
        What the machines should reach.
    """
    if busbw < expected.floor:
        return BELOW
    return SLOW if busbw < expected.low else NORMAL if busbw <= expected.high else FAST


def check_log(
    path: str | PathLike[str],
    network: NetworkLike,
    *,
    machines: int | None = None,
    operation: str = "",
    n_ranks: int | None = None,
    in_place: bool = False,
    collective: str | None = None,
    placement: str | None = None,
    hashes: int | None = None,
    false_alarms: float = FALSE_ALARMS,
    other_gpus: bool = False,
) -> LogCheck:
    """Hold a log against what its machines should reach.

    Parameters
    ----------
    path : path
        Log of nccl-tests, or any file that ``commsim compare`` reads.
    network, machines, collective, placement, hashes
        Same as in :func:`commsim.diagnosis.expectation.expect`. Without `machines`, one machine stands for as many as
        the ranks of the log fill.
    operation : str, optional
        Operation of the rows, where the file does not say; else only its rows are taken.
    n_ranks : int, optional
        Number of ranks, where the file does not say it or has only some of the network's.
    in_place : bool
        Whether the times in place are taken. Default: those out of place.
    false_alarms : float
        Share of healthy machines that are below the floor of a size, and share of healthy logs that are judged so.
    other_gpus : bool
        Whether GPUs that the log names may be of another generation than the machines'.

    Raises
    ------
    InputError
        If the file has no measurement, or is of another number of ranks or of other GPUs than the network has.
    """
    check_rate(false_alarms)
    path = str(path_of(path, "path"))
    lines: list[str] = []
    health = LogHealth()
    every = read_measured(path, operation=operation, n_ranks=n_ranks, notes=lines, health=health)
    runs = runs_by_operation(every, health, in_place=in_place)
    rows = [row for own in runs.values() for run in own for row in run]
    if not rows:
        raise InputError(f"{path}: holds no measurement with a size and a time")
    ranks = _ranks_of(path, rows, n_ranks)
    if not other_gpus:
        require_gpus(path, network_of(network))
    where, ranks = _place_of(path, network, machines, ranks, n_ranks)
    require_ranks(rows, len(where.endpoints) if ranks is None else ranks)
    found, checked = list[Expectation](), list[CheckedSize]()
    for name, own in runs.items():
        sizes = sorted({row.size for run in own for row in run})
        options: dict[str, Any] = {
            "n_ranks": ranks, "collective": collective, "placement": placement, "hashes": hashes,
        }  # fmt: skip
        at = expect(where, [name], sizes, false_alarms=false_alarms, **options)
        found.append(at)
        by_size = dict(zip(sizes, at.sizes, strict=True))
        each = [[_checked(row, by_size[row.size]) for row in run] for run in own]
        checked += min(each, key=functools.partial(_above_floor, errors={name: at.errors}, false_alarms=false_alarms))
    whole = found[0].joined(found[1:])
    n_runs = max(map(len, runs.values()))
    notes = [*said_of_runs(n_runs), *lost_rows(every, health, in_place=in_place), *as_remarks(lines, "read")]
    classes = _classes(checked, {at.operations[0]: at.errors for at in found}, false_alarms)
    return LogCheck(path, whole, tuple(checked), classes, false_alarms, tuple(notes), health.faults, n_runs)


def _classes(
    rows: Sequence[CheckedSize], errors: Mapping[str, ErrorModel], false_alarms: float
) -> tuple[CheckedClass, ...]:
    """Return the middles by which a log is judged."""
    groups: dict[tuple[str, str], list[CheckedSize]] = {}
    for row in rows:
        groups.setdefault((row.expected.operation, error_class(row.expected.size)), []).append(row)
    found = []
    for (name, sizes), own in groups.items():
        of = errors[name].middle_of([row.expected.size for row in own])
        least = least_middle({row.expected.size: row.ratio for row in own})
        floor = math.exp(-of.exceeded(false_alarms * ALARMS[sizes]))
        found.append(CheckedClass(name, sizes, len(own), least, floor, of.n_tables, of.n_operators))
    return tuple(found)


def _above_floor(rows: Sequence[CheckedSize], errors: Mapping[str, ErrorModel], false_alarms: float) -> float:
    """Return the least middle of a run's classes over its floor."""
    return min(one.ratio / one.floor for one in _classes(rows, errors, false_alarms))


def _checked(row: Measurement, expected: ExpectedSize) -> CheckedSize:
    return CheckedSize(expected, row.time, expected.busbw * expected.time / row.time, row.line)


def _ranks_of(path: str, rows: Sequence[Measurement], n_ranks: int | None) -> int | None:
    """Return the ranks of a log; what the user says where it is silent."""
    said = Counter(row.n_ranks for row in rows if row.n_ranks is not None)
    if len(said) > 1:
        raise InputError(f"{path}: has measurements of {sorted(said)} ranks; one number is checked at a time")
    if said and n_ranks is not None and n_ranks not in said:
        raise InputError(f"{path}: was measured on {min(said)} ranks, got {n_ranks}")
    return next(iter(said), n_ranks)


def _place_of(
    path: str, network: NetworkLike, machines: int | None, ranks: int | None, asked: int | None
) -> tuple[Network, int | None]:
    """Return the network of a log: one machine stands for as many as the ranks fill, and all GPUs must be measured."""
    where = network_of(on_machines(network, machines))
    has = len(where.endpoints)
    if ranks is None or ranks == has or (asked is not None and ranks < has):
        return where, ranks
    is_machine = isinstance(network, str) and "@" not in network and set(where.machine.tolist()) == {0}
    if is_machine and machines is None and ranks < has:  # some of the GPUs of one machine
        return where, ranks
    if is_machine and machines is None and not ranks % has:
        return network_of(on_machines(network, ranks // has)), ranks
    fewer = f", or -g {ranks} if it ran on {ranks} of them" if ranks < has else ""
    raise InputError(f"{path}: was measured on {ranks} ranks, {where.name} has {has}: give that network{fewer}")
