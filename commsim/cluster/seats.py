"""Which free GPUs a job could get: one packed choice, and others that are about as good."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .machines import Machines
from .policy import Order
from .state import Spread


def spreads(
    machines: Machines, free: NDArray[np.int64], n: int, order: Order, room: NDArray[np.float64], limit: int
) -> list[Spread]:
    """Find ways to seat `n` workers on free GPUs, the usual choice first.

    Parameters
    ----------
    free : int64[n_hosts]
        GPUs that may be taken.
    n : int
        Workers.
    order : str
        Packed: on one host if one has room, the fullest such; else in one rack, the fullest such; else in as few racks
        as possible. Fragments: on one host, else on those with least free GPUs first. Demand: as packed, but the hosts
        with the most `room` first.
    room : float64[n_hosts]
        Share of a host's CPUs and memory that jobs have not claimed.
    limit : int
        Ways that are wanted at most.

    Returns
    -------
    list of Spread
        Empty if there is no room.
    """
    if int(free.sum()) < n:
        return []
    if (free >= n).any():
        hosts = np.flatnonzero(free >= n)
        ranks = -room[hosts] if order == "demand" else free[hosts].astype(np.float64)
        return [((int(hosts[np.argmin(ranks)]), n),)]  # inside of one host no link is used: nothing to compare
    found: dict[Spread, None] = {}
    if order == "fragments":
        hosts = np.flatnonzero(free > 0)
        taken = _take(free, hosts[np.argsort(free[hosts], kind="stable")], n)
        found[tuple(sorted(taken))] = None  # in the order of hosts, so that ring neighbours share a rack
    for ordered in _orders(machines, free, n, order, room):
        if len(found) >= limit:
            break
        found.setdefault(_take(free, ordered, n))
    return list(found)


def _orders(
    machines: Machines, free: NDArray[np.int64], n: int, order: Order, room: NDArray[np.float64]
) -> Iterator[NDArray[np.intp]]:
    """Hosts in the order in which they fill up, one way after the other."""
    racks, where = np.unique(machines.rack, return_inverse=True)
    space = np.bincount(where, weights=free, minlength=len(racks))
    key = -room if order == "demand" else np.zeros(len(free))
    by_size = np.lexsort((np.arange(len(free)), -free, key))
    fits = np.flatnonzero(space >= n)
    for rack in fits[np.argsort(space[fits], kind="stable")]:
        mine = by_size[where[by_size] == rack]
        yield mine
        yield mine[::-1]  # small hosts first: as many racks, other links
    largest = np.argsort(-space, kind="stable")
    largest = largest[space[largest] > 0]
    for turn in range(len(largest)):
        rank = np.empty(len(racks), np.int64)
        rank[largest] = np.arange(len(largest))
        rank[largest[turn]] = -1
        mine = by_size[np.argsort(np.where(space[where] > 0, rank[where], len(racks))[by_size], kind="stable")]
        yield mine


def _take(free: NDArray[np.int64], hosts: NDArray[np.intp], n: int) -> Spread:
    spread: list[tuple[int, int]] = []
    for host in hosts:
        taken = min(int(free[host]), n)
        if taken:
            spread.append((int(host), taken))
            n -= taken
        if not n:
            break
    return tuple(spread)
