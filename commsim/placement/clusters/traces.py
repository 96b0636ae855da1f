"""Traces from a file, a log or a generator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.limits import is_there
from commsim.core.spec import read_arguments, split_file, split_spec

from .generated_traces import GENERATORS
from .logs import READERS, read_log, with_models
from .models import TrainedModel
from .reading_summary import ReadingSummary
from .trace_file import read_trace
from .trace_job import DRAWN, TraceJob


def load_trace(
    text: str, n_gpus: int, models: Mapping[str, TrainedModel], seed: int = 0, said: ReadingSummary | None = None
) -> tuple[TraceJob, ...]:
    """Read ``FILE.csv``, ``KIND:FILE`` of a log, or make ``poisson:jobs=500,load=0.9,seed=1`` and the like.

    ``FILE.csv:job=id,submit_s=submitted_at`` reads a file that has other names of columns.

    Parameters
    ----------
    text : str
        What the user wrote.
    n_gpus : int
        Number of GPUs of the cluster, on which a generator's load depends.
    models : mapping of str to TrainedModel
        The table from which models are drawn; those that a file names must be in it.
    seed : int
        Seed of the models that are drawn for a log, and for a file without columns for models and iteration times.
    said : ReadingSummary, optional
        Counts what is left out of a log, and jobs on shares of a GPU.

    Raises
    ------
    InputError
        If it is none of these, or what it names is wrong.
    """
    kind, _, rest = text.partition(":")
    names = tuple(models)
    if kind in READERS and (kind not in GENERATORS or is_there(rest) or "=" not in rest):
        return read_log(kind, rest, names, seed, said)
    if kind in GENERATORS:
        build = GENERATORS[kind]
        given = ("n_gpus", "models")
        return build(n_gpus, names, **read_arguments(build, split_spec(text)[1], given))
    path, columns = split_file(text)
    if Path(path).suffix != ".csv":
        known = ", ".join((*GENERATORS, *(f"{kind}:FILE" for kind in READERS)))
        raise InputError(f"a trace is FILE.csv, {known}, got {text!r}")
    jobs = read_trace(path, said, columns)
    if jobs[0].model == DRAWN:  # of one job, of all: the file has no column for it
        jobs = tuple(with_models(jobs, names, seed))
        if said is not None:
            said.n_drawn = len(jobs)
    for job in jobs:
        if job.model and job.model not in models:
            raise InputError(f"{text}: {job.name} trains {job.model!r}, which is no model; known: {', '.join(models)}")
    return jobs
