"""Recognise products of rings, full meshes and switches in networks that were made otherwise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import KINDS, SWITCH, Network

from .products import MESH, RING, STAR, Dimension, grid, network_of


def dimensions_of(network: Network) -> tuple[tuple[Dimension, ...], tuple[str, ...]]:
    """Recognise a product.

    Returns
    -------
    tuple of Dimension, tuple of str
        The factors, and what of the network they do not say.

    Raises
    ------
    InputError
        If the network is no such product; says where it is not.
    """
    hosts = network.endpoints
    other = np.setdiff1d(np.arange(network.n_nodes), hosts)
    if (network.kind[other] != SWITCH).any():
        odd = int(other[network.kind[other] != SWITCH][0])
        raise _no_product(network, f"{network.nodes[odd]} is a {KINDS[network.kind[odd]]}")
    at = _places(network, hosts)
    along = _dimension_of_links(network, hosts, at)
    dimensions = tuple(_recognise(network, hosts, at, along, k) for k in range(at.shape[1]))
    _compare(network, hosts, dimensions)
    return dimensions, _left_out(network)


def _no_product(network: Network, why: str) -> InputError:
    return InputError(f"{network.name} is no product of rings, full meshes and switches: {why}")


def _places(network: Network, hosts: NDArray[np.intp]) -> NDArray[np.int64]:
    """Coordinates of the hosts, the dimension along which they are numbered consecutively first."""
    at = network.coordinates[hosts].astype(np.int64)
    if len(hosts) < 2:
        raise _no_product(network, "it has one host")
    if not at.shape[1]:
        return np.arange(len(hosts))[:, None]
    at = at[:, (at != at[0]).any(axis=0)]
    order = sorted(range(at.shape[1]), key=lambda k: int((at[:, k] != at[0, k]).argmax()))
    at = at[:, order]
    sizes = (at.max(axis=0) + 1).tolist()
    if math.prod(sizes) != len(hosts) or not np.array_equal(at, grid(sizes)):
        raise _no_product(network, "its hosts are not numbered as the places of a grid")
    return at


def _dimension_of_links(network: Network, hosts: NDArray[np.intp], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Along which dimension each link goes: the only one in which its hosts, or those on its switch, differ."""
    place = np.full((network.n_nodes, at.shape[1]), -1)
    place[hosts] = at
    ends = [place[network.src], place[network.dst]]
    switch = [end[:, 0] < 0 for end in ends]
    if (switch[0] & switch[1]).any():
        raise _no_product(network, f"{network.link_name(int((switch[0] & switch[1]).argmax()))} joins two switches")
    differs = ends[0] != ends[1]
    for nodes, near, far in ((network.src, switch[0], ends[1]), (network.dst, switch[1], ends[0])):
        low = np.full((network.n_nodes, at.shape[1]), len(hosts))
        high = np.zeros_like(low)
        np.minimum.at(low, nodes[near], far[near])
        np.maximum.at(high, nodes[near], far[near])
        differs[near] = (low != high)[nodes[near]]
    odd = np.flatnonzero(differs.sum(axis=1) != 1)
    if odd.size:
        raise _no_product(network, f"{network.link_name(int(odd[0]))} does not go along one dimension")
    return np.asarray(differs.argmax(axis=1))


def _recognise(
    network: Network, hosts: NDArray[np.intp], at: NDArray[np.int64], along: NDArray[np.int64], k: int
) -> Dimension:
    of_dimension = np.flatnonzero(along == k)
    n = int(at[:, k].max()) + 1
    if not of_dimension.size:
        raise _no_product(network, f"no link goes along its dimension of {n} hosts")
    for values, what in ((network.bandwidth, "bandwidth"), (network.latency, "latency")):
        odd = of_dimension[values[of_dimension] != values[of_dimension[0]]]
        if odd.size:
            links = f"{network.link_name(int(of_dimension[0]))} and {network.link_name(int(odd[0]))}"
            raise _no_product(network, f"{links} go along one dimension and differ in {what}")
    switched = (network.kind[network.src[of_dimension]] == SWITCH).any() or (
        network.kind[network.dst[of_dimension]] == SWITCH
    ).any()
    meshed = len(of_dimension) == len(hosts) * (n - 1) and n != 3
    block = STAR if switched else MESH if meshed else RING
    return Dimension(block, n, float(network.bandwidth[of_dimension[0]]), float(network.latency[of_dimension[0]]))


def _compare(network: Network, hosts: NDArray[np.intp], dimensions: tuple[Dimension, ...]) -> None:
    """Raise unless the product has exactly the links of the network, whatever its switches are called."""
    product = network_of(dimensions, network.name)
    links = _links(network, hosts), _links(product, product.endpoints)
    for a, b, what in ((*links, "is one too many"), (*links[::-1], "is missing")):
        for src, dst in sorted(a - b):
            names = " and ".join(_name(network, hosts, end) for end in (src, dst))
            raise _no_product(network, f"in {_dimensions_text(dimensions)} the link between {names} {what}")
    if network.n_links != product.n_links:
        raise _no_product(network, "it has links side by side")


def _links(network: Network, hosts: NDArray[np.intp]) -> set[tuple[int | frozenset[int], int | frozenset[int]]]:
    """Links by the numbers of their hosts; a switch is the set of hosts that it reaches."""
    number: dict[int, int | frozenset[int]] = {int(node): i for i, node in enumerate(hosts)}
    reached: dict[int, set[int]] = {}
    for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if a not in number:
            reached.setdefault(a, set()).add(b)
    index = {int(node): i for i, node in enumerate(hosts)}
    names = number | {s: frozenset(index.get(h, -1) for h in around) for s, around in reached.items()}
    empty: frozenset[int] = frozenset()
    return {
        (names.get(a, empty), names.get(b, empty))
        for a, b in zip(network.src.tolist(), network.dst.tolist(), strict=True)
    }


def _name(network: Network, hosts: NDArray[np.intp], end: int | frozenset[int]) -> str:
    return network.nodes[hosts[end]] if isinstance(end, int) else f"a switch of {len(end)} hosts"


def _dimensions_text(dimensions: tuple[Dimension, ...]) -> str:
    return " x ".join(f"{d.block}({d.n_hosts})" for d in dimensions)


def _left_out(network: Network) -> tuple[str, ...]:
    costs = [name for name in ("overhead", "recv_overhead", "gamma", "loss") if getattr(network, name).any()]
    costs += ["buffer"] if np.isfinite(network.buffer).any() else []
    return (f"left out, since the format has no field for it: {', '.join(costs)}",) if costs else ()
