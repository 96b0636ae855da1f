"""Job log of Philly (Microsoft): ``cluster_job_log``, a JSON list of jobs with their attempts.

The duration is that of all attempts together, GPUs are those of the largest attempt. Jobs that never ran, or are
still running, are left out. The dates have no time zone, and only differences matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, located
from commsim.core.files.csv_rows import MISSING, seconds
from commsim.core.files.whole_files import read_any

from .reading_summary import ReadingSummary
from .trace_job import DRAWN, TraceJob


def read_philly(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read a ``cluster_job_log``.

    Raises
    ------
    InputError
        Naming file, job and field.
    """
    rows = read_any(path)
    if not isinstance(rows, list):
        raise InputError(f"{path}: must be a list of jobs, got {type(rows).__name__}")
    jobs = []
    for i, row in enumerate(rows):
        where = f"{path}: job {i}"
        if not isinstance(row, dict):
            raise InputError(f"{where} must be a table, got {type(row).__name__}")
        job = _philly_job(row, where)
        if job is None:
            said.left_out["that ran for no time, or without GPUs"] += 1
        else:
            jobs.append(job)
    return jobs


def _philly_job(row: Mapping[str, Any], where: str) -> TraceJob | None:
    attempts = row.get("attempts")
    if not isinstance(attempts, list):
        raise InputError(f"{where}: attempts must be a list, got {attempts!r}")
    duration, gpus = 0.0, 0
    for attempt in attempts:
        if not isinstance(attempt, dict):
            raise InputError(f"{where}: attempts must hold tables, got {attempt!r}")
        ends = [_time(attempt, field, where) for field in ("start_time", "end_time")]
        if ends[0] is not None and ends[1] is not None:
            duration += max(ends[1] - ends[0], 0.0)
            gpus = max(gpus, _gpus(attempt, where))
    if duration <= 0 or gpus < 1:
        return None
    submit, name = _time(row, "submitted_time", where), row.get("jobid")
    if submit is None or not isinstance(name, str):
        raise InputError(f"{where}: needs submitted_time and jobid, got {row.get('submitted_time')!r} and {name!r}")
    with located(where):
        return TraceJob(name, submit, gpus, duration, model=DRAWN)


def _time(row: Mapping[str, Any], field: str, where: str) -> float | None:
    value = row.get(field)
    if value is None or value in MISSING:
        return None
    try:
        return seconds(str(value))
    except ValueError:
        raise InputError(f"{where}: {field} must be a date such as 2017-10-07 01:11:39, got {value!r}") from None


def _gpus(attempt: Mapping[str, Any], where: str) -> int:
    detail = attempt.get("detail")
    lists = (
        [part.get("gpus") if isinstance(part, dict) else None for part in detail] if isinstance(detail, list) else [0]
    )
    if not all(isinstance(gpus, list) for gpus in lists):
        raise InputError(f"{where}: detail must be a list of tables with ip and gpus, got {detail!r}"[:300])
    return sum(len(gpus) for gpus in lists if isinstance(gpus, list))
