"""Cables, ports, tiers and their capacities, and what is near what (machines, racks, pods)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .network import NIC, SWITCH, Network

# Links that are looked at together: of millions, columns in between would be larger than what is found.
AT_ONCE = 1 << 18
_NAMES = ("machine", "rack", "pod")
T = TypeVar("T")


def fact(find: Callable[[Network], T]) -> Callable[[Network], T]:
    """Keep with a network what a function finds of its nodes, ends of links, metrics and machines: found once."""

    @functools.wraps(find)
    def known(network: Network) -> T:
        if find not in network.facts:
            network.facts[find] = find(network)
        found: T = network.facts[find]
        return found

    return known


def partners(network: Network) -> NDArray[np.int64]:
    """Link that is the other direction of the same cable; of parallel ones, the one with the same number.

    Returns
    -------
    int64[n_links]
        A link without another direction is its own partner.
    """
    number, src, dst = link_numbers(network), network.src.astype(np.int64), network.dst.astype(np.int64)
    base = int(number.max(initial=0)) + 1
    there, back = (src * network.n_nodes + dst) * base + number, (dst * network.n_nodes + src) * base + number
    order = np.argsort(there)
    match = order[np.minimum(np.searchsorted(there[order], back), network.n_links - 1)]
    return np.where(there[match] == back, match, np.arange(network.n_links))


def fabric_cables(network: Network) -> NDArray[np.int64]:
    """One link of every cable between nodes that forward and are not inside a machine, the lower number of the two."""
    inner = network.forwards & (network.machine < 0)
    lower = np.arange(network.n_links) <= partners(network)
    return np.flatnonzero(lower & inner[network.src] & inner[network.dst])


def fabric_switches(network: Network) -> NDArray[np.bool_]:
    """Which nodes are switches outside of machines, bool[n_nodes]."""
    found: NDArray[np.bool_] = (network.kind == SWITCH) & (network.machine < 0)
    return found


def link_numbers(network: Network) -> NDArray[np.int64]:
    """How many links with the same ends come before each link."""
    order = np.lexsort((network.dst, network.src))
    src, dst = network.src[order], network.dst[order]
    starts = np.flatnonzero(np.r_[True, (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])][: len(order)])
    number = np.empty(network.n_links, np.int64)
    number[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return number


@fact
def ports_are_few(network: Network) -> bool:
    """Whether no host has more links out than messages it can begin at once, nor NICs: then only ports limit these."""
    if network.has_nics:
        return False
    n_ports = np.bincount(network.src, minlength=network.n_nodes)
    return not ((n_ports > network.message_engines) & (network.kind != SWITCH)).any()


@fact
def tiers(network: Network) -> NDArray[np.int32]:
    """Links between each node and the nearest endpoint that reaches it.

    Returns
    -------
    int32[n_nodes]
        0 for endpoints, 1 for what they are cabled to, and so on; -1 for what no endpoint reaches.
    """
    tier = levels_from(network.kind == network.seat_kind, network.src, network.dst)
    tier.setflags(write=False)
    return tier


def tier_capacities(network: Network, tier: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By node, the bandwidth of its links from the tier below, and of those to the tier above."""
    below, above = np.zeros((2, network.n_nodes))
    for low in range(0, network.n_links, AT_ONCE):
        src, dst = network.src[low : low + AT_ONCE], network.dst[low : low + AT_ONCE]
        up = np.flatnonzero((tier[src] >= 0) & (tier[dst] > tier[src]))
        for of_node, ends in ((below, dst), (above, src)):
            np.add.at(of_node, ends[up], network.bandwidth[low + up])  # in order, as one sum over all would be
    return below, above


def fabric_oversubscription(network: Network) -> float:
    """Return the largest oversubscription of switches outside machines; 1 where none has less upwards than below."""
    fabric = fabric_switches(network)
    if np.count_nonzero(fabric) < 2:
        return 1.0
    # a NIC whose GPU failed is no tier above the switch that it is cabled to
    below, above = tier_capacities(network, np.where(fabric, tiers(network), 0))
    rising = fabric & (above > 0)
    return max(1.0, float((below[rising] / above[rising]).max(initial=1.0)))


def with_rates(network: Network, **changes: Any) -> Network:
    """Return a network with other rates, latencies or costs of messages; what was found of its layout stays known."""
    other = dataclasses.replace(network, **changes)
    object.__setattr__(other, "facts", network.facts)
    return other


def levels_from(start: NDArray[np.bool_], src: NDArray[Any], dst: NDArray[Any]) -> NDArray[np.int32]:
    """Links between each node and the nearest of those where `start` holds; -1 where no way leads.

    Parameters
    ----------
    start : bool[n_nodes]
        Whether each node is one that the distance is counted from.
    src, dst : int[n_links]
        Ends of the links, which are taken in their direction.
    """
    tier = start.astype(np.int32) - np.int32(1)
    level = 0
    while True:
        onward = (tier < 0)[dst]  # the others lead back
        src, dst = src[onward], dst[onward]
        reached = dst[(tier == level)[src]]
        if not reached.size:
            return tier
        level += 1
        tier[reached] = level


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of locality.

    Parameters
    ----------
    name : str
        ``machine``, ``rack``, ``pod``, then ``tier 4`` and so on.
    group : int64[n_endpoints]
        Group of each endpoint, numbered from 0 in the order of the groups' first endpoints.
    """

    name: str
    group: NDArray[np.int64]


def locality_levels(network: Network) -> tuple[Level, ...]:
    """Find the levels of locality, the innermost first; each group lies inside one group of the next level.

    Endpoints are in one machine as the network says. Machines are in one rack when the first switch that they are
    cabled to is the same; racks in one pod when the first switch of the next tier that theirs are cabled to is the
    same, and so on, up to the tier from which nothing leads up. "First" is by the number of the link. Racks that
    share a switch above them are in one pod even where the link to the first one has failed.

    Returns
    -------
    tuple of Level
        At least the machines. Groups may be single endpoints, or all of them.
    """
    unit = units(network)
    links = _between_units(network, unit)
    above = _first_above(links)
    at = unit[network.endpoints]
    levels = [Level("machine", numbered(at))]
    while (above[at] != at).any():
        at = above[_sharing(network, links, at)[at]] if len(levels) > 1 else above[at]
        n = len(levels)
        levels.append(Level(_NAMES[n] if n < len(_NAMES) else f"tier {n}", numbered(at)))
    return tuple(levels)


def units(network: Network) -> NDArray[np.int64]:
    """Return the number of the machine that each node is in; what is in none is one by itself."""
    unit = np.cumsum(network.machine < 0, dtype=np.int64)
    unit += network.machine.max()
    np.copyto(unit, network.machine, where=network.machine >= 0)
    return unit


def is_torus(network: Network) -> bool:
    """Whether hosts are cabled as a grid of two or more dimensions, each with links of its own along every one."""
    return network.routing == "dimension_order" and network.coordinates is not None and network.coordinates.shape[1] > 1


def live_nics(network: Network) -> NDArray[np.integer[Any]]:
    """Return the NICs of machines that a cable still joins to a network; all of them where none is joined."""
    nic, machine = network.kind == NIC, network.machine
    src = network.src[links := np.flatnonzero(nic[network.src])]
    is_joined = np.zeros(network.n_nodes, np.bool_)
    is_joined[src[machine[src] != machine[network.dst[links]]]] = True
    return np.flatnonzero(is_joined if is_joined.any() else nic)


def first_above(network: Network, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """By unit, the switch one tier up that its first link leads to; the node itself where it has none."""
    return _first_above(_between_units(network, unit))


@dataclass(frozen=True, slots=True, eq=False)
class _UnitLinks:
    """Links between different units: their numbers, and the units at their ends; int32[m] each, of millions.

    `tier` has the links from each unit down to what is no switch.
    """

    link: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    tier: NDArray[np.int32]


def _between_units(network: Network, unit: NDArray[np.int64]) -> _UnitLinks:
    small, found = unit.astype(np.int32), []
    for low in range(0, network.n_links, AT_ONCE):
        some = slice(low, low + AT_ONCE)
        found.append(np.flatnonzero(small[network.src[some]] != small[network.dst[some]]).astype(np.int32) + low)
    link = np.concatenate([np.empty(0, np.int32), *found])
    src, dst = small[network.src[link]], small[network.dst[link]]
    is_switch = np.zeros(int(unit.max()) + 1, np.bool_)
    is_switch[unit[fabric_switches(network)]] = True
    return _UnitLinks(link, src, dst, levels_from(~is_switch, src, dst))


def _first_above(links: _UnitLinks) -> NDArray[np.int64]:
    small = links.tier.astype(np.int16)
    from_tier = small[links.src]
    rising = np.flatnonzero((from_tier >= 0) & (small[links.dst] == from_tier + 1))[::-1]  # the first is written last
    above = np.arange(len(small))
    above[links.src[rising]] = links.dst[rising]
    return above


def _sharing(network: Network, links: _UnitLinks, switches: NDArray[np.int64]) -> NDArray[np.int32]:
    """By unit, the first of the switches that share switches above with it, also over others; else the unit itself."""
    tier, n_units = links.tier, len(links.tier)
    chosen = np.zeros(n_units, np.bool_)
    chosen[switches] = True
    up = np.flatnonzero(chosen[links.src] & ~chosen[links.dst])
    src, dst = links.src[up], links.dst[up]
    up = np.flatnonzero((network.kind[network.dst[links.link[up]]] == SWITCH) & (tier[dst] - tier[src] == 1))
    src, dst = src[up], dst[up]
    first = np.arange(n_units, dtype=np.int32)
    while True:
        least = np.full(n_units, n_units, np.int32)
        np.minimum.at(least, dst, first[src])
        after = first.copy()
        np.minimum.at(after, src, least[dst])
        if (after == first).all():
            return first
        first = after


def numbered(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber keys from 0, in the order of their first appearance."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def line_rate(network: Network, nodes: NDArray[np.int32]) -> float:
    """Return the rate at which the links of a node send, bytes/s: of the node of `nodes` whose links are slowest."""
    of_node = np.bincount(network.src, weights=network.bandwidth, minlength=network.n_nodes)
    return float(of_node[nodes].min())


def busiest_link(network: Network, sent: Iterable[tuple[Mapping[int, float], int]]) -> int | None:
    """Return the link out of a machine with ranks that is longest busy with communications; None if all stay inside.

    Parameters
    ----------
    sent : iterable of (mapping of int to float, int)
        Bytes of a communication by link, and how often it comes.
    """
    unit = units(network)
    src, dst = unit[network.src], unit[network.dst]
    leaves = (src != dst) & np.isin(src, unit[network.endpoints])
    busy = np.zeros(network.n_links)
    for n_bytes, times in sent:
        for link, load in n_bytes.items():
            busy[link] += times * (load / network.bandwidth[link])
    busy[~leaves] = 0.0
    return int(np.round(busy, 12).argmax()) if busy.max() > 0 else None
