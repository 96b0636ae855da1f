"""Microsoft's Philly: ``cluster_job_log``, a JSON list of jobs with their attempts.

The duration is that of all attempts together, GPUs are those of the largest attempt. Jobs that never ran, or are
still running, are left out. The dates have no time zone, and only differences matter.

SenseTime's Helios (``cluster_log.csv``) and Shanghai AI Lab's Acme (``trace_seren.csv``, ``trace_kalos.csv``).

Jobs without GPUs, or that ran for no time at all, are left out. Dates without a time zone are taken as UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.files.whole_files import read_any

from ..table_rows import MISSING, Row, read_rows, seconds
from ..trace_file import TraceJob, built


def read_philly(path: str | Path) -> list[TraceJob]:
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
        job = _job(row, where)
        if job is not None:
            jobs.append(job)
    return jobs


def _job(row: Mapping[str, Any], where: str) -> TraceJob | None:
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
    return _built(where, name, submit, gpus, duration)


def _built(where: str, name: str, submit: float, gpus: int, duration: float) -> TraceJob:
    try:
        return TraceJob(name, submit, gpus, duration, model="?")
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


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


NEEDED = ("job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "duration")
GIB = 2.0**30


def read_helios(path: str | Path) -> list[TraceJob]:
    """Read one cluster's ``cluster_log.csv``; raises as :func:`commsim.cluster.table_rows.read_rows`."""
    return [built(row, _job_tables) for row in read_rows(path, NEEDED) if _ran(row)]


def read_acme(path: str | Path) -> list[TraceJob]:
    """Read ``trace_seren.csv`` or ``trace_kalos.csv``, of which the second also says the memory of a pod."""
    return [built(row, _job_tables) for row in read_rows(path, (*NEEDED, "type", "gpu_time")) if _ran(row)]


def _ran(row: Row) -> bool:
    return row.number("gpu_num", 0.0) > 0 and row.number("duration", 0.0) > 0 and row.text("submit_time") != ""


def _job_tables(row: Row) -> TraceJob:
    memory = row.number("mem_per_pod_GB", 0.0) * row.number("node_num", 1.0) * GIB
    gpus, cpu = row.whole("gpu_num"), row.number("cpu_num", 0.0)
    return TraceJob(
        row.text("job_id"), row.time("submit_time"), gpus, row.number("duration"), model="?", cpu=cpu, memory=memory
    )
