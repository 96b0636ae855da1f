"""Paths that each routing but Valiant's takes: known from the fabric's forest, or found by a search."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import RoutingError
from commsim.core.jit import expected_work
from commsim.core.limits import expect
from commsim.core.network import Network

from .link_rows import MANY, KeptRows, Rows, links_in_rows, senders, shared_searches
from .routes import Routes

if TYPE_CHECKING:
    from .search_kernel import Graph

# Routes for which looking for a forest of the fabric pays.
LEAST = 1024
# What leaving the source of a route and entering its destination takes, or more.
ENDS = 16
NO_SHARES = np.empty(0)
# Seconds in which a search looks at a link, one way: 2e-8 to 4e-8 were measured. Seconds that are worth an estimate.
PER_LOOK, WORTH_SAYING = 2.5e-8, 1.0
# Searches that tell how far the others go.
SAMPLE = 8


def walk(
    network: Network, src: NDArray[np.int64], dst: NDArray[np.int64], key: NDArray[np.int64], routing: str
) -> tuple[Routes, int]:
    """Walk the paths that a routing other than ``valiant`` takes.

    Parameters
    ----------
    network : Network
        Network with the switches.
    src, dst, key : int64[n_routes]
        Nodes, and the hash of each flow.
    routing : str
        One of ``ROUTINGS`` but ``valiant``.

    Returns
    -------
    Routes, int
        The routes, and -1; or the first that has no path, and then the routes mean nothing.
    """
    from .routing_kernel import ALL, BY_DIGITS, BY_HASH, BY_ONE_HASH, FIRST
    from .search_kernel import ANY, DIMENSION_ORDER, LAST_GROUP_CHANGE

    rule, choice = {
        "ecmp": (ANY, BY_HASH),
        "ecmp_polarised": (ANY, BY_ONE_HASH),
        "shortest": (ANY, FIRST),
        "spray": (ANY, ALL),
        "dmodk": (ANY, BY_DIGITS),
        "dimension_order": (DIMENSION_ORDER, BY_HASH),
        "minimal": (LAST_GROUP_CHANGE, BY_HASH),
    }[routing]
    order = np.zeros((2, 0), np.int32)
    if routing == "dmodk":
        from .dmodk import destination_order

        order = destination_order(network)
    ways = (network.src, network.dst), (network.dst, network.src)
    rows = tuple(functools.cache(functools.partial(links_in_rows, *way, network.n_nodes)) for way in ways)
    known = _known(network, (src, dst, key), choice, order, rows) if rule == ANY and len(src) >= LEAST else []
    if len(known) == 1 and len(known[0][0]) == len(src):
        return Routes(*known[0][1:3], np.broadcast_to(1.0, len(known[0][2])), known[0][3]), -1
    is_known = np.zeros(len(src), np.bool_)
    for which, *_ in known:
        is_known[which] = True
    if not is_known.any():
        return _search(network, src, dst, key, rule, choice, order, rows)
    share, rest = NO_SHARES, np.flatnonzero(~is_known)
    if len(rest):
        searched, lost = _search(network, src[rest], dst[rest], key[rest], rule, choice, order, rows)
        if lost >= 0:
            return searched, int(rest[lost])
        if choice == ALL:
            share = np.concatenate((*(np.ones(len(link)) for _, _, link, _ in known), searched.share))
        known.append((rest, searched.first, searched.link, searched.latency))
        del searched
    lengths = np.concatenate([np.diff(first) for _, first, _, _ in known])
    latency, order_found = (np.concatenate([found[column] for found in known]) for column in (3, 0))
    columns: list[NDArray[Any]] = [np.concatenate([link for _, _, link, _ in known]), share]
    del known, share
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return _in_given_order(first, columns, latency, order_found), -1


def _known(
    network: Network,
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    choice: int,
    order: NDArray[np.int32],
    rows: tuple[KeptRows, ...],
) -> list[tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]]:
    """Find routes without a search: those between machines over a forest, and those inside of machines that are alike.

    Returns
    -------
    list of (intp[n], int64[n + 1], int32[m], float64[n])
        Numbers of the routes found, rising, and their links and latencies.
    """
    from .forest_routes import walk_known
    from .in_parts.alike_machines import alike_machines, routes_inside
    from .routing_kernel import BY_HASH, BY_ONE_HASH

    src, dst, _ = flows
    known = walk_known(network, *flows, choice, order, rows)
    found = [] if known is None else [known]
    alike = alike_machines(network)
    if alike is not None:
        found.append(routes_inside(network, alike, src, dst, walk, choice in (BY_HASH, BY_ONE_HASH)))
    return [one for one in found if len(one[0])]


def forwarding_rows(network: Network, rows: Rows, *, in_place: bool = False) -> Rows:
    """Keep of rows of links those whose other end forwards; no others are in the middle of a path.

    In place, rows that nobody needs any more become these: those of a million GPUs are 150 MB.
    """
    first, link, end = rows
    if network.forwards.all():
        return rows
    if len(link) >= MANY:
        from .routing_kernel import forwarding_of

        return forwarding_of(rows, network.forwards, in_place)
    kept = network.forwards[end]
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return before[first], link[kept], end[kept]


def _search(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    rule: int,
    choice: int,
    order: NDArray[np.int32],
    rows: tuple[KeptRows, ...],
) -> tuple[Routes, int]:
    from .routing_kernel import walk_routes
    from .search_kernel import DIMENSION_ORDER

    leaving, arriving, needs_all = rows[0](), rows[1](), not network.forwards[dst].all()
    for way in rows:
        way.cache_clear()
    onward = forwarding_rows(network, leaving, in_place=True)
    inward = forwarding_rows(network, arriving, in_place=not needs_all)
    arriving = arriving if needs_all else inward  # links into destinations that forward are among the others
    del leaving
    # In dimension order a search does not leave the lines between the two ends, so it is of no use to another source.
    shared = np.arange(len(dst)) if rule == DIMENSION_ORDER else shared_searches(network, arriving, dst)
    by_search = np.lexsort((dst, shared))
    tables = (
        arriving,
        inward,
        onward,
        network.dst,
        network.metric,
        network.forwards,
        network.coordinates,
        network.machine + 1 if (network.machine < 0).all() else senders(network),
    )
    pairs = np.stack((src, dst, key, shared), axis=1)[by_search]
    between = int(np.count_nonzero(network.forwards[network.src] & network.forwards[network.dst]))
    searches = 2 * int(np.count_nonzero(np.bincount(shared))) * network.n_links
    if PER_LOOK * searches >= WORTH_SAYING:
        seconds = PER_LOOK * searches * _part_searched(network, pairs, tables, rule)
        if seconds >= WORTH_SAYING:
            expect(seconds, f"finding the paths between {len(src)} pairs of nodes", "fewer ranks")
    with expected_work(searches + len(src) * (between + ENDS)):  # each route looks at each link once at most
        first, link, share, latency, lost = walk_routes(pairs, tables, network.latency, order, rule, choice)
    if lost >= 0:
        return Routes(first, link, share, latency), int(by_search[lost])
    columns: list[NDArray[Any]] = [link, share]
    del link, share
    return _in_given_order(first, columns, latency, by_search), -1


def _part_searched(network: Network, pairs: NDArray[np.int64], tables: Graph, rule: int) -> float:
    """Return the part of the network that a search goes through, from a few of them: one ends at its source."""
    from .search_kernel import nodes_found

    every = np.flatnonzero(np.bincount(pairs[:, 3]))
    few = every[np.linspace(0, len(every) - 1, min(SAMPLE, len(every))).astype(np.int64)]
    nodes = nodes_found(pairs[np.isin(pairs[:, 3], few)], tables, network.n_nodes, rule)
    return min(1.0, nodes / len(few) / max(1, int(network.forwards.sum())))


def no_path(network: Network, src: int, dst: int, routing: str) -> RoutingError:
    """Return the error that names a pair without a path.

    Parameters
    ----------
    network : Network
        Network with the switches.
    src, dst : int
        The pair.
    routing : str
        Routing that finds no path.
    """
    from commsim.core.faults.cut_off import told_cut_off

    how = {
        "dimension_order": " in dimension order; ecmp takes any",
        "minimal": " that changes the group at most once; ecmp takes any",
    }.get(routing, "")
    how = how or _only_through(network, src, dst) or told_cut_off(network)
    return RoutingError(f"{network.name}: no path from {network.nodes[src]} to {network.nodes[dst]}{how}")


def _only_through(network: Network, src: int, dst: int) -> str:
    """Say which node a pair would reach each other through if it forwarded; nothing where there is no such path."""
    before = {src: src}
    ring = [src]
    while ring and dst not in before:
        links = np.flatnonzero(np.isin(network.src, ring))
        ring = []
        for link in links:
            a, b = int(network.src[link]), int(network.dst[link])
            if b not in before:
                before[b] = a
                ring.append(b)
    node = before.get(dst, src)
    while node != src and network.forwards[node]:
        node = before[node]
    if node == src:
        return ""
    return f" but through {network.nodes[node]}, which does not forward; forwards=True of NetworkBuilder.hosts lets it"


def _in_given_order(
    first: NDArray[np.int64],
    columns: list[NDArray[Any]],
    latency: NDArray[np.float64],
    order: NDArray[np.intp],
) -> Routes:
    """Undo the sorting by destination; without shares all are 1.

    `columns` are links and shares, taken from the list: sprayed ones are hundreds of megabytes, and their old order is
    free as soon as the new one is there.
    """
    from .routing_kernel import rows_in_order

    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    with expected_work(len(order) + sum(map(len, columns))):
        link = rows_in_order(first, columns.pop(0), place)
        share = columns.pop()
        # all are 1 without, and take no memory
        share = rows_in_order(first, share, place) if len(share) else np.broadcast_to(1.0, len(link))
    ordered = np.zeros_like(first)
    np.cumsum(np.diff(first)[place], out=ordered[1:])
    return Routes(ordered, link, share, latency[place])
