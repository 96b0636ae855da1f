"""Placements that a request gives by name, of the jobs that it places: the candidates of the client's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from commsim.core.errors import InputError, NoRoomError, located
from commsim.core.files.fields import TableFields
from commsim.placement.cluster import Cluster
from commsim.placement.node_names import on_nodes
from commsim.placement.scored_placements import Placed
from commsim.placement.strategies.free_gpus import FreeGpus
from commsim.training.sharing.job_places import placement_of
from commsim.training.sharing.periodic import PeriodicJob

KEY = "placements"


def read_placements(
    placements: Mapping[str, object], wanted: Sequence[PeriodicJob], source: str
) -> dict[str, list[PeriodicJob]]:
    """Read placements by name, each of all jobs that have no placement of their own.

    Parameters
    ----------
    placements : mapping of str to mapping
        By name, nodes of each job: ``{"near": {"a": ["h0x8", "h1x8"]}}``.
    wanted : sequence of PeriodicJob
        Jobs of the request; one with a placement has it each time.
    source : str
        What messages name in place of a file.

    Returns
    -------
    dict of str to list of PeriodicJob
        The jobs as each of them places these.

    Raises
    ------
    InputError
        Naming the placement and the job that is wrong.
    """
    open_jobs = [job.name for job in wanted if job.placement is None]
    if not open_jobs:
        raise InputError(f"{source}: {KEY} has no effect: all jobs have a placement of their own")
    found = {}
    for name, one in placements.items():
        fields = TableFields(cast("Mapping[str, object]", one), source, (KEY, name))
        if not isinstance(one, dict):
            TableFields(placements, source, (KEY,)).refuse(name, 'nodes by job, such as {"a": ["h0x4", "h1x4"]}')
        fields.only(*open_jobs)
        found[name] = [job if job.placement is not None else _placed(job, fields) for job in wanted]
    return found


def _placed(job: PeriodicJob, fields: TableFields) -> PeriodicJob:
    if any(job.placed):
        fields.fail(job.name, "has placed, too: give all its nodes here, and no placed")
    places = placement_of(fields, job.n_gpus, job.name)
    if places is None:
        fields.fail(job.name, f"is missing: {job.n_gpus} nodes, one per GPU, of each job without a placement")
    return replace(job, placement=places)


def on_cluster(cluster: Cluster, placed: Mapping[str, Sequence[PeriodicJob]]) -> tuple[list[Placed], dict[str, str]]:
    """Return placements with a node for each GPU, and by name why others cannot be had: what they take is not free.

    Raises
    ------
    InputError
        If one takes what the cluster does not have.
    NoRoomError
        If none can be had.
    """
    made: list[Placed] = []
    taken: dict[str, str] = {}
    first: NoRoomError | None = None
    for name, jobs in placed.items():
        try:
            with located(f"{KEY}.{name}"):
                on = on_nodes(cluster, jobs)
                FreeGpus(cluster, on)  # refuses GPUs that are not free
        except NoRoomError as error:
            taken[name], first = str(error), first or error
        else:
            made.append((name, on))
    if first is not None and not made:
        raise first
    return made, taken
