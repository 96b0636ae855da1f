"""Links in rows by the nodes that they join, destinations by the links that they hang on; the hash of a flow."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import GPU, MAX_METRIC, SWITCH, Network
from commsim.core.network_queries import fact

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]
# Links from which on counting pays the loading of its kernel: it takes a fifth of the time of sorting.
MANY = 1 << 20
# Links that are looked at together, where a column of numbers would be cast to twice its size.
PART = 1 << 20


def links_in_rows(key: NDArray[np.int32], other: NDArray[np.int32] | None, n_nodes: int) -> Rows:
    """Group links by one of their ends.

    Parameters
    ----------
    key : int32[n_links]
        Node that each link belongs to.
    other : int32[n_links] or None
        Node at its other end; None if nobody asks for it, and then links stand in its place.
    n_nodes : int
        Nodes.

    Returns
    -------
    first : int64[n_nodes + 1], link : int32[n_links], end : int32[n_links]
        The links of node v, in order, and the node at the other end of each.
    """
    if len(key) < MANY:
        order = np.argsort(key, kind="stable").astype(np.int32)
    else:
        from commsim.core.data_order.dependencies_kernel import counting_order

        order = counting_order(np.asarray(key, np.int32), n_nodes)
    first = np.zeros(n_nodes + 1, np.int64)
    for low in range(0, len(key), PART):
        first[1:] += np.bincount(key[low : low + PART], minlength=n_nodes)
    return np.cumsum(first, out=first), order, order if other is None else other[order]


class KeptRows(Protocol):
    """Rows of links that are found when first asked for, and kept until they are forgotten."""

    def __call__(self) -> Rows:
        """Return the rows."""

    def cache_clear(self) -> None:
        """Forget them."""


@fact
def only_sends(network: Network) -> NDArray[np.bool_]:
    """Return the GPUs that pass on what their machine sends, and nothing that it receives, as with PXN.

    These are GPUs on an NVSwitch that forward: NCCL moves a message over NVLink to the GPU beside the NIC of the
    receiver's rail, and the receiver takes it from its own NIC. Else the way over the sender's rail is as short.
    """
    passes = network.forwards & (network.kind == GPU)
    links = np.flatnonzero((network.metric == NVLINK_METRIC) & passes[network.src])
    src, dst = network.src[links], network.dst[links]
    on_nvswitch = np.zeros(network.n_nodes, np.bool_)
    on_nvswitch[src[(network.kind[dst] == SWITCH) & (network.machine[src] == network.machine[dst])]] = True
    on_nvswitch.setflags(write=False)
    return on_nvswitch


def senders(network: Network) -> NDArray[np.int32]:
    """Return the machine of each node as kernels take it: plus 1, and negative unless :func:`only_sends`."""
    return np.where(only_sends(network), 1, -1).astype(np.int32) * (network.machine + 1)


def shared_searches(network: Network, incoming: Rows, dst: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each destination the number of the search that it needs.

    Nodes that forward nothing and hang on the same links are equally far from all others, so they share a search: in
    a fat tree there is one per edge switch, not per host.

    Parameters
    ----------
    network : Network
        Network with the switches.
    incoming : tuple
        Links by the node that they lead to, of :func:`links_in_rows`.
    dst : int64[n_routes]
        Destinations.

    Returns
    -------
    int64[n_routes]
        Equal where one search does for both.
    """
    target, inverse = np.unique(dst, return_inverse=True)
    first, link, origin = incoming
    search = np.arange(len(target))
    degree = np.where(network.forwards[target], 0, first[target + 1] - first[target])
    for n in np.flatnonzero(np.bincount(degree)[1:]) + 1:  # np.unique would import numpy.ma, 12 ms
        alike = np.flatnonzero(degree == n)
        row = first[target[alike], None] + np.arange(n)
        ends = np.sort(origin[row].astype(np.int64) * (MAX_METRIC + 1) + network.metric[link[row]], axis=1)
        keys = np.concatenate((ends, network.coordinates[target[alike]]), axis=1)
        _, representative, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        search[alike] = alike[representative][which.ravel()]
    return search[inverse]


def flow_hash(
    src: NDArray[np.int64], dst: NDArray[np.int64], channel: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Hash flows to 31 bits.

    Parameters
    ----------
    src, dst, channel : int64[n_flows]
        What makes the flow.
    seed : int
        Taken modulo 2^64.

    Returns
    -------
    int64[n_flows]
    """
    h = np.full(src.shape, np.uint64(seed % 2**64), np.uint64)
    for part in (src, dst, channel):
        h = mixed(h ^ (part.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)))
    return (h >> np.uint64(33)).astype(np.int64)


def mixed(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    out = h >> np.uint64(30)
    out ^= h
    out *= np.uint64(0xBF58476D1CE4E5B9)
    moved = out >> np.uint64(27)  # in place from here on: of millions of links
    out ^= moved
    out *= np.uint64(0x94D049BB133111EB)
    np.right_shift(out, np.uint64(31), out=moved)
    out ^= moved
    return out
