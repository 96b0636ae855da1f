"""GPUs of hosts: a place for each rank on hosts that have several, which share the host's ports and its inside."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import GPU, HOST, NIC, Network

_PER_NODE = ("overhead", "recv_overhead", "gamma", "message_engines")
_PER_LINK = ("bandwidth", "latency", "buffer", "loss", "metric")


def with_gpus(network: Network, gpus: ArrayLike, inside: float | None = None) -> Network:
    """Give the hosts of a network GPUs, on which ranks sit; the host forwards for them.

    Parameters
    ----------
    network : Network
        Network whose endpoints are hosts.
    gpus : int[n_nodes]
        Number of GPUs of each host; other nodes have none.
    inside : float, bytes/s, optional
        Rate between each GPU and its host, one way. By default that of all ports of the host, times its GPUs: then only
        ports limit what ranks of a host do together.

    Returns
    -------
    Network
        Same nodes, with ``h0.gpu0``, ``h0.gpu1`` ... after them; hosts are NICs of machines in it. The network itself
        where every host has one GPU.

    Raises
    ------
    InputError
        If no host has a GPU.
    """
    counts = np.asarray(gpus, np.int64)
    hosts = np.flatnonzero(network.kind == HOST)
    if (counts[hosts] == 1).all():
        return network
    if not counts.any():
        raise InputError(f"{network.name}: no host has a GPU")
    owner = np.repeat(np.arange(network.n_nodes), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    names = [f"{network.nodes[host]}.gpu{i}" for host, i in zip(owner.tolist(), number.tolist(), strict=True)]
    machine = np.full(network.n_nodes, -1)
    machine[hosts] = np.arange(len(hosts))
    n_more = len(owner)
    new = {"src": network.n_nodes + np.arange(n_more), "dst": owner}
    ports = np.zeros(network.n_nodes)
    np.add.at(ports, network.src, network.bandwidth)
    rate = ports[owner] * counts[owner] if inside is None else np.full(n_more, inside)
    links = {"bandwidth": rate} | {name: np.zeros(n_more, getattr(network, name).dtype) for name in _PER_LINK[1:]}
    first = np.zeros(network.n_nodes, np.int64)
    first[network.src[::-1]] = np.arange(network.n_links)[::-1]
    links |= {"buffer": network.buffer[first[owner]], "metric": np.ones(n_more, network.metric.dtype)}
    kind = network.kind.copy()
    kind[hosts] = NIC
    forwards = network.forwards.copy()
    forwards[hosts] = True
    changed: dict[str, Any] = {
        name: _woven(network, getattr(network, name), links[name], links[name]) for name in _PER_LINK
    }
    changed |= {name: np.concatenate((getattr(network, name), getattr(network, name)[owner])) for name in _PER_NODE}
    none = np.zeros(n_more, np.bool_)
    return dataclasses.replace(
        network,
        nodes=(*network.nodes, *names),
        kind=np.concatenate((kind, np.full(n_more, GPU))),
        forwards=np.concatenate((forwards, none)),
        aggregates=np.concatenate((network.aggregates, none)),
        machine=np.concatenate((machine, machine[owner])),
        coordinates=np.concatenate((network.coordinates, network.coordinates[owner])),
        src=_woven(network, network.src, new["src"], new["dst"]),
        dst=_woven(network, network.dst, new["dst"], new["src"]),
        **changed,
    )


def _woven(network: Network, column: NDArray[Any], there: NDArray[Any], back: NDArray[Any]) -> NDArray[Any]:
    """Put links to hosts after the first half of the cables, and those back at the end, as cables are numbered."""
    half = network.n_links // 2 if network.is_cabled else network.n_links
    return np.concatenate((column[:half], there, column[half:], back))
