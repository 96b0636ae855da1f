"""Trace files of commsim: CSV, one job per line.

Columns: ``job, submit_s, gpus``; ``duration_s`` or ``iterations``; ``model``, or ``iter_time_ms`` with ``phases`` as in
(offset in ms, duration in ms, Gb/s of each host) ``141:114:37;300:20:10``; and, as far as wanted, ``cpu, memory_GiB,
deadline_s, min_gpus, max_gpus``.

A job of a trace: when it comes, how many GPUs it wants, and how much work it brings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError, located
from commsim.files.csv_rows import Row, read_rows, write_rows
from commsim.workload.sharing.periodic import GBPS, PeriodicJob, Phase

MAX_GPUS = 2**20
# Of any time in a trace: some 300 years.
MAX_SECONDS = 1e10


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One line of a trace.

    Parameters
    ----------
    name : str
        Printable.
    submit : float, s
        From the start of the trace.
    gpus : int
        What it asks for.
    duration : float, s, optional
        How long it runs alone on as many reference GPUs, packed; instead of `iterations`.
    iterations : float, optional
        Of as many GPUs as it asks for.
    model : str
        A name of the model table; empty if `period` and `phases` say what it does.
    period : float, s
        Iteration time alone, where no model is named.
    phases : tuple of Phase
        Communication in that iteration.
    cpu : float
        CPUs that it needs to run at full speed, all workers together; 0 for a job that does not mind.
    memory : float, bytes
        Likewise.
    deadline : float, s, optional
        From the start of the trace.
    min_gpus, max_gpus : int
        Between which policies that scale jobs may choose; `gpus` unless given.

    Raises
    ------
    InputError
        If a number is out of its range, or work or traffic is given twice or not at all.
    """

    name: str
    submit: float
    gpus: int
    duration: float | None = None
    iterations: float | None = None
    model: str = ""
    period: float = 0.0
    phases: tuple[Phase, ...] = ()
    cpu: float = 0.0
    memory: float = 0.0
    deadline: float | None = None
    min_gpus: int = 0
    max_gpus: int = 0

    def __post_init__(self) -> None:
        for field in ("min_gpus", "max_gpus"):
            object.__setattr__(self, field, getattr(self, field) or self.gpus)
        if not (self.name and self.name.isprintable()):
            raise InputError(f"job must be printable text, got {self.name!r}")
        self._require("submit_s", 0 <= self.submit <= MAX_SECONDS, f"0..{MAX_SECONDS:g}", self.submit)
        self._require("gpus", 1 <= self.gpus <= MAX_GPUS, f"1..{MAX_GPUS}", self.gpus)
        self._require("min_gpus", 1 <= self.min_gpus <= self.gpus, f"1..{self.gpus}", self.min_gpus)
        self._require("max_gpus", self.gpus <= self.max_gpus <= MAX_GPUS, f"{self.gpus}..{MAX_GPUS}", self.max_gpus)
        for field in ("cpu", "memory"):
            value = getattr(self, field)
            self._require(field, 0 <= value < math.inf, "0 or more", value)
        if self.deadline is not None:
            late = self.submit < self.deadline <= MAX_SECONDS
            self._require("deadline_s", late, f"later than submit_s and at most {MAX_SECONDS:g}", self.deadline)
        self._check_work()

    def _check_work(self) -> None:
        if (self.duration is None) == (self.iterations is None):
            raise InputError(f"{self.name}: give duration_s or iterations, one of the two")
        work = self.duration if self.duration is not None else self.iterations
        field = "duration_s" if self.duration is not None else "iterations"
        self._require(
            field, work is not None and 0 < work <= MAX_SECONDS, f"more than 0, at most {MAX_SECONDS:g}", work
        )
        if bool(self.model) == (self.period > 0):
            raise InputError(f"{self.name}: give a model or iter_time_ms, one of the two")
        if self.model and self.phases:
            raise InputError(f"{self.name}: phases come with iter_time_ms, not with a model")

    def _require(self, field: str, good: bool, wanted: str, got: object) -> None:
        if not good:
            raise InputError(f"{self.name}: {field} must be {wanted}, got {got}")


NEEDED = ("job", "submit_s", "gpus")
COLUMNS = (
    *NEEDED, "duration_s", "iterations", "model", "iter_time_ms", "phases",
    "cpu", "memory_GiB", "deadline_s", "min_gpus", "max_gpus",
)  # fmt: skip
GIB = 2.0**30
MAX_JOBS = 1_000_000


def read_trace(path: str | Path) -> tuple[TraceJob, ...]:
    """Read a trace, in order of submission.

    Raises
    ------
    InputError
        Naming file, line and column, if a line is malformed, a job is named twice, or there is no job.
    """
    jobs = [built(row, _job) for row in read_rows(path, NEEDED) if _known(row)]
    return checked(jobs, path)


def checked(jobs: Sequence[TraceJob], source: str | Path) -> tuple[TraceJob, ...]:
    """Put jobs in order of submission.

    Raises
    ------
    InputError
        If there is none, there are too many, or two have the same name.
    """
    if not jobs:
        raise InputError(f"{source}: has no job")
    if len(jobs) > MAX_JOBS:
        raise InputError(f"{source}: more than {MAX_JOBS} jobs")
    seen: set[str] = set()
    for job in jobs:
        if job.name in seen:
            raise InputError(f"{source}: the job {job.name!r} is there twice")
        seen.add(job.name)
    return tuple(sorted(jobs, key=lambda job: job.submit))


def write_trace(path: str | Path, jobs: Sequence[TraceJob]) -> None:
    """Write a trace that :func:`read_trace` reads back; the file appears whole or not at all."""
    write_rows(path, (COLUMNS, *map(_cells, jobs)))


def _cells(job: TraceJob) -> list[object]:
    phases = ";".join(
        f"{p.offset * 1e3!r}:{p.duration * 1e3!r}:{p.rate / GBPS!r}" + (f":{p.overlap * 1e3!r}" if p.overlap else "")
        for p in job.phases
    )
    optional = [None if v is None else repr(v) for v in (job.duration, job.iterations)]
    rest = (job.model, repr(job.period * 1e3) if job.period else None, phases, job.cpu or None)
    last = (job.memory / GIB or None, job.deadline, job.min_gpus, job.max_gpus)
    return [job.name, repr(job.submit), job.gpus, *optional, *rest, *last]


def built(row: Row, build: Callable[[Row], TraceJob]) -> TraceJob:
    """Build a job of a row, and put the row's place before what is wrong with it."""
    with located(row.where):
        return build(row)


def _known(row: Row) -> bool:
    unknown = [name for name in row.columns if name not in COLUMNS]
    if unknown:
        raise InputError(f"{row.where}: unknown column {unknown[0]!r}; known: {', '.join(COLUMNS)}")
    return True


def _job(row: Row) -> TraceJob:
    def optional(column: str) -> float | None:
        return row.number(column) if row.text(column) else None

    period = row.number("iter_time_ms", 0.0) / 1e3
    if row.text("phases") and not period > 0:
        row.refuse("iter_time_ms", "more than 0 where there are phases", row.text("iter_time_ms"))
    name, gpus = row.text("job"), row.whole("gpus")
    return TraceJob(
        name,
        row.number("submit_s"),
        gpus,
        optional("duration_s"),
        optional("iterations"),
        row.text("model"),
        period,
        _phases(row, name, period),
        row.number("cpu", 0.0),
        row.number("memory_GiB", 0.0) * GIB,
        optional("deadline_s"),
        row.whole("min_gpus", gpus),
        row.whole("max_gpus", gpus),
    )


def _phases(row: Row, name: str, period: float) -> tuple[Phase, ...]:
    text = row.text("phases")
    phases = []
    for part in text.split(";") if text else []:
        try:
            offset, duration, rate, *beside = (float(number) for number in part.split(":"))
            (overlap,) = beside or [0.0]
        except ValueError:
            row.refuse("phases", "offset_ms:dur_ms:rate_Gbps[:overlap_ms];... such as 141:114:37", text)
        phases.append(Phase(offset / 1e3, duration / 1e3, rate * GBPS, overlap / 1e3))
    if phases:
        PeriodicJob(name or "job", 1, period, tuple(phases))  # refuses what overlaps or does not fit
    return tuple(phases)
