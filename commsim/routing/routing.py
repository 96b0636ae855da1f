"""Routing: which links the messages between two nodes take, and which share of them each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, close_names, did_you_mean
from commsim.core.network import ROUTINGS, Network
from commsim.core.spec import is_whole

from .link_rows import flow_hash
from .routes import Routes, over_one_switch

# Routings that depend on the seed.
HASHED = ("ecmp", "ecmp_polarised", "dimension_order", "minimal", "valiant")
# Routings that not only the metric decides, but also coordinates.
BY_GROUPS = ("dimension_order", "minimal", "valiant")
# Routings that not all networks suit.
LAID_OUT = ("dimension_order", "minimal", "dmodk")
# Routings that take a number: of values that hosts spray over, of queue pairs of a connection.
WITH_NUMBER = ("spray:entropies=E[:trims]", "ecmp:qps=N")
Flows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
# Sets of flows whose routes by several seeds are kept: of a network, and of that which it is compared with.
KEPT = 2
_together: ContextVar[tuple[int, ...]] = ContextVar("together", default=())
_latest: list[tuple[Network, Flows, str, dict[int, Routes]]] = []
__all__ = ["HASHED", "Routes", "drawn_together", "drawn_with", "find_routes", "is_divided", "is_hashed", "read_routing",
           "require_suited"]  # fmt: skip


@contextlib.contextmanager
def drawn_together(seeds: Iterable[int]) -> Iterator[None]:
    """Within it, what one pass over all flows can draw for several seeds is drawn when the first is asked for.

    Parameters
    ----------
    seeds : iterable of int
        Seeds whose routes are asked for one after the other.
    """
    token = _together.set(tuple(seeds))
    try:
        yield
    finally:
        _together.reset(token)


def drawn_with(seed: int) -> tuple[int, ...]:
    """Return the seeds that are drawn in one pass with a seed, itself among them."""
    seeds = _together.get()
    return seeds if seed in seeds else (seed,)


def find_routes(
    network: Network,
    src: ArrayLike,
    dst: ArrayLike,
    channel: ArrayLike = 0,
    *,
    routing: str | None = None,
    seed: int = 0,
    used: NDArray[np.integer[Any]] | None = None,
) -> Routes:
    """Find paths between pairs of nodes, shortest in the sum of the links' metrics.

    Parameters
    ----------
    network : Network
        Only its forwarding nodes are passed through.
    src, dst, channel : int[n_routes]
        Nodes, and the channel, which is part of the flow that ECMP hashes.
    routing : str, optional
        Choice among the next hops on shortest paths at each node. Default: the network's own.

        - ``ecmp``: the one that a hash of (src, dst, channel, seed, node) says; ``ecmp_polarised`` leaves the node out
          of the hash, as switches do that are all configured alike.
        - ``shortest``: the one with the lowest link number; ``spray``: all of them, equally, and by capacity where the
          network of the machines adapts (InfiniBand, see :mod:`.capacity_shares`);
          ``spray:entropies=E``: those that E values hash to, each with its part of the values, as hosts spray packets;
          with ``:trims``, hosts send at the rate of their links, and what links cut is sent again, see :mod:`.sprayed`.
        - ``ecmp:qps=N``: N queue pairs of a connection, each hashed by itself, with equal parts of every message, as
          NCCL has them over RoCE (``NCCL_IB_QPS_PER_CONNECTION``, ``NCCL_IB_SPLIT_DATA_ON_QPS``).
        - ``dmodk``, in trees: the digit of the destination's index, counted along the tree, that belongs to the tier.
        - ``dimension_order``, in grids: of the paths that finish each dimension before the next one, the shortest.
        - ``minimal``, in dragonflies: of the paths that change the group at most once, the shortest; ``valiant``: first
          over a random link out of the group into a third one, then minimal; directly within one group. In networks
          without such groups ``valiant`` goes by way of any switch.
    seed : int
        Seed of the hash, which also decides between equals in the last three.
    used : int[n], optional
        Nodes that take part, among which those of a machine divide the NICs near them. Default: all.

    Raises
    ------
    RoutingError
        If a pair has no path; the message names it.
    InputError
        If the routing is unknown, or the network does not have what it needs.

    References
    ----------
    Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees", CCIT 776,
    Technion, 2010. Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
    ToC 1987. Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, section 4.
    """
    asked = routing or network.routing
    routing, entropies, trims = read_routing(asked)
    if routing in LAID_OUT:
        require_suited(network, routing)
    src, dst = np.atleast_1d(np.asarray(src, np.int64)), np.atleast_1d(np.asarray(dst, np.int64))
    channel = np.broadcast_to(np.asarray(channel, np.int64), src.shape)
    if network.has_nics:
        from .in_parts.over_own_nics import over_own_nics

        divided = over_own_nics(
            network,
            (src, dst, channel),
            used,
            lambda a, b, way: find_routes(network, a, b, channel, routing=way or asked, seed=seed),
        )
        if divided is not None:
            return divided
    if entropies:
        from .sprayed import sprayed

        return sprayed(network, src, dst, channel, seed, entropies, trims=trims, adapts=routing == "spray")
    only = over_one_switch(network, src, dst) if routing not in BY_GROUPS else None
    if only is not None:
        return only
    if routing == "valiant":
        from .in_parts.valiant import find_valiant_routes

        return find_valiant_routes(network, src, dst, channel, seed)
    from .walk import LEAST, no_path, walk

    alike = _equal_pairs(network, src, dst) if routing == "spray" else None
    if alike is not None:  # all paths, whatever the channel: pairs that several channels join are looked at once
        src, dst, channel = src[alike[0]], dst[alike[0]], channel[alike[0]]
    if routing in HASHED and _together.get() and len(src) < LEAST:
        routes, lost = _walk_together(network, (src, dst, channel), seed, routing)
    else:
        key = flow_hash(src, dst, channel, seed) if routing in HASHED else np.zeros(len(src), np.int64)
        routes, lost = walk(network, src, dst, key, routing)
    if lost >= 0:
        raise no_path(network, int(src[lost]), int(dst[lost]), routing)
    if routing == "spray":
        from .capacity_shares import shared_by_capacity

        routes = shared_by_capacity(network, src, routes)
    if alike is None:
        return routes
    from commsim.core.pinned_routes import gathered

    first, at = gathered(routes.first, np.arange(len(routes.link), dtype=np.int32), alike[1])
    return Routes(first, routes.link[at], routes.share[at], routes.latency[alike[1]])


def _walk_together(network: Network, flows: Flows, seed: int, routing: str) -> tuple[Routes, int]:
    """Walk the few routes that a seed draws, with those of the seeds that are asked for next: their searches are one.

    Returns
    -------
    Routes, int
        Same as of :func:`commsim.routing.walk.walk`.
    """
    from .walk import walk

    src, dst, channel = flows
    for known, ends, by, drawn in _latest:
        if seed in drawn and known is network and by == routing and all(map(np.array_equal, ends, flows)):
            return drawn[seed], -1
    seeds = drawn_with(seed)
    keys = np.concatenate([flow_hash(src, dst, channel, one) for one in seeds])
    routes, lost = walk(network, np.tile(src, len(seeds)), np.tile(dst, len(seeds)), keys, routing)
    if lost >= 0:
        return routes, lost % len(src)
    found = {one: _part_of(routes, k * len(src), len(src)) for k, one in enumerate(seeds)}
    _latest[:] = [(network, flows, routing, found), *_latest[: KEPT - 1]]
    return found[seed], -1


def _part_of(routes: Routes, at: int, n: int) -> Routes:
    """Return the `n` routes from number `at` on."""
    first = routes.first[at : at + n + 1]
    links = slice(first[0], first[-1])
    return Routes(first - first[0], routes.link[links], routes.share[links], routes.latency[at : at + n])


def _equal_pairs(
    network: Network, src: NDArray[np.int64], dst: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return the first route of each pair, and the pair of each route; None where most pairs are different."""
    pair, lead, row = np.unique(src * network.n_nodes + dst, return_index=True, return_inverse=True)
    if 2 * len(pair) > len(src):
        return None
    order = np.argsort(lead)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    return lead[order], place[row]


def read_routing(text: str) -> tuple[str, int, bool]:
    """Read a routing, such as ``ecmp``, ``ecmp:qps=4`` or ``spray:entropies=128:trims``.

    Returns
    -------
    str, int, bool
        Its name, the number of entropies (or queue pairs) or 0, and whether links trim what is too much.

    Raises
    ------
    InputError
        If it is unknown.
    """
    name, colon, rest = text.partition(":")
    if name not in ROUTINGS:
        close = ["spray"] if name == "adaptive" else close_names(name, ROUTINGS)
        known = f"{', '.join(ROUTINGS)}, {', '.join(WITH_NUMBER)}"
        raise InputError(f"unknown routing {text!r}; {did_you_mean(close)}known: {known}")
    if not colon:
        return name, 0, False
    from .sprayed import MAX_ENTROPIES

    values, _, more = rest.partition(":")
    key, _, number = values.partition("=")
    whole = int(number) if is_whole(number, 5) else 0
    is_known = f"{name}:{key}" in ("spray:entropies", "ecmp:qps") and more in ("", "trims" if name == "spray" else "")
    if not is_known or not 1 <= whole <= MAX_ENTROPIES:
        forms = " and ".join(WITH_NUMBER)
        raise InputError(f"the only routings with a parameter are {forms}, 1 to {MAX_ENTROPIES}, got {text!r}")
    return name, 0 if (name, whole) == ("ecmp", 1) else whole, bool(more)


def is_hashed(routing: str) -> bool:
    """Whether the seed changes the routes."""
    return routing.partition(":")[0] in HASHED or routing.startswith("spray:")


def is_divided(routing: str) -> bool:
    """Whether parts of a message take different paths."""
    return routing.startswith("spray") or ":" in routing


def may_collide(network: Network, routing: str | None) -> bool:
    """Whether paths are drawn by hashing where there are several, so that equals do not behave alike.

    Parameters
    ----------
    network : Network
        Network of the paths.
    routing : str, optional
        Routing in place of the network's own.
    """
    is_tree = network.n_links == 2 * (network.n_nodes - 1)
    return (routing or network.routing).partition(":")[0] in HASHED and not is_tree


def require_suited(network: Network, routing: str) -> None:
    """Refuse a network that a routing cannot work on.

    Raises
    ------
    InputError
        If `routing` needs coordinates, or tiers, and the network has none.
    """
    if routing in LAID_OUT[:2] and not network.coordinates.shape[1]:
        what = "a grid" if routing == "dimension_order" else "groups"
        raise InputError(f"{network.name}: {routing} routing needs {what}, but the nodes have no coordinates")
    if routing == "dmodk":
        from .dmodk import require_tiers

        require_tiers(network)
