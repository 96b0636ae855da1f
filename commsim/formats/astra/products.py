"""Networks that are products of rings, full meshes and switches: what ASTRA-sim's analytical backends know.

Hosts are numbered so that those along the first dimension are consecutive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from topologies.fully_connected import fully_connected
from topologies.ring import ring
from topologies.star import star

RING, MESH, STAR = "Ring", "FullyConnected", "Switch"
BLOCKS = (RING, MESH, STAR)
MAX_LINKS = 2**21
_ALONE = {RING: ring, MESH: fully_connected, STAR: star}


@dataclass(frozen=True, slots=True)
class Dimension:
    """One factor of the product.

    Parameters
    ----------
    block : {"Ring", "FullyConnected", "Switch"}
        How the hosts along it are joined; a ring is cabled both ways round.
    n_hosts : int
        Number of hosts along it, at least 2.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; two links lie between hosts on a switch.
    """

    block: str
    n_hosts: int
    bandwidth: float
    latency: float


def network_of(dimensions: tuple[Dimension, ...], name: str) -> Network:
    """Build the product.

    Returns
    -------
    Network
        One dimension is that topology of ours. Of several, hosts ``h0 …`` come first, then the switches of each
        dimension; messages finish the last dimension first, and hosts forward.

    Raises
    ------
    InputError
        Without a dimension, or if the network would be too large.
    """
    if not dimensions:
        raise InputError(f"{name}: needs at least one dimension")
    sizes = [d.n_hosts for d in dimensions]
    n_hosts = math.prod(sizes)
    n_links = sum(n_hosts * (d.n_hosts - 1 if d.block == MESH else 2) for d in dimensions)
    if n_links > MAX_LINKS:
        raise InputError(f"{name} would have {n_hosts} hosts and {n_links} links; at most {MAX_LINKS} are read")
    if len(dimensions) == 1:
        (d,) = dimensions
        return _ALONE[d.block](d.n_hosts, bandwidth=d.bandwidth, latency=d.latency)
    parts = [_cables(dimensions, k) for k in range(len(sizes))]
    n_switches = [n_hosts // d.n_hosts if d.block == STAR else 0 for d in dimensions]
    first = n_hosts + np.cumsum([0, *n_switches])
    ends = [np.where(b < 0, -1 - b + first[k], b) for k, (_, b) in enumerate(parts)]
    src, dst = both_ways(np.concatenate([a for a, _ in parts]), np.concatenate(ends))
    n_cables = [len(a) for a, _ in parts]
    at = np.empty((int(first[-1]), len(sizes)), np.int32)
    at[:n_hosts] = grid(sizes)
    for k, (a, _) in enumerate(parts):
        if n_switches[k]:
            at[ends[k]] = at[a]
            at[first[k] : first[k + 1], k] = -1
    switches = {f"dim{k}_switch": n for k, n in enumerate(n_switches) if n}
    return Network(
        name,
        node_names(h=n_hosts, **switches),
        kinds(n_hosts, sum(n_switches)),
        src,
        dst,
        np.tile(np.repeat([d.bandwidth for d in dimensions], n_cables), 2),
        np.tile(np.repeat([d.latency for d in dimensions], n_cables), 2),
        forwards=np.ones(len(at), np.bool_),
        routing="dimension_order",
        coordinates=at[:, ::-1],
    )


def grid(sizes: list[int]) -> NDArray[np.int64]:
    """Return the place of every host, int64[n_hosts, n_dimensions]."""
    strides = [math.prod(sizes[:k]) for k in range(len(sizes))]
    return np.asarray(np.arange(math.prod(sizes))[:, None] // strides % sizes)


def _cables(dimensions: tuple[Dimension, ...], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both ends of the cables of one dimension; a switch is -1, -2 and so on."""
    sizes = [d.n_hosts for d in dimensions]
    n, stride = sizes[k], math.prod(sizes[:k])
    host = np.arange(math.prod(sizes))
    place = host // stride % n
    if dimensions[k].block == STAR:
        return host, -1 - (host // (stride * n) * stride + host % stride)
    if dimensions[k].block == RING:
        near = host if n > 2 else host[place == 0]
        return near, np.where(place[near] < n - 1, near + stride, near - stride * (n - 1))
    a, b = np.triu_indices(n, 1)
    line = host[place == 0][:, None]
    return (line + a * stride).ravel(), (line + b * stride).ravel()
