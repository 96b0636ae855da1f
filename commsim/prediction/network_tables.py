"""Tables of files that say a network: ``[topology]``, and ``[hosts]`` with the GPUs of each host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import located
from commsim.core.network import HOST, Network
from commsim.core.spec import SUFFIXES
from commsim.core.units import parse_bandwidth
from topologies import require_buildable

from .inputs import load_network, network_of_another_tool

if TYPE_CHECKING:
    from commsim.core.files.fields import TableFields

# Of one host.
MAX_GPUS = 1024
SPEC_OF_TABLE = 'spec = "star:n_hosts=8"'


def read_topology(top: TableFields, path: Path) -> Network:
    """Read the table ``[topology]`` of a file.

    Parameters
    ----------
    top : TableFields
        All tables of the file.
    path : Path
        The file, beside which ``file`` is looked for.

    Raises
    ------
    InputError
        Naming the file, the line and the field that is wrong.
    """
    fields = top.table("topology")
    ways = [key for key in ("name", "spec", "file") if key in fields]
    if len(ways) != 1:
        fields.fail(
            None, f"needs one of name, spec and file, as in {SPEC_OF_TABLE}, got {' and '.join(ways) or 'none'}"
        )
    text = fields.text(ways[0])
    if ways[0] == "name":
        fields_text = [f"{key}={_as_text(fields, key)}" for key in fields if key != "name"]
        text = f"{text}:{','.join(fields_text)}" if fields_text else text
    fields.finish()
    if ways[0] == "file":
        return _read_file(path.parent / text)
    with located(path):
        return load_network(text)


def _read_file(path: Path) -> Network:
    """Read the network that ``file`` names, which may be of another tool, such as a list of cables; never a table."""
    from commsim.core.files.network_file import read_network

    if (found := network_of_another_tool(str(path))) is not None:
        return found
    if path.suffix in SUFFIXES or not path.exists():
        return read_network(path, has_table=False)
    return load_network(str(path))


def _as_text(fields: TableFields, key: str) -> str:
    """Write a parameter of a topology as the command line takes it; neither key nor value may end it."""
    if not key.isidentifier():
        fields.fail(None, f"has no parameter {key!r}: a parameter's name has letters, digits and _")
    value = fields.raw(key)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(part, int) for part in value):
        return "x".join(map(str, value))
    if not isinstance(value, (str, int, float)) or {",", "@"} & {*str(value)}:
        fields.refuse(key, "a number, text without a comma and @, true, false or a list of whole numbers")
    return str(value)


def network_of_table(tree: Any, path: Path) -> Network:
    """Return the network that the table ``[topology]`` of a file names, with a place for each free GPU of ``[hosts]``.

    Ranks of a host with several share its ports (:func:`commsim.core.machines.gpus_of_hosts.with_gpus`), as in
    ``commsim place``.
    """
    from commsim.core.files.fields import TableFields
    from commsim.core.machines.gpus_of_hosts import with_gpus

    top = TableFields(tree, path)
    top.only("topology", "hosts")
    network = read_topology(top, path)
    hosts = top.table("hosts")
    if "hosts" not in top or network.seat_kind != HOST:
        return network
    counts = read_hosts(hosts, network)
    with located(path):
        n = int(counts.gpus.sum() - counts.busy.sum())
        require_buildable(f"{network.name} with GPUs", network.n_nodes + n, network.n_links + 2 * n)
        return with_gpus(network, np.maximum(counts.gpus - counts.busy, 0), counts.inside)


class HostTables(NamedTuple):
    """What ``[hosts]`` says.

    Parameters
    ----------
    gpus, busy : int64[n_nodes]
        GPUs of each node, and how many of these are taken.
    inside : float, bytes/s, optional
        Rate between a GPU and its host.
    block_sizes : tuple of int
        Nodes that Slurm's topology/block gives a job in one piece.
    labels : tuple of str
        Labels of Kubernetes that name the switches above a node, the closest first.
    """

    gpus: NDArray[np.int64]
    busy: NDArray[np.int64]
    inside: float | None
    block_sizes: tuple[int, ...]
    labels: tuple[str, ...]


def read_hosts(hosts: TableFields, network: Network) -> HostTables:
    """Read the table ``[hosts]`` of a network's or a cluster's file.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    if "nics" in list(hosts):
        hosts.fail("nics", 'is of the topology: [topology] spec = "pcie_host:n_gpus=4,n_nics=2@TOPOLOGY:machines=16"')
    gpus, busy = _read_gpus(hosts, network)
    inside = None if hosts.raw("inside") is None else parse_bandwidth(hosts.text("inside"), "inside")
    sizes = hosts.wholes("block_sizes") if "block_sizes" in hosts else ()
    labels = hosts.items("labels", str, "a label of nodes") if "labels" in hosts else ()
    hosts.finish()
    return HostTables(gpus, busy, inside, tuple(sizes), tuple(labels))


def _read_gpus(hosts: TableFields, network: Network) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the GPUs of each node of a network from the table ``[hosts]``, and how many are taken, int64[n_nodes].

    ``gpus`` is how many every host has, ``per_host`` a table of those that have another number, and ``busy`` a table of
    GPUs that are taken. Where GPUs are nodes of the network, each is 1, and only ``busy`` can be given.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    gpus = np.zeros(network.n_nodes, np.int64)
    if network.seat_kind == HOST:
        gpus[network.hosts] = hosts.whole("gpus", 0, MAX_GPUS, 0 if "per_host" in hosts else None)
        _fill(gpus, hosts.table("per_host"), network)
    else:
        gpus[network.endpoints] = 1
        for key in ("gpus", "per_host"):
            if key in hosts:
                hosts.fail(key, f"has no effect: the GPUs of {network.name} are nodes, and each is 1")
    busy = np.zeros(network.n_nodes, np.int64)
    _fill(busy, hosts.table("busy"), network)
    return gpus, busy


def _fill(values: NDArray[np.int64], table: TableFields, network: Network) -> None:
    from commsim.core.names.hostlist import expand_hosts

    hosts = {network.nodes[i]: int(i) for i in network.endpoints}
    for name in table:
        for host in (name,) if name in hosts or "[" not in name else expand_hosts(name):
            if host not in hosts:
                table.fail(name, f"is not a host of {network.name}; the first is {network.nodes[network.endpoints[0]]}")
            values[hosts[host]] = table.whole(name, 0, MAX_GPUS)
