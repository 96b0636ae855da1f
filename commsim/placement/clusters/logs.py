"""Readers of job logs: Philly, Helios, PAI (2020 and 2023) and Acme, which are public, and a cluster's own by sacct.

Each keeps the jobs that ran on whole GPUs, and says what it assumed. None of these logs names the model that a job
trained in a way that we could use, so models are drawn at random, seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from commsim.core.errors import InputError, unknown_name

from .pai_log import read_pai_2020, read_pai_2023
from .philly_log import read_philly
from .reading_summary import ReadingSummary
from .sacct_log import read_sacct
from .slurm_logs import read_acme, read_helios
from .trace_file import MAX_JOBS, checked
from .trace_job import TraceJob

READERS: dict[str, Callable[[str | Path, ReadingSummary], list[TraceJob]]] = {
    "philly": read_philly,
    "helios": read_helios,
    "pai2020": read_pai_2020,
    "pai2023": read_pai_2023,
    "acme": read_acme,
    "sacct": read_sacct,
}


def read_log(
    kind: str, path: str | Path, models: Sequence[str], seed: int = 0, said: ReadingSummary | None = None
) -> tuple[TraceJob, ...]:
    """Read a public log as a trace that starts at 0 with its first job.

    Parameters
    ----------
    kind : str
        A name in ``READERS``.
    models : sequence of str
        Models to draw from, one for each job.
    seed : int
        Seed of the draw.
    said : ReadingSummary, optional
        Counts what is left out, and jobs on shares of a GPU, which have a whole one here.

    Raises
    ------
    InputError
        If the kind is unknown or the file is not of that kind, naming the line.
    """
    if kind not in READERS:
        raise unknown_name("kind of log", kind, READERS)
    jobs = READERS[kind](path, ReadingSummary() if said is None else said)
    if not jobs:
        raise InputError(f"{path}: has no job that ran on GPUs")
    if len(jobs) > MAX_JOBS:
        raise InputError(f"{path}: more than {MAX_JOBS} jobs on GPUs; cut the file")
    start = min(job.submit for job in jobs)
    return checked(with_models([replace(job, submit=job.submit - start) for job in jobs], models, seed), path)


def with_models(jobs: Sequence[TraceJob], models: Sequence[str], seed: int) -> list[TraceJob]:
    """Return the jobs with a drawn model each."""
    drawn = np.random.default_rng(seed).integers(len(models), size=len(jobs))
    return [replace(job, model=models[i]) for job, i in zip(jobs, drawn, strict=True)]
