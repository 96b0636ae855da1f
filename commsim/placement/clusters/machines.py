"""Hosts of a simulated cluster: GPUs, types, CPUs, memory, racks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.value import Value
from commsim.placement.cluster import Cluster

from .models import Assumptions

DAY = 86400.0


@dataclass(frozen=True, slots=True, eq=False)
class Machines(Value):
    """Hosts with GPUs.

    Parameters
    ----------
    cluster : Cluster
        Cluster of the hosts.
    names : tuple of str
        Names of the hosts.
    gpus : int64[n_hosts]
        Number of GPUs of each host that jobs may take.
    rack : int64[n_hosts]
        Number of the first switch that the host is cabled to.
    types : tuple of str
        Type of the GPUs of each host.
    cpu : float64[n_hosts]
        CPUs; infinite where nothing is said.
    memory : float64[n_hosts], bytes
        Likewise.
    inference : bool[n_hosts]
        Whether the host is only lent.
    port : float64[n_hosts], bytes/s
        The fastest link out of each host; of a GPU in a machine with NICs, out of its machine.
    nics : int64[n_hosts]
        Number of its NICs, by which a job's rings leave: those of its machine, or 1.
    whole : int64[n_hosts]
        Number of the machine of a host that is one of its GPUs; otherwise each has its own.
    """

    cluster: Cluster
    names: tuple[str, ...]
    gpus: NDArray[np.int64]
    rack: NDArray[np.int64]
    types: tuple[str, ...]
    cpu: NDArray[np.float64]
    memory: NDArray[np.float64]
    inference: NDArray[np.bool_]
    port: NDArray[np.float64]
    nics: NDArray[np.int64]
    whole: NDArray[np.int64]

    @property
    def n_gpus(self) -> int:
        """GPUs that are always there."""
        return int(self.gpus[~self.inference].sum())

    @property
    def usual_gpus(self) -> int:
        """Of the largest host, which says on how many hosts a packed job sits."""
        return int(self.gpus.max())

    @property
    def is_limited(self) -> bool:
        """Whether jobs share out CPUs or memory."""
        return bool(np.isfinite(self.cpu).any() or np.isfinite(self.memory).any())

    def lent(self, now: float, used: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Find the hosts that training may use at a time of day.

        Inference is taken to follow the day: it lends all of its hosts at four in the morning, none at four in the
        afternoon, and as a cosine between. It takes back those that are used least, so that few jobs have to go.

        Parameters
        ----------
        now : float, s
            The simulation starts at midnight.
        used : int64[n_hosts]
            GPUs of each host that run jobs.
        """
        usable = ~self.inference
        idle = 0.5 + 0.5 * math.cos(2 * math.pi * (now / DAY - 4 / 24))
        n = int(idle * int(self.inference.sum()) + 1e-9)
        lending = np.flatnonzero(self.inference)
        usable[lending[np.argsort(-used[lending], kind="stable")][:n]] = True
        return usable


def machines_of(cluster: Cluster, assumed: Assumptions) -> Machines:
    """Join a cluster with what is assumed of its hosts.

    Raises
    ------
    InputError
        If the cluster has no free GPU, or the assumptions name a host that it does not have.
    """
    network = cluster.network
    hosts = np.flatnonzero(cluster.free > 0)
    names = tuple(network.nodes[i] for i in hosts.tolist())
    if not names:
        raise InputError(f"{network.name}: has no free GPU")
    for name in (*assumed.hosts, *assumed.inference):
        if name not in names:
            raise InputError(f"assumptions: {name!r} is not a host with free GPUs; the first is {names[0]}")
    kinds = [assumed.hosts.get(name, assumed.host) for name in names]
    inference = np.array([name in assumed.inference for name in names])
    if inference.all():
        raise InputError("assumptions: all hosts belong to inference, and no GPU is left for jobs")
    of_node = host_names(network)
    _, whole = np.unique([of_node[i] for i in hosts.tolist()], return_inverse=True)
    links = [np.flatnonzero(network.src == i) for i in hosts]
    return Machines(
        cluster,
        names,
        cluster.free[hosts],
        np.array([network.dst[out[0]] if out.size else i for i, out in zip(hosts, links, strict=True)], np.int64),
        tuple(kind.gpu_type for kind in kinds),
        np.array([kind.cpu or math.inf for kind in kinds]),
        np.array([kind.memory or math.inf for kind in kinds]),
        inference,
        *_ports(network, hosts),
        whole,
    )


def _ports(network: Network, hosts: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the rate of the fastest link out of each host or its machine, and how many NICs that has."""
    machine = units(network)
    own = np.arange(network.n_nodes)
    leaves = machine[network.src] != machine[network.dst]
    is_out = np.isin(machine, machine[network.src[leaves]])
    unit = np.where(is_out, machine, int(machine.max()) + 1 + own)  # of a machine that no link leaves: each node
    leaves = unit[network.src] != unit[network.dst]
    rate, nics = np.zeros(int(unit.max()) + 1), np.zeros(int(unit.max()) + 1, np.int64)
    np.maximum.at(rate, unit[network.src[leaves]], network.bandwidth[leaves])
    np.add.at(nics, unit[np.unique(network.src[leaves])], 1)
    rate = rate[unit[hosts]]
    return np.where(rate > 0, rate, math.inf), np.maximum(nics[unit[hosts]], 1)
