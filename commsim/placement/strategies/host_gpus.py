"""GPUs by host, for jobs that want the same number on each of their hosts."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, NoRoomError
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import Network
from commsim.core.units import count_text
from commsim.placement.cluster import Cluster
from commsim.training.sharing.periodic import PeriodicJob


def require_gpus(cluster: Cluster, job: PeriodicJob, node: str, index: Mapping[str, int]) -> None:
    """Refuse a job's place on what has no GPUs; `index` has the number of each node."""
    if node not in index or not cluster.gpus[index[node]]:
        raise InputError(f"job {job.name} is placed on {node}, which has no GPUs in {cluster.network.name}")


class HostGpus:
    """Nodes of each host of a network: a host is a node, or a machine whose GPUs are nodes.

    Parameters
    ----------
    network : Network
        Network; nothing is found before it is asked for.
    """

    def __init__(self, network: Network) -> None:
        self._network = network

    @functools.cached_property
    def host(self) -> NDArray[np.int64]:
        """Number of each node's host, int64[n_nodes]."""
        found: NDArray[np.int64] = np.unique(np.array(host_names(self._network)), return_inverse=True)[1]
        return found

    def _of(self, nodes: Sequence[str]) -> list[int]:
        known = self._network.nodes
        wanted = set(nodes)
        return [int(self.host[i]) for i, name in enumerate(known) if name in wanted]

    def with_room(self, free: NDArray[np.int64], k: int, without: Sequence[str] = ()) -> NDArray[np.int64]:
        """Return the first node of each host with `k` free GPUs, but for the hosts of some nodes.

        Parameters
        ----------
        free : int64[n_nodes]
            Free GPUs of each node.
        k : int
            GPUs that a host is to have.
        without : sequence of str
            Nodes whose hosts are left out.
        """
        room = np.bincount(self.host, weights=free)
        room[self._of(without)] = 0
        at = np.flatnonzero(free > 0)
        hosts, first = np.unique(self.host[at], return_index=True)
        found: NDArray[np.int64] = at[first[room[hosts] >= k]]
        return found

    def first_free(self, free: NDArray[np.int64], node: int, k: int) -> NDArray[np.int64]:
        """Return the nodes of the first `k` free GPUs of a node's host, int64[k]."""
        nodes = np.flatnonzero(self.host == self.host[node])
        return np.repeat(nodes, free[nodes])[:k]

    def counts(self, nodes: Sequence[str]) -> Counter[str]:
        """Count a job's GPUs on each of its hosts, by the host's name; nodes of other networks are left out."""
        index = {name: i for i, name in enumerate(self._network.nodes)}
        names = host_names(self._network)
        return Counter(names[index[node]] for node in nodes if node in index)

    def require(self, job: PeriodicJob, nodes: Sequence[str], *, is_part: bool = False) -> None:
        """Refuse places that do not have a job's number of GPUs on each host; a part of them may have fewer.

        Raises
        ------
        InputError
            Naming the job, and the first host with another number.
        """
        k = job.gpus_per_host
        for host, n in self.counts(nodes).items() if k else ():
            if n > (k or 0) or (n != k and not is_part):
                raise InputError(f"job {job.name} has {count_text(n, 'GPU')} on {host}, and its gpus_per_host is {k}")


def with_whole_hosts(cluster: Cluster, jobs: Sequence[PeriodicJob]) -> list[PeriodicJob]:
    """Return the jobs, those with a number of GPUs on each host with what the hosts lack that they have.

    Parameters
    ----------
    cluster : Cluster
        Cluster that the jobs are on.
    jobs : sequence of PeriodicJob
        Jobs; of one that has some of its places the others may be on hosts that it has in part.

    Raises
    ------
    InputError
        If a job has more GPUs of a host than it wants: NoRoomError if a host has too few free GPUs for it.
    """
    if not any(job.gpus_per_host and any(job.placed) for job in jobs):
        return list(jobs)
    hosts, names, found = HostGpus(cluster.network), cluster.network.nodes, list(jobs)
    index = {name: i for i, name in enumerate(names)}
    free = cluster.free.copy()
    for job in jobs:
        np.subtract.at(free, [index[name] for name in job.placement or job.placed if name in index], 1)
    for i, job in enumerate(jobs):
        if (k := job.gpus_per_host) is None or job.placement is not None or not any(job.placed):
            continue
        for name in filter(None, job.placed):
            require_gpus(cluster, job, name, index)
        hosts.require(job, job.placed, is_part=True)
        more: list[str] = []
        for host, node in {hosts.host[index[name]]: name for name in job.placed if name}.items():
            lacks = k - sum(hosts.host[index[name]] == host for name in job.placed if name)
            nodes = hosts.first_free(np.maximum(free, 0), index[node], lacks)
            if len(nodes) < lacks:
                text = f"job {job.name} lacks {count_text(lacks, 'GPU')} beside {node}, and {len(nodes)} are free there"
                raise NoRoomError(text)
            np.subtract.at(free, nodes, 1)
            more += [names[node] for node in nodes.tolist()]
        left = iter(more)
        found[i] = replace(job, placed=(*(name or next(left, "") for name in job.placed), *left))
    return found
