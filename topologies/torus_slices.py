"""Slices: several tori of accelerators, joined by a data-centre network through the hosts of their chips."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .torus import torus

# Cost of a link of the data-centre network on a path, in links of a torus: chips of a slice use the torus.
FAR = 1000


@topology(sized_by=("dims", "n_slices"))
def torus_slices(
    dims: tuple[int, ...],
    n_slices: int,
    chips_per_host: int = 4,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    latency: Seconds = LINK_LATENCY,
    host_bandwidth: Bandwidth = LINK_BANDWIDTH,
    host_latency: Seconds = 5e-6,
) -> Network:
    """Tori of accelerators; each host of some chips has a port to one switch, the data-centre network.

    Parameters
    ----------
    dims : tuple of int
        Chips along each dimension of a slice, at least 1 each.
    n_slices : int
        Slices, at least 1.
    chips_per_host : int
        Chips that share a host's port; a divisor of the chips of a slice.
    bandwidth, latency
        Bandwidth of each link of a torus in bytes/s, one way, and its latency in seconds.
    host_bandwidth, host_latency
        Bandwidth of a host's port in bytes/s, one way, and the latency of a link to the switch in seconds.

    Returns
    -------
    Network
        Chips ``h0 …`` slice by slice, which all forward; ``host0 …``, and ``dcn0``, to which all hosts are cabled.

    Raises
    ------
    InputError
        If a count is not positive, chips do not divide among hosts, or the network would be too large.

    References
    ----------
    Jouppi et al., "TPU v4", ISCA 2023: four chips of a host. docs.cloud.google.com, "Multislice": slices over the
    data-centre network.
    """
    require_at_least("torus_slices", 1, n_slices=n_slices, chips_per_host=chips_per_host)
    chips = math.prod(dims)
    if chips % chips_per_host:
        raise InputError(f"chips_per_host must divide the {chips} chips of a slice, got {chips_per_host}")
    n, hosts = n_slices * chips, n_slices * chips // chips_per_host
    require_buildable("torus_slices", n + hosts + 1, 2 * (n * (len(dims) + 1) + hosts))
    cube = torus(dims, True, bandwidth, latency)
    first = np.repeat(np.arange(n_slices) * chips, len(cube.src))
    inside = np.tile(cube.src, n_slices) + first, np.tile(cube.dst, n_slices) + first
    chip, host = np.arange(n), n + np.arange(hosts)
    up = np.concatenate([chip, host]), np.concatenate([n + chip // chips_per_host, np.full(hosts, n + hosts)])
    src, dst = (np.concatenate(ends) for ends in zip(inside, both_ways(*up), strict=True))
    is_far = np.arange(len(src)) >= len(inside[0])
    return Network(
        "torus_slices", node_names(h=n, host=hosts, dcn=1), kinds(n, hosts + 1), src, dst,
        np.where(is_far, host_bandwidth, bandwidth), np.where(is_far, host_latency, latency),
        forwards=np.arange(n + hosts + 1) >= 0, routing="ecmp", metric=np.where(is_far, FAR, 1),
    )  # fmt: skip
