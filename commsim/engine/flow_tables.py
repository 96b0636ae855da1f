"""Tables of wires, slots, entries and resources, from routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.routing.routing import Routes

from .flow_state import ENTRY_ROW, IDLE, SLOT_ROW, WIRE_ROW

Table = NDArray[Any]


def slot_tables(
    network: Network, jobs: Sequence[Any], routes: Routes, nodes: NDArray[np.int32], job_of_wire: NDArray[np.intp]
) -> tuple[Table, Table, NDArray[np.float64]]:
    """Lay out slots, their entries and the resources: links, then reduction units of nodes, then rate caps.

    Links that are never in the way have no entries.

    Parameters
    ----------
    network : Network
        Where.
    jobs : sequence of Job
        Their weights, priorities and caps.
    routes : Routes
        Of each wire.
    nodes : int32[n_wires, 2]
        Source and destination of each wire.
    job_of_wire : intp[n_wires]
        Whose each wire is.

    Returns
    -------
    slot, entry : structured arrays
    capacity : float64[n_resources], bytes/s
    """
    n_wires, n_links = len(nodes), network.n_links
    of_wire = np.repeat(np.arange(n_wires, dtype=np.int32), np.diff(routes.first))
    src, dst = nodes[of_wire, 0], nodes[of_wire, 1]
    is_port = network.src[routes.link] == src
    is_last = network.dst[routes.link] == dst
    cap = np.array([job.rate_cap for job in jobs])[job_of_wire]
    capped = np.flatnonzero(np.isfinite(cap) & (np.diff(routes.first) > 0)).astype(np.int32)
    everyone = np.arange(n_wires, dtype=np.int32)
    pays = is_port & (network.overhead[src] > 0) | is_last & (network.recv_overhead[dst] > 0)
    kept = _may_be_full(network, routes, of_wire, pays)
    is_last &= kept
    # a sending slot's entries are its route, nearest first, and its cap; a receiving one's the last links, and the
    # reduction unit of its node
    owner = np.concatenate((of_wire[kept], capped, n_wires + of_wire[is_last], n_wires + everyone))
    used = np.concatenate((routes.link[kept], n_links + network.n_nodes + np.arange(len(capped)), routes.link[is_last],
                           n_links + nodes[:, 1]))  # fmt: skip
    share = np.concatenate((routes.share[kept], np.ones(len(capped)), routes.share[is_last], np.ones(n_wires)))
    order = np.argsort(owner, kind="stable")
    entry = np.zeros(len(owner), ENTRY_ROW)
    entry["slot"], entry["resource"], entry["share"] = owner[order], used[order], share[order]

    slot = np.zeros(2 * n_wires, SLOT_ROW)
    bounds = np.searchsorted(entry["slot"], np.arange(2 * n_wires + 1))
    slot["begin"], slot["end"] = bounds[:-1], bounds[1:]
    slot["port"][:n_wires] = bounds[:n_wires] + np.bincount(of_wire[is_port & kept], minlength=n_wires)
    slot["port"][n_wires:] = bounds[n_wires + 1 :] - 1
    slot["phase"], slot["transfer"] = IDLE, -1
    slot["weight"] = np.tile(np.array([job.weight for job in jobs])[job_of_wire], 2)
    slot["priority"] = np.tile(np.array([job.priority for job in jobs])[job_of_wire], 2)

    with np.errstate(divide="ignore", over="ignore"):  # no reduction, or one too fast for a float, takes no time
        capacity = np.concatenate((network.bandwidth, 1 / network.gamma, cap[capped]))
    return slot, entry, capacity


def _may_be_full(
    network: Network, routes: Routes, of_wire: NDArray[np.int32], pays: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Say of each link of each route whether it could hold anybody back.

    It cannot where all that ever use it, each as fast as the slowest link of its route lets it be, fit together; unless
    it is the one that says so of some wire, or overheads take part (`pays`).
    """
    alone = network.bandwidth[routes.link] / routes.share
    fastest = np.full(len(routes.latency), np.inf)
    crosses = np.diff(routes.first) > 0
    if len(alone):
        fastest[crosses] = np.minimum.reduceat(alone, routes.first[:-1][crosses])
    most = np.bincount(routes.link, weights=fastest[of_wire] * routes.share, minlength=network.n_links)
    in_the_way = most > network.bandwidth * (1 + 1e-12)
    in_the_way[routes.link[pays]] = True
    slowest = alone == fastest[of_wire]
    is_held = np.zeros(len(fastest), np.bool_)
    is_held[of_wire[slowest & in_the_way[routes.link]]] = True
    rest = np.flatnonzero(slowest & ~is_held[of_wire])
    in_the_way[routes.link[rest[np.diff(of_wire[rest], prepend=-1) > 0]]] = True
    return np.asarray(in_the_way[routes.link])


def wire_table(
    network: Network,
    n_transfers: NDArray[np.int64],
    nodes: NDArray[np.int32],
    routes: Routes,
    tables: tuple[Table, Table, NDArray[np.float64]],
) -> Table:
    """Lay out the wires: their queues, and what a message costs before and after its bytes.

    Parameters
    ----------
    network : Network
        Where.
    n_transfers : int64[n_wires]
        How many each wire carries.
    nodes, routes
        As :func:`slot_tables` takes them.
    tables : (slot, entry, capacity)
        As it returns them.
    """
    n_wires, (slot, entry, capacity) = len(nodes), tables
    wire = np.zeros(n_wires, WIRE_ROW)
    end = np.cumsum(n_transfers)
    wire["next"] = wire["receive"] = wire["arrived"] = end - n_transfers
    wire["end"] = end
    wire["latency"] = routes.latency
    src, dst = nodes[:, 0], nodes[:, 1]
    for half, field, cost in (
        (slot[:n_wires], "overhead_work", network.overhead[src]),
        (slot[n_wires:], "receive_work", network.recv_overhead[dst]),
    ):
        costly = np.flatnonzero((half["port"] > half["begin"]) & (cost > 0))
        if costly.size:  # how fast a port works for one wire: all its links of the route together
            alone = capacity[entry["resource"]] / entry["share"]
            bounds = np.stack((half["begin"], half["port"]), axis=1)[costly].ravel()
            wire[field][costly] = cost[costly] * np.minimum.reduceat(np.append(alone, np.inf), bounds)[::2]
    wire["reduces"] = network.gamma[dst] > 0
    return wire
