"""Which free GPUs a job could get: one packed choice, and others that are about as good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import unknown_name

from .machines import Machines
from .policy import Order
from .state import Spread

# How a granted job gets its GPUs.
# packed: the first of the candidates that CASSINI would rank, with a drawn shift
# drawn: any of these candidates
# random: any free GPUs, ranks in the order of racks and hosts, as the placement strategy of this name has them
# shuffled: any free GPUs in any order, as from a scheduler that does not look at the network
# cassini: the candidate with the best score, and shifts that are solved for
# ideal: as packed, on links of its own
Placing = Literal["packed", "drawn", "random", "shuffled", "cassini", "ideal"]
PLACINGS: tuple[Placing, ...] = get_args(Placing)


def known_placing(text: str) -> Placing:
    """Return the name of a way to place jobs.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    for placing in PLACINGS:
        if placing == text:
            return placing
    raise unknown_name("placing", text, PLACINGS)


def spreads(
    machines: Machines, free: NDArray[np.int64], n: int, order: Order, room: NDArray[np.float64], limit: int
) -> list[Spread]:
    """Find ways to place `n` workers on free GPUs, the usual choice first.

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
        Empty without room.
    """
    return _spreads(machines.rack, free, n, order, room, limit)


def whole_spreads(
    machines: Machines, free: NDArray[np.int64], n: int, k: int, order: Order, room: NDArray[np.float64], limit: int
) -> list[Spread]:
    """Find ways to place `n` workers with `k` on each host, as :func:`spreads`; the fullest hosts first.

    Parameters
    ----------
    k : int
        Workers on each host, or on each machine where the hosts are its GPUs; a divisor of `n`.
    """
    count, first = np.bincount(machines.whole, weights=free).astype(np.int64), _first_of(machines)
    by_room = np.flatnonzero(count >= k)
    by_room = by_room[np.argsort(count[by_room], kind="stable")]
    at = first[by_room]
    ways = _spreads(machines.rack[at], np.full(len(at), k, np.int64), n, order, room[at], limit)
    made = [tuple(seat for one, _ in way for seat in seats_on(machines, free, int(by_room[one]), k)) for way in ways]
    return list(dict.fromkeys(tuple(sorted(way)) for way in made)) if order == "fragments" else made


def seats_on(machines: Machines, free: NDArray[np.int64], whole: int, k: int) -> Spread:
    """Return the first `k` free GPUs of a host or of a machine, by its number in ``machines.whole``."""
    return _take(free, np.flatnonzero(machines.whole == whole), k)


def _first_of(machines: Machines) -> NDArray[np.intp]:
    """Return the first host of each machine, by its number."""
    return np.unique(machines.whole, return_index=True)[1]


def _spreads(
    rack: NDArray[np.int64], free: NDArray[np.int64], n: int, order: Order, room: NDArray[np.float64], limit: int
) -> list[Spread]:
    if int(free.sum()) < n:
        return []
    if (free >= n).any():
        hosts = np.flatnonzero(free >= n)
        ranks = -room[hosts] if order == "demand" else free[hosts].astype(np.float64)
        return [((int(hosts[np.argmin(ranks)]), n),)]  # inside of one host no link is used: nothing to compare
    ways: dict[Spread, None] = {}
    if order == "fragments":
        hosts = np.flatnonzero(free > 0)
        placement = _take(free, hosts[np.argsort(free[hosts], kind="stable")], n)
        ways[tuple(sorted(placement))] = None  # in the order of hosts, so that ring neighbours share a rack
    for ordered in _orders(rack, free, n, order, room):
        if len(ways) >= limit:
            break
        ways.setdefault(_take(free, ordered, n))
    return list(ways)


def _orders(
    rack: NDArray[np.int64], free: NDArray[np.int64], n: int, order: Order, room: NDArray[np.float64]
) -> Iterator[NDArray[np.intp]]:
    """Hosts in the order in which they fill up, one way after the other."""
    racks, where = np.unique(rack, return_inverse=True)
    space = np.bincount(where, weights=free, minlength=len(racks))
    key = -room if order == "demand" else np.zeros(len(free))
    by_size = np.lexsort((np.arange(len(free)), -free, key))
    fits = np.flatnonzero(space >= n)
    for one in fits[np.argsort(space[fits], kind="stable")]:
        hosts = by_size[where[by_size] == one]
        yield hosts
        yield hosts[::-1]  # small hosts first: as many racks, other links
    largest = np.argsort(-space, kind="stable")
    largest = largest[space[largest] > 0]
    for turn in range(len(largest)):
        rank = np.empty(len(racks), np.int64)
        rank[largest] = np.arange(len(largest))
        rank[largest[turn]] = -1
        hosts = by_size[np.argsort(np.where(space[where] > 0, rank[where], len(racks))[by_size], kind="stable")]
        yield hosts


def _take(free: NDArray[np.int64], hosts: NDArray[np.intp], n: int) -> Spread:
    spread: list[tuple[int, int]] = []
    for host in hosts:
        n_taken = min(int(free[host]), n)
        if n_taken:
            spread.append((int(host), n_taken))
            n -= n_taken
        if not n:
            break
    return tuple(spread)
