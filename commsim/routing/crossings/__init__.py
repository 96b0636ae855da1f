"""How many routes hashes draw over each link, where the routes themselves are not kept; several seeds at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.core.network import Network
from commsim.routing import walk
from commsim.routing.forest_routes import WALK_STEPS, RouteEnds, ends_of_routes
from commsim.routing.routing import drawn_with
from commsim.routing.routing_kernel import BY_HASH, BY_ONE_HASH

if TYPE_CHECKING:
    from .crossings_kernel import Steps

_latest: list[tuple[RouteEnds, str, NDArray[np.int64], dict[int, Crossings]]] = []


@dataclass(frozen=True, slots=True, eq=False)
class Crossings:
    """What routes have on each link, where they themselves are not kept.

    Parameters
    ----------
    n_routes : int64[n_links]
        Routes over each link.
    furthest : float64[n_links], s
        Largest latency of these; 0 where there are none.
    port : int32[n_routes]
        First link of each route.
    """

    n_routes: NDArray[np.int64]
    furthest: NDArray[np.float64]
    port: NDArray[np.int32]


def count_crossings(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    channel: NDArray[np.int64],
    seed: int,
    routing: str,
) -> Crossings | None:
    """Count the routes that a hash draws over each link; None where routing is another, or some need a search.

    Parameters
    ----------
    network : Network
        Any.
    src, dst, channel : int64[n_routes]
        What makes each flow.
    seed, routing : int, str
        Same as in :func:`commsim.routing.routing.find_routes`.
    """
    if routing not in ("ecmp", "ecmp_polarised") or len(src) < walk.LEAST:
        return None
    ends = ends_of_routes(network, src, dst)
    if ends is None or len(ends.apart) < len(src) or not ends.ports[2].all():
        return None
    for known, by, numbers, drawn in _latest:
        if seed in drawn and known is ends and by == routing and np.array_equal(numbers, channel):
            return drawn[seed]
    seeds = drawn_with(seed)
    found = _count(network, ends, (src, dst, channel), seeds, BY_HASH if routing == "ecmp" else BY_ONE_HASH)
    if found is None:
        return None
    _latest[:] = [(ends, routing, channel, found)] if len(seeds) > 1 else []
    return found[seed]


def _count(
    network: Network,
    ends: RouteEnds,
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    seeds: Sequence[int],
    choice: int,
) -> dict[int, Crossings] | None:
    from .crossings_kernel import count_forest

    as_unsigned = np.array([seed % 2**64 for seed in seeds], np.uint64)
    links = ends.rows[1], ends.rows[2], ends.nodes
    with expected_work(network.n_links + WALK_STEPS * len(seeds) * len(flows[0])):
        n_over, furthest, known = count_forest(
            flows, as_unsigned, ends.ports, _steps(network, ends), links, network.latency, choice
        )
    if not known:
        return None
    (out, _), chosen, _ = ends.ports
    begin = np.append(out[5], np.zeros(1, np.int32))[
        out[4][:-1]
    ]  # inside of the machine, where the port is not its own
    port = np.where(np.diff(out[4]) > 0, begin, out[1])[chosen[:, 0]].astype(np.int32)
    return {seed: Crossings(n_over[k], furthest[k], port) for k, seed in enumerate(seeds)}


def _steps(network: Network, ends: RouteEnds) -> Steps:
    """Return which links lead from each switch to the class above it and to each class below."""
    node_class, parent, depth, _, _ = ends.forest
    first, link, end = ends.rows
    above = np.full((len(parent), int(depth.max()) + 1), -1, np.int32)
    own = at = np.arange(len(parent), dtype=np.int32)
    while len(own):
        above[own, depth[at]] = at
        own, at = own[parent[at] >= 0], parent[at][parent[at] >= 0]
    below = np.flatnonzero(parent >= 0)
    below = below[np.argsort(parent[below], kind="stable")]
    n_below = np.bincount(parent[below], minlength=len(parent))
    place = np.zeros(len(parent), np.int32)
    place[below] = np.arange(len(below)) - (np.cumsum(n_below) - n_below)[parent[below]]
    n_rows = np.where(np.diff(first) > 0, n_below[node_class], 0)
    first_down = np.cumsum(n_rows) - n_rows
    starts = np.flatnonzero(np.diff(ends.alike_to, prepend=-1))
    rows = np.stack((starts, ends.alike_to[starts] - starts), axis=1).astype(np.int32)
    node, to = network.src[link[starts]], node_class[end[starts]]
    rises = to == parent[node_class[node]]
    up, down = np.zeros((network.n_nodes, 2), np.int32), np.zeros((int(n_rows.sum()), 2), np.int32)
    up[node[rises]] = rows[rises]
    down[first_down[node[~rises]] + place[to[~rises]]] = rows[~rises]
    return node_class, above, place, up, first_down, down
