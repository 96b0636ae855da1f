"""Trace files of commsim: CSV, one job per line.

Columns: ``job, submit_s, gpus``; ``duration_s`` or ``iterations``; ``model``, or ``iter_time_ms`` with ``phases`` as in
(offset in ms, duration in ms, Gb/s of each host) ``141:114:37;300:20:10``, or none of these where a model is to be
drawn for each job, as for logs; and, as far as wanted, ``cpu, memory_GiB,
deadline_s, min_gpus, max_gpus, gpus_per_host``. Columns ``own_NAME`` are the user's own, for policies of the user's
own; so are all others where a file's own names of columns are given. ``gpus`` below 1 is a share of a GPU, which is
read as a whole one, as in the readers of logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from commsim.core.errors import InputError, located
from commsim.core.files.csv_rows import CsvRow, read_rows, write_rows
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob

from .reading_summary import ReadingSummary
from .trace_job import DRAWN, TraceJob

NEEDED = ("job", "submit_s", "gpus")
COLUMNS = (
    *NEEDED, "duration_s", "iterations", "model", "iter_time_ms", "phases",
    "cpu", "memory_GiB", "deadline_s", "min_gpus", "max_gpus", "gpus_per_host",
)  # fmt: skip
PER_HOST = "gpus_per_host"  # written only where a job has it
OWN = "own_"
GIB = 2.0**30
MAX_JOBS = 1_000_000


def read_trace(
    path: str | Path, said: ReadingSummary | None = None, names: Mapping[str, str] | None = None
) -> tuple[TraceJob, ...]:
    """Read a trace, in order of submission.

    Parameters
    ----------
    said : ReadingSummary, optional
        Counts jobs on shares of a GPU, which have a whole one here.
    names : mapping of str to str, optional
        Names that the file has for columns, such as ``{"submit_s": "submitted_at"}``. All columns that are not named
        are then the user's own.

    Raises
    ------
    InputError
        Naming file, line and column, if a line is malformed, a job is named twice, or no job is given.
    """
    shares, names = ReadingSummary().shares if said is None else said.shares, names or {}
    if unknown := [column for column in names if column not in COLUMNS]:
        raise InputError(f"{path}: no column is {unknown[0]!r}; known: {', '.join(COLUMNS)}")
    needed = [names.get(column, column) for column in dict.fromkeys((*NEEDED, *names))]
    rows = (_renamed(row, names) for row in read_rows(path, needed, hint=f"; {path}:job=NAME,... reads other names"))
    return checked([build_job(row, lambda row: _job(row, shares)) for row in rows if _is_known(row)], path)


def _renamed(row: CsvRow, names: Mapping[str, str]) -> CsvRow:
    """Return a row with the columns named as here; other columns become the user's own."""
    if not names:
        return row
    known = {name: column for column, name in names.items()}
    usual = {column for column in COLUMNS if column not in names}
    new = {name: known.get(name, name if name in usual or name.startswith(OWN) else OWN + name) for name in row.columns}
    return CsvRow(row.where, {new[name]: row.text(name) for name in row.columns})


def checked(jobs: Sequence[TraceJob], source: str | Path) -> tuple[TraceJob, ...]:
    """Put jobs in order of submission.

    Raises
    ------
    InputError
        If none is given, they are too many, or two have the same name.
    """
    if not jobs:
        raise InputError(f"{source}: has no job")
    if len(jobs) > MAX_JOBS:
        raise InputError(f"{source}: more than {MAX_JOBS} jobs")
    seen: set[str] = set()
    for job in jobs:
        if job.name in seen:
            raise InputError(f"{source}: the job {job.name!r} appears twice")
        seen.add(job.name)
    return tuple(sorted(jobs, key=lambda job: job.submit))


def write_trace(path: str | Path, jobs: Sequence[TraceJob]) -> None:
    """Write a trace that :func:`read_trace` reads back; the file appears whole or not at all."""
    own = list(dict.fromkeys(name for job in jobs for name in job.own))
    more = [PER_HOST] if any(job.gpus_per_host for job in jobs) else []
    rows = (
        [*_cells(job), *(job.gpus_per_host for _ in more), *(job.own.get(name, "") for name in own)] for job in jobs
    )
    usual = [column for column in COLUMNS if column != PER_HOST]
    write_rows(path, ((*usual, *more, *(OWN + name for name in own)), *rows))


def _cells(job: TraceJob) -> list[object]:
    phases = ";".join(
        f"{p.offset * 1e3!r}:{p.duration * 1e3!r}:{p.rate / GBPS!r}" + (f":{p.overlap * 1e3!r}" if p.overlap else "")
        for p in job.phases
    )
    optional = [None if v is None else repr(v) for v in (job.duration, job.iterations)]
    rest = (job.model, repr(job.period * 1e3) if job.period else None, phases, job.cpu or None)
    last = (job.memory / GIB or None, job.deadline, job.min_gpus, job.max_gpus)
    return [job.name, repr(job.submit), job.n_gpus, *optional, *rest, *last]


def build_job(row: CsvRow, build: Callable[[CsvRow], TraceJob]) -> TraceJob:
    """Build a job of a row, and put the row's place before what is wrong with it."""
    with located(row.where):
        return build(row)


def _is_known(row: CsvRow) -> bool:
    unknown = [name for name in row.columns if name not in COLUMNS and not name.startswith(OWN)]
    if unknown:
        known = f"known: {', '.join(COLUMNS)}; columns of your own begin with {OWN}"
        raise InputError(f"{row.where}: unknown column {unknown[0]!r}; {known}")
    return True


def _job(row: CsvRow, shares: list[float]) -> TraceJob:
    def optional(column: str) -> float | None:
        return row.number(column) if row.text(column) else None

    period = row.number("iter_time_ms", 0.0) / 1e3
    if row.text("phases") and not period > 0:
        row.refuse("iter_time_ms", "more than 0 where there are phases", row.text("iter_time_ms"))
    name, gpus = row.text("job"), _gpus(row, shares)
    return TraceJob(
        name,
        row.number("submit_s"),
        gpus,
        optional("duration_s"),
        optional("iterations"),
        row.text("model") if {"model", "iter_time_ms"} & {*row.columns} else DRAWN,
        period,
        _phases(row, name, period),
        row.number("cpu", 0.0),
        row.number("memory_GiB", 0.0) * GIB,
        optional("deadline_s"),
        row.whole("min_gpus", gpus),
        row.whole("max_gpus", gpus),
        {name[len(OWN) :]: row.text(name) for name in row.columns if name.startswith(OWN)},
        row.whole(PER_HOST) if row.text(PER_HOST) else None,
    )


def _gpus(row: CsvRow, shares: list[float]) -> int:
    share = row.number("gpus")
    if 0 < share < 1:
        shares.append(share)
        return 1
    if share != int(share):
        row.refuse("gpus", "a whole number, or a share of one GPU such as 0.25", row.text("gpus"))
    return int(share)


def _phases(row: CsvRow, name: str, period: float) -> tuple[JobPhase, ...]:
    text = row.text("phases")
    phases = []
    for part in text.split(";") if text else []:
        try:
            offset, duration, rate, *beside = (float(number) for number in part.split(":"))
            (overlap,) = beside or [0.0]
        except ValueError:
            row.refuse("phases", "offset_ms:dur_ms:rate_Gbps[:overlap_ms];... such as 141:114:37", text)
        phases.append(JobPhase(offset / 1e3, duration / 1e3, rate * GBPS, overlap / 1e3))
    if phases:
        PeriodicJob(name or "job", 1, period, tuple(phases))  # refuses what overlaps or does not fit
    return tuple(phases)
