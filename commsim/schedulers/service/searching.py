"""A search for placements that a request asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from commsim.core.errors import InputError
from commsim.core.formats.fields import Fields
from commsim.placement.link_classes import Settings
from commsim.placement.place import RANKINGS, place_jobs
from commsim.workload.sharing.periodic import PeriodicJob

from .pods import read_known_jobs
from .state import ClusterState

MAX_JOBS, MAX_CANDIDATES, MAX_GPUS = 100, 100, 100_000


def read_search(tree: object, state: ClusterState) -> Callable[[], dict[str, Any]]:
    """Read the request of a search.

    Parameters
    ----------
    tree : object
        ``{"jobs": [...], "candidates": 10, "generators": ["packed", ...], "rank_by": "mean", "loops": "merged",
        "check": false, "seed": 0}``; only the jobs, as in ``jobs.json``, are required.
    state : ClusterState
        The jobs that are known and placed stay where they are, unless the request has one of the same name.

    Returns
    -------
    function
        Does the search, and returns ``{"candidates": [...], "notes": [...]}``, best first.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    if not isinstance(tree, dict):
        raise InputError(f"request: expected an object with jobs, got {type(tree).__name__}")
    fields = Fields(tree, "request")
    asked = [known.job for known in read_known_jobs(fields.raw("jobs"), "request", ("jobs",), allow_placed=False)]
    names = {job.name for job in asked}
    jobs = [_job(known.job, known.placed) for known in state.jobs.values() if known.placed]
    jobs = [job for job in jobs if job.name not in names] + asked
    if len(jobs) > MAX_JOBS or sum(job.n_gpus for job in jobs) > MAX_GPUS:
        raise InputError(f"request: jobs are at most {MAX_JOBS}, of {MAX_GPUS} GPUs, with those that are placed; got "
                         f"{len(jobs)} of {sum(job.n_gpus for job in jobs)}")  # fmt: skip
    n = fields.whole("candidates", 1, MAX_CANDIDATES, 10)
    options: dict[str, Any] = {
        "rank_by": fields.one_of("rank_by", RANKINGS, "mean"),
        "loops": fields.one_of("loops", ("merged", "literal"), "merged"),
        "check": fields.truth("check", False),
        "settings": Settings(seed=fields.whole("seed", default=0)),
    }
    if "generators" in fields:
        options["generators"] = fields.items("generators", str, "the name of a generator")
    fields.finish()

    def search() -> dict[str, Any]:
        ranking = place_jobs(state.cluster, jobs, n=n, **options)
        return {"candidates": [one.row() for one in ranking.candidates], "notes": list(ranking.notes)}

    return search


def _job(job: PeriodicJob, placed: tuple[str, ...]) -> PeriodicJob:
    """Return a job as it is placed; one of which a part is placed counts as no larger than that."""
    return dataclasses.replace(job, placement=placed, n_gpus=len(placed)) if placed else job
