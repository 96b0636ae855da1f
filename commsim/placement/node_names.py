"""Names of the nodes that jobs have, in the forms that tables print: ``h0x4``, ``m0.gpu0-3``, ``h0-3x4``, ``m0``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from commsim.core.errors import InputError
from commsim.core.names.hostlist import spelled_out
from commsim.core.names.nodes_and_links import host_names
from commsim.core.units import count_text
from commsim.training.sharing.periodic import PeriodicJob

from .cluster import Cluster


def on_nodes(cluster: Cluster, jobs: Sequence[PeriodicJob]) -> tuple[PeriodicJob, ...]:
    """Return the jobs with a node for each place that they have: those with a machine's name get its free GPUs.

    Parameters
    ----------
    cluster : Cluster
        Cluster that the jobs are on. A name that it does not have stays.
    jobs : sequence of PeriodicJob
        Jobs; their ``placement`` and ``placed`` may have any of the forms.

    Raises
    ------
    InputError
        If a job has more GPUs of a machine than are free, or more places than GPUs.
    """
    names = {name for job in jobs for name in job.placement or job.placed}
    if names <= {*cluster.network.nodes, ""}:
        return tuple(jobs)
    counts = Counter(name for job in jobs for name in job.placement or job.placed)
    named = []
    for job in jobs:
        places = nodes_of(cluster, job.placement or job.placed, counts, job.name)
        is_placed = job.placement is not None
        named.append(replace(job, placement=places) if is_placed else replace(job, placed=places))
    return tuple(named)


def nodes_of(cluster: Cluster, names: Iterable[str], counts: Counter[str], job: str) -> tuple[str, ...]:
    """Return the nodes of one job; GPUs that it gets of a machine are added to `counts`, the nodes that others have.

    Raises
    ------
    InputError
        If a machine has too few free GPUs.
    """
    network = cluster.network
    known = {*network.nodes, ""}
    hosts = host_names(network)
    gpus: dict[str, list[int]] = {}
    for node in network.endpoints.tolist():
        gpus.setdefault(hosts[node], []).append(node)
    places = [one for name in names for one in ([name] if name in known or name in gpus else spelled_out([name]))]
    free = cluster.free if cluster.gpus.any() else cluster.gpus + 1  # of a network, whose GPUs are not counted
    for i, name in enumerate(places):
        if name in known or name not in gpus:
            continue
        node = next((at for at in gpus[name] if counts[network.nodes[at]] < free[at]), None)
        if node is None:
            has = int(free[gpus[name]].sum())
            asked = count_text(places.count(name) + sum(network.nodes[at] in places for at in gpus[name]), "GPU")
            raise InputError(f"job {job} has {asked} of {name}, which has {has}, or too few that no other job has")
        places[i] = network.nodes[node]
        counts[network.nodes[node]] += 1
    return tuple(places)
