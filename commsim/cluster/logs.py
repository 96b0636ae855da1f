"""Readers of public job logs: Philly, Helios, PAI (2020 and 2023) and Acme.

Each keeps the jobs that ran on whole GPUs, and says what it assumed. None of these logs names the model that a job
trained in a way that we could use, so models are drawn at random, seeded.

PAI (Alibaba): ``pai_task_table`` of cluster-trace-gpu-v2020, and ``openb_pod_list_*.csv`` of v2023.

v2020 has no header line; a job is the sum of its tasks, GPUs are hundredths, CPUs too, memory is GiB per instance. It
starts when its first task does, since the tables do not say when it was submitted. v2023 counts milli-GPUs; there a pod
is a job. Shares of a GPU are rounded up to whole GPUs in both: sharing of that kind is not modelled.

Philly (Microsoft): ``cluster_job_log``, a JSON list of jobs with their attempts.

The duration is that of all attempts together, GPUs are those of the largest attempt. Jobs that never ran, or are
still running, are left out. The dates have no time zone, and only differences matter.

Helios (SenseTime, ``cluster_log.csv``) and Acme (Shanghai AI Lab, ``trace_seren.csv``, ``trace_kalos.csv``).

Jobs without GPUs, or that ran for no time at all, are left out. Dates without a time zone are taken as UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError, located
from commsim.files.csv_rows import MISSING, Row, read_rows, seconds
from commsim.files.whole_files import read_any

from .trace_file import MAX_JOBS, TraceJob, built, checked

GIB = 2.0**30
TASKS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time", "scheduled_time")


@dataclass(slots=True)
class _Sum:
    """Tasks of one job, together."""

    where: str
    start: float = math.inf
    end: float = -math.inf
    gpus: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0


def read_pai_2020(path: str | Path) -> list[TraceJob]:
    """Read ``pai_task_table.csv``.

    Raises
    ------
    InputError
        Naming file, line and column.
    """
    sums: dict[str, _Sum] = {}
    for row in read_rows(path, TASKS, header=TASKS):
        gpus = row.number("plan_gpu", 0.0)
        if gpus > 0 and row.text("start_time") and row.text("end_time"):
            _add(sums.setdefault(row.text("job_name"), _Sum(row.where)), row, gpus)
    jobs = []
    for name, total in sums.items():
        if total.end > total.start:
            gpus, seconds = math.ceil(total.gpus), total.end - total.start
            with located(total.where):
                job = TraceJob(name, total.start, gpus, seconds, model="?", cpu=total.cpu, memory=total.memory)
            jobs.append(job)
    return jobs


def _add(total: _Sum, row: Row, gpus: float) -> None:
    n = row.number("inst_num", 1.0)
    total.start = min(total.start, row.number("start_time"))
    total.end = max(total.end, row.number("end_time"))
    total.gpus += math.ceil(gpus / 100) * n
    total.cpu += row.number("plan_cpu", 0.0) / 100 * n
    total.memory += row.number("plan_mem", 0.0) * GIB * n


def read_pai_2023(path: str | Path) -> list[TraceJob]:
    """Read ``openb_pod_list_*.csv``; a pod that was never scheduled, or not deleted, is left out."""
    rows = read_rows(path, PODS)
    return [built(row, _pod) for row in rows if row.number("num_gpu", 0.0) > 0 and _lived(row) > 0]


def _lived(row: Row) -> float:
    if not row.text("scheduled_time") or not row.text("deletion_time"):
        return 0.0
    return row.number("deletion_time") - row.number("scheduled_time")


def _pod(row: Row) -> TraceJob:
    memory = row.number("memory_mib", 0.0) * 2.0**20
    cpu, submit = row.number("cpu_milli", 0.0) / 1000, row.number("creation_time")
    return TraceJob(row.text("name"), submit, row.whole("num_gpu"), _lived(row), model="?", cpu=cpu, memory=memory)


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
        job = _philly_job(row, where)
        if job is not None:
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
        return TraceJob(name, submit, gpus, duration, model="?")


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


def read_helios(path: str | Path) -> list[TraceJob]:
    """Read one cluster's ``cluster_log.csv``; raises as :func:`commsim.files.csv_rows.read_rows`."""
    return [built(row, _row_job) for row in read_rows(path, NEEDED) if _ran(row)]


def read_acme(path: str | Path) -> list[TraceJob]:
    """Read ``trace_seren.csv`` or ``trace_kalos.csv``, of which the second also says the memory of a pod."""
    return [built(row, _row_job) for row in read_rows(path, (*NEEDED, "type", "gpu_time")) if _ran(row)]


def _ran(row: Row) -> bool:
    return row.number("gpu_num", 0.0) > 0 and row.number("duration", 0.0) > 0 and row.text("submit_time") != ""


def _row_job(row: Row) -> TraceJob:
    memory = row.number("mem_per_pod_GB", 0.0) * row.number("node_num", 1.0) * GIB
    gpus, cpu = row.whole("gpu_num"), row.number("cpu_num", 0.0)
    return TraceJob(
        row.text("job_id"), row.time("submit_time"), gpus, row.number("duration"), model="?", cpu=cpu, memory=memory
    )


READERS: dict[str, Callable[[str | Path], list[TraceJob]]] = {
    "philly": read_philly,
    "helios": read_helios,
    "pai2020": read_pai_2020,
    "pai2023": read_pai_2023,
    "acme": read_acme,
}


def read_log(kind: str, path: str | Path, models: Sequence[str], seed: int = 0) -> tuple[TraceJob, ...]:
    """Read a public log as a trace that starts at 0 with its first job.

    Parameters
    ----------
    kind : str
        A name in ``READERS``.
    models : sequence of str
        To draw from, one for each job.

    Raises
    ------
    InputError
        If the kind is unknown or the file is not of that kind, naming the line.
    """
    if kind not in READERS:
        raise InputError(f"unknown kind of log {kind!r}; known: {', '.join(READERS)}")
    jobs = READERS[kind](path)
    if not jobs:
        raise InputError(f"{path}: has no job that ran on GPUs")
    if len(jobs) > MAX_JOBS:
        raise InputError(f"{path}: more than {MAX_JOBS} jobs on GPUs; cut the file")
    start = min(job.submit for job in jobs)
    drawn = np.random.default_rng(seed).integers(len(models), size=len(jobs))
    return checked(
        [replace(job, submit=job.submit - start, model=models[i]) for job, i in zip(jobs, drawn, strict=True)], path
    )
