"""Accounts of a Slurm cluster: ``sacct -P -X -o JobID,Submit,Start,End,AllocTRES``, one line per job.

Other columns may be there. GPUs are ``gres/gpu`` of AllocTRES; where only types are counted (``gres/gpu:h100=8``) their
sum. Steps of jobs, which ``-X`` leaves out, jobs without GPUs, and those that did not start or still run are left out
and counted. Times are as sacct prints them, in the cluster's time zone, and taken as UTC.

Source: sacct(1) of Slurm 24.05, sections OPTIONS (--parsable2, --allocations) and Job Accounting Fields
"""

from __future__ import annotations

import re
from pathlib import Path

from commsim.core.files.csv_rows import CsvRow, read_rows

from .reading_summary import ReadingSummary
from .trace_file import build_job
from .trace_job import DRAWN, TraceJob

NEEDED = ("JobID", "Submit", "Start", "End", "AllocTRES")
_NO_TIME = ("", "Unknown", "None")


def read_sacct(path: str | Path, said: ReadingSummary) -> list[TraceJob]:
    """Read what sacct printed; raises as :func:`commsim.core.files.csv_rows.read_rows`."""
    return [build_job(row, _row_job) for row in read_rows(path, NEEDED, delimiter="|") if _ran(row, said)]


def _ran(row: CsvRow, said: ReadingSummary) -> bool:
    """Whether a row is a job that ran on GPUs; one that is not is counted."""
    start, end = (row.text(column) for column in ("Start", "End"))
    why = (
        "steps of jobs" if "." in row.text("JobID") else "that never started" if start in _NO_TIME else "still running"
        if end in _NO_TIME else "without GPUs" if not _gpus(row) else "that ran for no time"
        if row.time("End") <= row.time("Start") else ""
    )  # fmt: skip
    if why:
        said.left_out[why] += 1
    return not why


def _gpus(row: CsvRow) -> int:
    """Count the GPUs of a job."""
    counts = dict(re.findall(r"(?:^|,)gres/(gpu(?::[^=,]+)?)=(\d+)", row.text("AllocTRES")))
    return int(counts["gpu"]) if "gpu" in counts else sum(map(int, counts.values()))


def _row_job(row: CsvRow) -> TraceJob:
    took = row.time("End") - row.time("Start")
    return TraceJob(row.text("JobID"), row.time("Submit"), _gpus(row), took, model=DRAWN)
