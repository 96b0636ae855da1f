"""Training jobs as periodic traffic: an iteration time, and phases in which every host sends at a known rate.

The file is a list of tables, ``[{"job", "gpus", "iter_time_ms", "phases": [{"offset_ms", "dur_ms", "rate_Gbps"}],
"placement": [...]?}]``; a phase may have ``overlap_ms``, and a job ``start_ms``, ``placed`` or ``gpus_per_host``. A
phase of demand has ``bytes`` in place of duration and rate, and may have ``groups``: what a ring of one NIC carries on
each edge. With a ``pattern`` of ``send`` each rank of a group but the last sends the bytes to the next one; with
``all_to_all`` each rank sends them to all others, in equal parts. The iteration time of such a job is without
communication.

References
----------
Rajasekaran et al., "CASSINI: Network-aware job scheduling in machine learning clusters", NSDI 2024, section 2: profiles
of a single job, which repeat as long as its hyper-parameters do not change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.fields import Keys, TableFields
from commsim.core.files.whole_files import read_any
from commsim.core.units import MAX_RATE

from .job_places import groups_of, kept_of, placed_of, placement_of
from .job_rows import plain, rows_of, rows_of_frame

GBPS = 1e9 / 8  # bytes per second
KEYS_OF = {"offset": "offset_ms", "duration": "dur_ms", "rate": "rate_Gbps", "overlap": "overlap_ms"}
# Bytes/s of a phase that is demand: every path has less, so that its bytes take their time there.
UNBOUNDED = 1e18
# Patterns of what the ranks of a group exchange in a phase of demand; the bytes are those that a rank sends on.
RING, SEND, ALL_TO_ALL = PATTERNS = ("ring", "send", "all_to_all")
MOST_BYTES = 1e15  # of a phase of demand: a petabyte in each iteration
MOST_PERIODS = 1000  # before a fixed start; a later one is in another unit
_BEFORE_END = 1e-9  # part of an iteration by which demand at its end begins before it
ROUNDING = 1e-9  # of an iteration: by so much phases may overlap that were written to touch


@dataclass(frozen=True, slots=True)
class JobPhase:
    """A part of the iteration in which the job communicates.

    Parameters
    ----------
    offset : float, s
        Time from the start of the iteration.
    duration : float, s
        Alone on the network; a phase that ends after the iteration goes on at the start of the next.
    rate : float, bytes/s
        Rate of each host, one way; of each NIC in use, where hosts are machines of GPUs and NICs.
    overlap : float, s
        Computation that runs beside the phase from its start, whether the phase is slowed down or not. What follows
        waits for both, so a phase may be late by what this exceeds its duration, and delay nothing.
    groups : tuple of tuple of int
        Ranks of each group that exchanges the bytes in a ring of its own, of a phase that is demand; by default all
        ranks are one group.
    pattern : {"ring", "send", "all_to_all"}
        Messages of a group: on a ring; from each rank to the next one; from each rank to all others in equal parts.
    """

    offset: float
    duration: float
    rate: float
    overlap: float = 0.0
    groups: tuple[tuple[int, ...], ...] = ()
    pattern: str = RING

    @property
    def is_demand(self) -> bool:
        """Whether it is bytes that take what the job's path needs for them, and not a rate on some network."""
        return self.rate >= UNBOUNDED

    @property
    def n_bytes(self) -> float:
        """Bytes that each host sends."""
        return self.duration * self.rate

    @property
    def length(self) -> float:
        """Seconds after which the job goes on, without other jobs."""
        return max(self.duration, self.overlap)


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A job whose traffic repeats with every iteration.

    Parameters
    ----------
    name : str
        Printable.
    n_gpus : int
        Number of GPUs, at least 1.
    period : float, s
        Iteration time without other jobs.
    phases : tuple of JobPhase
        Phases in order, without overlap, also across the end of the iteration.
    placement : tuple of str, optional
        Nodes of a network, one per GPU in the order of ranks.
    start : float, s, optional
        Time at which an iteration starts, of a job that is not to be moved; by default free. It may be later than
        `period`, since iterations take longer on a path with less than the rate of a phase.
    placed : tuple of str
        Nodes that its first ranks have and keep, of a job that is to be placed; empty text for a rank that has none.
    gpus_per_host : int, optional
        Number of GPUs that it has on each of its hosts, which divides `n_gpus`; by default any.

    Raises
    ------
    InputError
        If one of these is not so.
    """

    name: str
    n_gpus: int
    period: float
    phases: tuple[JobPhase, ...]
    placement: tuple[str, ...] | None = None
    start: float | None = None
    placed: tuple[str, ...] = ()
    gpus_per_host: int | None = None

    def __post_init__(self) -> None:
        if not (self.name and self.name.isprintable()):
            raise InputError(f"a job's name is printable text, got {self.name!r}")
        if self.n_gpus < 1:
            raise InputError(f"{self.name}: n_gpus must be at least 1, got {self.n_gpus}")
        if not 0 < self.period < math.inf:
            raise InputError(f"{self.name}: period must be positive and finite, got {self.period}")
        if self.placement is not None and len(self.placement) != self.n_gpus:
            more = f": {kept_of(self.n_gpus)}" if len(self.placement) > self.n_gpus else ""
            raise InputError(f"{self.name}: {self.n_gpus} GPUs need as many places, got {len(self.placement)}{more}")
        if len(self.placed) > self.n_gpus:
            got = f"{self.n_gpus} GPUs cannot have {len(self.placed)} places"
            raise InputError(f"{self.name}: {got}: {kept_of(self.n_gpus)}")
        if self.gpus_per_host is not None and (self.gpus_per_host < 1 or self.n_gpus % self.gpus_per_host):
            raise InputError(f"{self.name}: gpus_per_host must divide {self.n_gpus} GPUs, got {self.gpus_per_host}")
        if self.start is not None and not 0 <= self.start < MOST_PERIODS * self.period:
            raise InputError(
                f"{self.name}: start must be 0 or more and less than {MOST_PERIODS} periods, got {self.start}"
            )
        if len({phase.is_demand for phase in self.phases}) > 1:
            raise InputError(f"{self.name}: phases have bytes or rates, all the same")
        if (fault := _fault(self.period, self.phases)) is not None:
            i, field, wanted = fault
            raise InputError(f"{self.name}: phase {i}: {field} must be {wanted}, got {getattr(self.phases[i], field)}")

    @property
    def n_bytes(self) -> float:
        """Bytes that each host sends in one iteration."""
        return sum(phase.n_bytes for phase in self.phases)

    @property
    def is_demand(self) -> bool:
        """Whether its phases are demand (:attr:`JobPhase.is_demand`), so that its period is without communication."""
        return any(phase.is_demand for phase in self.phases)

    @property
    def peak_rate(self) -> float:
        """Rate of the fastest phase, bytes/s; 0 without phases."""
        return max((phase.rate for phase in self.phases), default=0.0)

    @property
    def communication_time(self) -> float:
        """Seconds of an iteration in which the job communicates, without other jobs."""
        return sum(phase.duration for phase in self.phases)

    @property
    def compute_time(self) -> float:
        """Seconds of an iteration in which the job computes: all but communication that nothing overlaps."""
        return max(self.period - sum(phase.length - phase.overlap for phase in self.phases), 0.0)

    @property
    def overlap(self) -> float:
        """Seconds of its computation that run beside its communication."""
        return sum(phase.overlap for phase in self.phases)

    @property
    def slack(self) -> float:
        """Seconds by which its phases may be late together, each by its own part, and delay nothing."""
        return sum(phase.length - phase.duration for phase in self.phases)


def with_starts(jobs: Sequence[PeriodicJob]) -> list[PeriodicJob]:
    """Return the jobs with the fixed starts in the offsets of their phases: they send the same, started at 0."""
    return [_with_start(job) if job.start else job for job in jobs]


def _with_start(job: PeriodicJob) -> PeriodicJob:
    moved = (replace(phase, offset=(phase.offset + (job.start or 0.0)) % job.period) for phase in job.phases)
    return replace(job, phases=tuple(sorted(moved, key=lambda phase: phase.offset)), start=0.0)


JobsLike: TypeAlias = str | PathLike[str] | Sequence[PeriodicJob] | Sequence[Mapping[str, Any] | PeriodicJob]


def read_jobs(path: JobsLike) -> tuple[PeriodicJob, ...]:
    """Read a ``jobs.json``, a list of dicts like its rows, or a data frame of them; jobs are returned as they are.

    A file may also have the form of requests and answers of ``commsim place serve``, ``{"jobs": [...]}``; a list may
    have both dicts and jobs.

    Raises
    ------
    InputError
        Naming file, line, job and field, if the file cannot be read, or does not hold jobs.
    """
    if isinstance(path, (str, PathLike)):
        return parse_jobs(*rows_of(read_any(Path(path)), Path(path)))
    tables: object = [path] if isinstance(path, (PeriodicJob, Mapping)) else rows_of_frame(path)
    if not isinstance(tables, Sequence):
        raise wrong_kind("jobs", "a list of jobs (PeriodicJob or dict), or the path of their file", path)
    jobs = tuple(job for job in tables if isinstance(job, PeriodicJob))
    if jobs and len(jobs) == len(tables):
        return jobs
    return parse_jobs([plain(job) for job in tables])


def parse_jobs(rows: object, source: str | Path = "jobs", keys: Keys = ()) -> tuple[PeriodicJob, ...]:
    """Make jobs of data that was already decoded.

    Parameters
    ----------
    rows : list of dict
        Rows as in the file.
    source : path or str
        Source of the rows, named in messages.
    keys : tuple of str and int
        Path to the list in the source, such as ``("jobs",)``.

    Raises
    ------
    InputError
        Naming source, job and field, if something is missing, unknown, of the wrong type, or out of its range; if there
        is no job, or two have the same name.
    """
    top = TableFields({}, source, keys)
    if not isinstance(rows, list) or not rows:
        top.fail(None, f"must be a list of jobs, at least one, got {type(rows).__name__}{' []' if rows == [] else ''}")
    jobs: list[PeriodicJob] = []
    for i, row in enumerate(rows):
        if not isinstance(row, (dict, PeriodicJob)):
            top.fail(i, f"must be a table, got {type(row).__name__}")
        fields = TableFields(row if isinstance(row, dict) else {"job": row.name}, source, (*keys, i))
        jobs.append(row if isinstance(row, PeriodicJob) else _job(fields))
        first = next(n for n, job in enumerate(jobs) if job.name == jobs[-1].name)
        if first < i:
            fields.fail("job", f"must be another name than {jobs[-1].name!r}, which job {first} has")
    return tuple(jobs)


def _job(fields: TableFields) -> PeriodicJob:
    name = fields.text("job")
    if not (name and name.isprintable()):
        fields.refuse("job", "printable text")
    n_gpus = fields.whole("gpus", minimum=1)
    period = fields.number("iter_time_ms") / 1e3
    if not period > 0:
        fields.refuse("iter_time_ms", "more than 0")
    tables = fields.tables("phases")
    phases = before_end([_phase(table, n_gpus) for table in tables], period)
    if (fault := _fault(period, phases)) is not None:
        i, field, wanted = fault
        tables[i].refuse(KEYS_OF[field], wanted)
    placement = placement_of(fields, n_gpus)
    start = None if fields.raw("start_ms") is None else fields.number("start_ms") / 1e3
    if start is not None and not 0 <= start < MOST_PERIODS * period:
        fields.refuse("start_ms", f"0 or more, and less than {MOST_PERIODS} iteration times")
    placed = placed_of(fields, n_gpus)
    if placed and placement is not None:
        fields.fail("placed", "and placement have the same meaning; give one of them")
    if len(placed) == n_gpus:  # as `GET /jobs` lists a job that was placed
        placement, placed = placed, ()
    per_host = None if fields.raw("gpus_per_host") is None else fields.whole("gpus_per_host", minimum=1)
    if per_host is not None and n_gpus % per_host:
        fields.refuse("gpus_per_host", f"a whole number that divides gpus, which is {n_gpus}")
    fields.finish()
    return PeriodicJob(name, n_gpus, period, phases, placement, start, placed, per_host)


def before_end(phases: Sequence[JobPhase], period: float) -> tuple[JobPhase, ...]:
    """Return the phases, those of demand that begin with the end of the iteration just before it.

    They take no time by themselves: all computation of an iteration without communication may come before them.
    """
    after = period * (1 + ROUNDING)
    late = [phase.rate == UNBOUNDED and period <= phase.offset <= after for phase in phases]
    return tuple(
        replace(one, offset=period * (1 - _BEFORE_END)) if is_late else one
        for one, is_late in zip(phases, late, strict=True)
    )


def is_at_end(phase: JobPhase, period: float) -> bool:
    """Whether a phase of demand begins where :func:`before_end` puts it, so that its file has the end itself."""
    return phase.is_demand and phase.offset >= period * (1 - 2 * _BEFORE_END)


def _phase(table: TableFields, n_gpus: int) -> JobPhase:
    offset = table.number("offset_ms") / 1e3
    overlap = 0.0 if table.raw("overlap_ms") is None else table.number("overlap_ms") / 1e3
    if "bytes" in table:
        n_bytes = table.number("bytes")
        if not 0 < n_bytes <= MOST_BYTES:
            table.refuse("bytes", f"more than 0, and at most {MOST_BYTES:g}")
        groups = groups_of(table, n_gpus) if "groups" in table else ()
        pattern = RING if table.raw("pattern") is None else table.text("pattern")
        if pattern not in PATTERNS:
            table.refuse("pattern", f"one of {', '.join(PATTERNS)}")
        table.finish()
        return JobPhase(offset, n_bytes / UNBOUNDED, UNBOUNDED, overlap, groups, pattern)
    duration, rate = table.number("dur_ms"), table.number("rate_Gbps")
    table.finish()
    if not 0 < rate <= MAX_RATE / GBPS:
        table.refuse("rate_Gbps", f"more than 0, and at most {MAX_RATE / GBPS:g}")
    return JobPhase(offset, duration / 1e3, rate * GBPS, overlap)


def _fault(period: float, phases: tuple[JobPhase, ...]) -> tuple[int, str, str] | None:
    """Find the first thing wrong with the phases: which one, which field, and what was wanted."""
    slack = ROUNDING * period
    for i, phase in enumerate(phases):
        if not 0 <= phase.offset < period:
            return i, "offset", "0 or more, and less than the iteration time"
        if not 0 < phase.duration <= period + slack:
            return i, "duration", "more than 0, and at most the iteration time"
        if not 0 < phase.rate < math.inf:
            return i, "rate", "more than 0"
        if i and phase.offset < phases[i - 1].offset + phases[i - 1].duration - slack:
            return i, "offset", "at or after the end of the phase before it"
    if phases and phases[-1].offset + phases[-1].duration > period + phases[0].offset + slack:
        return len(phases) - 1, "duration", "such that it ends before the first phase of the next iteration"
    following = [*(phase.offset for phase in phases[1:]), *(period + phase.offset for phase in phases[:1])]
    for i, (phase, then) in enumerate(zip(phases, following, strict=True)):
        if not 0 <= phase.overlap <= then - phase.offset + slack:
            return i, "overlap", "0 or more, and end before the next phase begins"
    return None
