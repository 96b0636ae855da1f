"""Kernels that walk shortest paths."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .growing_kernel import grown
from .link_rows import Rows as Rows
from .search_kernel import ANY, Graph, distance_from, is_allowed, new_search, start_search
from .search_kernel import hops_to as hops_to

T = TypeVar("T", bound=np.generic)

BY_HASH, BY_ONE_HASH, FIRST, ALL, BY_DIGITS = range(5)
MASK = 2**31 - 1
MULTIPLIERS = (0x2C1B3C6D, 0x297A2D39, 0x45D9F3B5)  # odd, and so small that a product with 31 bits fits 63


@kernel
def _next_links(
    node: int, source: int, target: int, graph: Graph, rule: int, distance: NDArray[np.int32], out: NDArray[np.int32]
) -> int:
    """Write to `out` the links that lead from `node` nearer to `target`, and count them."""
    arriving, _, outgoing, end, metric, forwards, coordinates, _ = graph
    n = 0
    if not forwards[target]:
        for k in range(arriving[0][target], arriving[0][target + 1]):
            link = arriving[1][k]
            if (
                arriving[2][k] == node
                and metric[link] == distance[node]
                and is_allowed(rule, coordinates, node, target, source, target)
            ):
                out[n] = link
                n += 1
    for k in range(outgoing[0][node], outgoing[0][node + 1]):
        link = outgoing[1][k]
        if 0 <= distance[end[link]] == distance[node] - metric[link] and (
            rule == ANY or is_allowed(rule, coordinates, node, end[link], source, target)
        ):
            out[n] = link
            n += 1
    return n


@kernel
def hashed(n_choices: int, key: int, node: int, choice: int) -> int:
    """Which of the choices the hash of the flow says, or 0 when none is drawn; every node hashes differently or not."""
    if choice in (FIRST, ALL):
        return 0
    x = key ^ ((np.int64(node) * 0x61C88647) & MASK if choice == BY_HASH else 0)
    for multiplier in MULTIPLIERS:  # else what is chosen at one tier would tell what is chosen at the next
        x = ((x ^ (x >> 15)) * multiplier) & MASK
    x ^= x >> 16
    return int(x & (n_choices - 1) if n_choices & (n_choices - 1) == 0 else x % n_choices)


@kernel
def _digit(n_choices: int, index: int, tier: int, next_tier: int, radix: NDArray[np.int64]) -> int:
    """Next digit of `index`, of as many values as there are choices; going down, that of the same tier's way up."""
    if next_tier > tier:
        radix[next_tier] = min(radix[tier] * n_choices, 2**40)
        return int(index // radix[tier] % n_choices)
    return int(index // radix[next_tier] % n_choices)


@kernel
def largest(values: NDArray[np.integer]) -> int:
    """Find the largest of numbers from 0 on; code with Numba's own ``max`` loads SciPy, 0.15 s."""
    most = 0
    for i in range(values.shape[0]):
        most = max(most, values[i])
    return most


@kernel
def walk_routes(
    flows: NDArray[np.int64],
    graph: Graph,
    latency: NDArray[np.float64],
    order: NDArray[np.int32],
    rule: int,
    choice: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], int]:
    """Walk from each source to its destination.

    Parameters
    ----------
    flows : int64[n, 4]
        Source, destination, hash, and number of the search that the destination shares with others, sorted by it.
    graph : Graph
        The network.
    latency : float64[n_links], s
        Latency of each link.
    order : int32[2, n_nodes]
        Index of each node among the possible destinations, and its tier; without columns unless for BY_DIGITS.
    rule, choice : int
        Links that may be taken, ANY, LAST_GROUP_CHANGE or DIMENSION_ORDER; and the choice among the best of them.

    Returns
    -------
    first, link, share, latency, lost
        Columns of Routes in the order of `flows`, without shares unless all choices are taken, and a flow that has no
        path, or -1.
    """
    n, n_nodes, n_links, end = flows.shape[0], graph[5].shape[0], latency.shape[0], graph[3]
    first = np.zeros(n + 1, np.int64)
    link = np.empty(8 * n + 16, np.int32)
    share = np.empty(8 * n + 16 if choice == ALL else 0)
    path_latency = np.zeros(n)
    search = new_search(n_nodes, n_links, largest(graph[4]) if n_links else 1)
    distance = search[1]
    choices = np.empty(n_links, np.int32)
    part = np.zeros(n_nodes)  # of the bytes that reach a node, and
    slowest = np.zeros(n_nodes)  # the longest delay until they do
    reached = np.empty(n_nodes, np.int32)
    radix = np.ones(largest(order[1]) + 2, np.int64)
    m = 0
    searched = -1
    for i in range(n):
        source, target, key, shared = flows[i]
        first[i + 1] = m
        if source == target:
            continue
        if shared != searched:
            start_search(source, target, graph, rule, search)
            searched = shared
        length = distance_from(source, target, graph, rule, search)
        if length < 0:
            return first, link, share, path_latency, i
        as_searched = distance[source], distance[target]
        distance[source], distance[target] = length, 0
        radix[:] = 1
        reached[0] = source
        part[source], slowest[source] = 1.0, 0.0
        head, tail = 0, 1
        while head < tail:  # the farthest from the target come first, so a node's part is complete when it does
            node = reached[head]
            head += 1
            if node == target:
                path_latency[i] = slowest[node]
                continue
            n_choices = _next_links(node, source, target, graph, rule, distance, choices)
            if choice == BY_DIGITS:
                lowest = _digit(n_choices, order[0, target], order[1, node], order[1, end[choices[0]]], radix)
            else:
                lowest = hashed(n_choices, key, node, choice)
            highest = n_choices if choice == ALL else lowest + 1
            if m + n_choices >= link.shape[0]:
                link = grown(link, link.shape[0] + n_choices)
                if choice == ALL:
                    share = grown(share, share.shape[0] + n_choices)
            for taken in choices[lowest:highest]:
                there = end[taken]
                link[m] = taken
                carried = part[node] / (highest - lowest)
                if choice == ALL:
                    share[m] = carried
                if part[there] == 0.0:
                    place = tail
                    while place > head and distance[reached[place - 1]] < distance[there]:
                        reached[place] = reached[place - 1]
                        place -= 1
                    reached[place] = there
                    tail += 1
                part[there] += carried
                slowest[there] = max(slowest[there], slowest[node] + latency[taken])
                m += 1
        for k in range(tail):
            part[reached[k]] = slowest[reached[k]] = 0.0
        distance[source], distance[target] = as_searched
        first[i + 1] = m
    link = link[:m].copy()  # one after the other: each is hundreds of megabytes where many routes are sprayed
    share = share[: m if choice == ALL else 0].copy()
    return first, link, share, path_latency, -1


@kernel
def rows_in_order(first: NDArray[np.int64], values: NDArray[T], place: NDArray[np.int64]) -> NDArray[T]:
    """Return the values of compressed rows in another order: row r is the one at ``place[r]``."""
    ordered = np.empty_like(values)
    m = 0
    for r in range(place.shape[0]):
        for k in range(first[place[r]], first[place[r] + 1]):
            ordered[m] = values[k]
            m += 1
    return ordered


@kernel
def forwarding_of(rows: Rows, forwards: NDArray[np.bool_], in_place: bool) -> Rows:
    """Do the same as :func:`commsim.routing.walk.forwarding_rows`; in place, the rows that were given are lost."""
    first, link, end = rows
    kept, kept_link, kept_end = first, link, end
    if not in_place:
        m = 0
        for k in range(end.shape[0]):
            m += forwards[end[k]]
        kept, kept_link, kept_end = np.empty(first.shape[0], np.int64), np.empty(m, np.int32), np.empty(m, np.int32)
    m, begin = 0, first[0]
    kept[0] = 0
    for node in range(first.shape[0] - 1):
        behind = first[node + 1]
        for k in range(begin, behind):
            if forwards[end[k]]:
                kept_link[m], kept_end[m] = link[k], end[k]
                m += 1
        begin = behind
        kept[node + 1] = m
    return kept, kept_link[:m], kept_end[:m]
