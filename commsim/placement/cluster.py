"""Cluster: a network, the GPUs of its hosts, and how many of them are busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, located, wrong_kind
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_any
from commsim.core.network import Network
from commsim.core.network_queries import levels_from
from commsim.core.remark import Remark
from commsim.core.spec import SUFFIXES
from commsim.core.units import count_text
from commsim.core.value import Value, freeze
from commsim.prediction.network_tables import MAX_GPUS, read_hosts, read_topology
from topologies import TOPOLOGIES

_MAX_NAMES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Cluster(Value):
    """Where jobs can run.

    Parameters
    ----------
    network : Network
        What joins the hosts.
    gpus : int64[n_nodes]
        GPUs at each node: those of a host; 1 for a node that is a GPU; 0 elsewhere.
    busy : int64[n_nodes]
        How many of these are taken by something that sends nothing that we know of; by default 0.
    block_sizes : tuple of int
        Nodes that Slurm's topology/block gives a job in one piece, where its file said so; kept for the export.
    labels : tuple of str
        Labels of Kubernetes' nodes that name their switches, the closest first; kept for the export.

    Raises
    ------
    InputError
        If GPUs are where ranks cannot sit, or more are busy than there are.
    """

    network: Network
    gpus: NDArray[np.int64]
    busy: NDArray[np.int64] = 0  # type: ignore[assignment]  # a scalar broadcasts in __post_init__
    block_sizes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self, network: Network, gpus: ArrayLike, busy: ArrayLike = ..., block_sizes: tuple[int, ...] = ...,
            labels: tuple[str, ...] = ...,
        ) -> None: ...  # fmt: skip

    def __post_init__(self) -> None:
        for field in ("gpus", "busy"):
            values = freeze(getattr(self, field), np.int64, (self.network.n_nodes,), f"{self.network.name}: {field}")
            object.__setattr__(self, field, values)
        is_seat = np.zeros(self.network.n_nodes, np.bool_)
        is_seat[self.network.endpoints] = True
        for bad, what in (
            ((self.gpus < 0) | (self.gpus > np.where(is_seat, MAX_GPUS, 0)), f"can have 0..{MAX_GPUS} GPUs on a host"),
            ((self.busy < 0) | (self.busy > self.gpus), "cannot have more busy GPUs than GPUs"),
        ):
            if bad.any():
                i = int(bad.argmax())
                got = f"{self.gpus[i]} GPUs, {self.busy[i]} of them busy"
                raise InputError(f"{self.network.name}: node {self.network.nodes[i]} {what}, got {got}")

    @property
    def free(self) -> NDArray[np.int64]:
        """GPUs at each node that jobs may take."""
        return self.gpus - self.busy


ClusterLike: TypeAlias = Cluster | str | PathLike[str] | Mapping[str, Any]


def read_cluster(path: ClusterLike) -> Cluster:
    """Read a cluster from a .toml (or .json) file, or from a dict of the same tables; a cluster is returned as it is.

    ``[topology]`` has a ``name`` and that topology's parameters, or ``spec = "leaf_spine:n_leaves=4,..."``, or
    ``file = "network.toml"`` (beside the cluster's file). ``[hosts]`` has ``gpus``, how many every host has;
    ``per_host``, a table of those that have another number; and ``busy``, a table of GPUs that are taken. Where GPUs
    are nodes of the network, each is 1, and only ``busy`` can be given.

    Raises
    ------
    InputError
        Naming the file, the line and the field that is wrong.
    """
    if isinstance(path, Cluster):
        return path
    if not isinstance(path, (str, PathLike, Mapping)):
        raise wrong_kind("cluster", "a Cluster, the path of its file, or its tables as a dict", path)
    tree, path = (dict(path), "cluster") if isinstance(path, Mapping) else (_read_tables(Path(path)), Path(path))
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a list, as of jobs, in place of the table of a cluster; the order is CLUSTER JOBS")
    top = TableFields(tree, path)
    top.only("topology", "hosts")
    network = read_topology(top, Path(path))
    told = read_hosts(
        top.table("hosts"), network
    )  # `inside` is of runs: no phase of a job is on links inside of a host
    with located(path):
        return Cluster(network, told.gpus, told.busy, told.block_sizes, told.labels)


def _read_tables(path: Path) -> Any:
    """Read the file of a cluster; a network in its place is refused with the tables that name it."""
    try:
        return read_any(path)
    except InputError as error:
        name = str(path).partition(":")[0].rpartition("@")[2]
        is_other = path.suffix not in SUFFIXES and "not JSON" in str(error)
        key = "file" if is_other else "spec" if name in TOPOLOGIES else ""
        if not key:
            raise
        tables = f'{key} = "{path}" under [topology], and gpus = 8 under [hosts]'
        raise InputError(
            f"{path}: {str(error).removeprefix(f'{path}: ')}; a cluster is a .toml file: {tables}"
        ) from None


def on_network(cluster: Cluster, network: Network, placed: Iterable[str] = ()) -> tuple[Cluster, list[Remark]]:
    """Return a cluster on what faults left of its network, without the GPUs of hosts that most others cannot reach.

    Parameters
    ----------
    network : Network
        Network with the same nodes, such as :func:`commsim.prediction.faults.with_faults` returns.
    placed : iterable of str
        Nodes of the GPUs that jobs already have; these stay.

    Returns
    -------
    Cluster, list of Remark
        The cluster, and a remark on the hosts where no job is placed.
    """
    away = cut_off_hosts(network)
    busy = cluster.busy.copy()
    has = Counter(placed)
    busy[away] = np.maximum(busy[away], [cluster.gpus[i] - has[network.nodes[i]] for i in away])
    names = ", ".join(network.nodes[i] for i in away[:_MAX_NAMES]) + (", ..." if len(away) > _MAX_NAMES else "")
    text = f"{count_text(len(away), 'host')} cut off, no job is placed there: {names}"
    notes = [Remark("cut-off", text, needed=True)] if len(away) else []
    return Cluster(network, cluster.gpus, busy), notes


def cut_off_hosts(network: Network) -> NDArray[np.intp]:
    """Return the endpoints that most others cannot reach; of equally many those without any link."""
    left, groups = network.endpoints, []
    while len(left):
        start = np.arange(network.n_nodes) == left[0]
        passes = (network.forwards | start)[network.src]
        is_near = levels_from(start, network.src[passes], network.dst[passes])[left] >= 0
        groups.append(left[is_near])
        left = left[~is_near]
    most = max(groups, key=lambda group: (len(group), group[0] in network.src))
    return np.setdiff1d(network.endpoints, most)
