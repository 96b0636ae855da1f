"""Job logs of Helios (SenseTime) and Acme (Shanghai AI Lab): one line per job, as Slurm accounts for it.

The files are ``cluster_log.csv`` of Helios, ``trace_seren.csv`` and ``trace_kalos.csv`` of Acme.
Jobs without GPUs, or that ran for no time at all, are left out. Dates without a time zone are taken as UTC.
"""

from __future__ import annotations

from pathlib import Path

from commsim.core.files.csv_rows import CsvRow, read_rows

from .reading_summary import ReadingSummary
from .trace_file import GIB, build_job
from .trace_job import DRAWN, TraceJob

NEEDED = ("job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "duration")


def read_helios(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read one cluster's ``cluster_log.csv``; raises as :func:`commsim.core.files.csv_rows.read_rows`."""
    return [build_job(row, _row_job) for row in read_rows(path, NEEDED) if _ran(row, said)]


def read_acme(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read ``trace_seren.csv`` or ``trace_kalos.csv``; the second also has the memory of a pod."""
    return [build_job(row, _row_job) for row in read_rows(path, (*NEEDED, "type", "gpu_time")) if _ran(row, said)]


def _ran(row: CsvRow, said: ReadingSummary) -> bool:
    """Whether a job ran on GPUs; one that did not is counted."""
    why = (
        "without GPUs" if row.number("gpu_num", 0.0) <= 0 else "that ran for no time"
        if row.number("duration", 0.0) <= 0 else "without a time of submission" if not row.text("submit_time") else ""
    )  # fmt: skip
    if why:
        said.left_out[why] += 1
    return not why


def _row_job(row: CsvRow) -> TraceJob:
    memory = row.number("mem_per_pod_GB", 0.0) * row.number("node_num", 1.0) * GIB
    gpus, cpu = row.whole("gpu_num"), row.number("cpu_num", 0.0)
    return TraceJob(
        row.text("job_id"), row.time("submit_time"), gpus, row.number("duration"), model=DRAWN, cpu=cpu, memory=memory
    )
