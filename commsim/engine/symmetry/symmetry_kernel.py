"""Kernels that distinguish transfers and resources by their neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount
from commsim.engine.flow_state import Row, Rows

Whole = NDArray[np.uint64]
# Added to numbers of one kind, so that they differ from those of another kind: the xor of two equal hashes is 0.
APART = np.uint64(0x9E3779B97F4A7C15)


@njit_norefcount
def mix(x: np.uint64) -> np.uint64:
    """Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def refine_connections(
    colour: Whole,
    transfers: tuple[NDArray[np.int32], NDArray[np.int32]],
    waits: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]],
) -> Whole:
    """Refine the colours of connections by one step, from those of the transfers that their transfers wait for.

    Parameters
    ----------
    colour : uint64[n_connections]
        Colour of each connection so far.
    transfers : (int32[n_transfers], int32[n_transfers])
        Wire of each transfer, and its place on it.
    waits : (int64[n_transfers + 1], int32[m], bool[m])
        Rows of the transfers that it waits for, and whether until they are complete.
    """
    connection, place = transfers
    first, pred, complete = waits
    around = np.zeros(colour.shape[0], np.uint64)
    for i in range(connection.shape[0]):
        h = np.uint64(0)
        for k in range(first[i], first[i + 1]):
            p = pred[k]
            h += mix(colour[connection[p]] ^ mix(np.uint64(2 * place[p] + (1 if complete[k] else 0) + 1)))
        around[connection[i]] += mix(h ^ mix(np.uint64(place[i]) + APART))
    for w in range(colour.shape[0]):
        around[w] = mix(around[w] ^ mix(colour[w]))
    return around


@njit_norefcount
def _part_of_link(flow: Row, e: int) -> int:
    """Return the part of a flow's links that a link is in: 0 before the data's, 1 of the data, 2 from the port on."""
    return (1 if e >= flow["data"] else 0) + (1 if e >= flow["port"] else 0)


@kernel
def colour_resources(
    flow: Rows,
    resource: NDArray[np.int32],
    share: NDArray[np.float64],
    flow_class: NDArray[np.int32],
    capacity: NDArray[np.float64],
) -> Whole:
    """Colour resources by their capacity and the classes of the flows that may use them, with shares and phases.

    Returns
    -------
    uint64[n_resources]
        0 where nothing uses it.
    """
    around = np.zeros(capacity.shape[0], np.uint64)
    bits = capacity.view(np.uint64)
    for s in range(flow.shape[0]):
        for e in range(flow[s]["begin"], flow[s]["end"]):
            role = np.uint64(3 * flow_class[s] + _part_of_link(flow[s], e))
            part = np.uint64((share[e] if len(share) > 0 else 1.0) * 2.0**62)
            around[resource[e]] += mix(mix(role + np.uint64(1)) ^ part)
    for r in range(around.shape[0]):
        if around[r] != 0:
            around[r] = mix(around[r] ^ mix(bits[r])) | np.uint64(1)
    return around


@kernel
def colour_flows(
    flow: Rows, resource: NDArray[np.int32], flow_class: NDArray[np.int32], kind: NDArray[np.int32]
) -> Whole:
    """Colour flows by their class and the kinds of their resources, in each phase."""
    colour = np.empty(flow.shape[0], np.uint64)
    for s in range(flow.shape[0]):
        h = np.uint64(0)
        for e in range(flow[s]["begin"], flow[s]["end"]):
            h += mix(np.uint64(3 * kind[resource[e]] + _part_of_link(flow[s], e) + 1))
        colour[s] = mix(h ^ mix(np.uint64(flow_class[s]) + APART))
    return colour
