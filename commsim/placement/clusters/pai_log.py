"""Job logs of PAI (Alibaba): ``pai_task_table`` of cluster-trace-gpu-v2020, and ``openb_pod_list_*.csv`` of v2023.

v2020 has no header line; a job is the sum of its tasks, GPUs are hundredths, CPUs too, memory is GiB per instance. It
starts when its first task does, since the tables do not say when it was submitted. v2023 counts milli-GPUs; there a pod
is a job. Shares of a GPU are rounded up to whole GPUs in both, counted and said: a GPU has one job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import located
from commsim.core.files.csv_rows import CsvRow, read_rows

from .reading_summary import ReadingSummary
from .trace_file import GIB, build_job
from .trace_job import DRAWN, TraceJob

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


def read_pai_2020(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read ``pai_task_table.csv``.

    Raises
    ------
    InputError
        Naming file, line and column.
    """
    sums: dict[str, _Sum] = {}
    for row in read_rows(path, TASKS, header=TASKS):
        gpus = row.number("plan_gpu", 0.0)
        if gpus <= 0:
            said.left_out["tasks without GPUs"] += 1
        elif not row.text("start_time") or not row.text("end_time"):
            said.left_out["tasks without start or end"] += 1
        else:
            if gpus % 100:
                said.shares += [gpus % 100 / 100] * int(row.number("inst_num", 1.0))
            _add(sums.setdefault(row.text("job_name"), _Sum(row.where)), row, gpus)
    jobs = []
    for name, total in sums.items():
        if total.end <= total.start:
            said.left_out["that ran for no time"] += 1
        if total.end > total.start:
            gpus, seconds = math.ceil(total.gpus), total.end - total.start
            with located(total.where):
                job = TraceJob(name, total.start, gpus, seconds, model=DRAWN, cpu=total.cpu, memory=total.memory)
            jobs.append(job)
    return jobs


def _add(total: _Sum, row: CsvRow, gpus: float) -> None:
    n = row.number("inst_num", 1.0)
    total.start = min(total.start, row.number("start_time"))
    total.end = max(total.end, row.number("end_time"))
    total.gpus += math.ceil(gpus / 100) * n
    total.cpu += row.number("plan_cpu", 0.0) / 100 * n
    total.memory += row.number("plan_mem", 0.0) * GIB * n


def read_pai_2023(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read ``openb_pod_list_*.csv``; a pod that was never scheduled, or not deleted, is left out and counted."""
    jobs = []
    for row in read_rows(path, PODS):
        if row.number("num_gpu", 0.0) <= 0:
            said.left_out["without GPUs"] += 1
        elif _lived(row) <= 0:
            said.left_out["never scheduled, or not deleted"] += 1
        else:
            share = row.number("gpu_milli", 1000.0) / 1000
            if row.number("num_gpu") == 1 and 0 < share < 1:
                said.shares.append(share)
            jobs.append(build_job(row, _pod))
    return jobs


def _lived(row: CsvRow) -> float:
    if not row.text("scheduled_time") or not row.text("deletion_time"):
        return 0.0
    return row.number("deletion_time") - row.number("scheduled_time")


def _pod(row: CsvRow) -> TraceJob:
    memory = row.number("memory_mib", 0.0) * 2.0**20
    cpu, submit = row.number("cpu_milli", 0.0) / 1000, row.number("creation_time")
    return TraceJob(row.text("name"), submit, row.whole("num_gpu"), _lived(row), model=DRAWN, cpu=cpu, memory=memory)
