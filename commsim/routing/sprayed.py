"""Routes of hosts that spray packets over finitely many entropies, as shares of links.

Each of E values hashes to one of the shortest paths, and every message puts an equal part of itself on each value.
Parts meet on links by chance, so that some links get more than others, by about 1/sqrt(E) of the mean.

A sender that adapts (NSCC, DCTCP) slows down until the fullest of its links carries what it gets: flows over these
shares. Marks and trimming keep it off slower paths, so a value counts in proportion to the slowest link of its path;
where cables of the fabric are uneven, to the link that has the least room for the values that hash to it, as if all
tiers were full.
One that has credit of its receiver (RCCC, EQDS, NDP) goes on at the rate of its link; what a link cannot carry is
trimmed to headers, and sent again over some other value. That costs the sender's link, and not the fullest link of
the fabric: with `trims`, shares count what is sent again. A message then takes 1 / (delivered part of what is sent) of
its time without others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .capacity_shares import CableCapacity, PathsByLevel
from .link_rows import flow_hash
from .routes import Routes
from .walk import no_path, walk

MAX_ENTROPIES = 4096
MAX_ROUNDS, ENOUGH = 100, 1e-12  # rounds in which what links keep is found, and the change that ends them

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sprayed(
    network: Network,
    src: Ints,
    dst: Ints,
    channel: Ints,
    seed: int,
    entropies: int,
    *,
    trims: bool = False,
    adapts: bool = True,
) -> Routes:
    """Walk each value's own ECMP path, and add up what the values of a route put on each link.

    Parameters
    ----------
    network, src, dst, channel, seed
        Same as in :func:`commsim.routing.routing.find_routes`.
    entropies : int
        Values, 1 to ``MAX_ENTROPIES``.
    trims : bool
        Whether senders keep their rate, so that what a link cuts is sent again. Rates are those when all routes are
        used at once: every host divides its link equally among its routes, and so does every receiver.
    adapts : bool
        Whether a sender puts less on slower paths. Without it all values carry equal parts, as queue pairs do.

    Returns
    -------
    Routes
        With `trims` the shares of a route's first links add up to more than 1.

    Raises
    ------
    RoutingError
        If a pair has no path.
    """
    n = len(src)
    value = np.tile(np.arange(entropies), n)
    one_src, one_dst, one_channel = (np.repeat(of, entropies) for of in (src, dst, channel * MAX_ENTROPIES))
    routes, lost = walk(network, one_src, one_dst, flow_hash(one_src, one_dst, one_channel + value, seed), "ecmp")
    if lost >= 0:
        raise no_path(network, int(one_src[lost]), int(one_dst[lost]), "spray")
    length = np.diff(routes.first)
    owner = np.repeat(np.repeat(np.arange(n), entropies), length)
    depth = np.arange(len(routes.link)) - np.repeat(routes.first[:-1], length)
    if not adapts:
        part = np.full(len(routes.link), 1.0 / entropies)
    elif trims:
        part = _sent_again(network, src, dst, routes, (owner, depth), entropies)
    else:
        part = np.repeat(_parts(routes, _rooms(network, src, dst, routes, owner), entropies), length)
    key, place = np.unique(owner * network.n_links + routes.link, return_inverse=True)
    share = np.bincount(place, part, len(key)).astype(np.float64)
    nearest = np.full(len(key), 2**31)
    np.minimum.at(nearest, place, depth)
    order = np.lexsort((key % network.n_links, nearest, key // network.n_links))
    first = np.searchsorted(key // network.n_links, np.arange(n + 1))
    latency = routes.latency.reshape(n, entropies).max(axis=1, initial=0.0)
    link = (key % network.n_links)[order].astype(np.int32)
    return Routes(first.astype(np.int64), link, share[order], latency)


def _parts(routes: Routes, room: Floats, entropies: int) -> Floats:
    """Part of its message that each value carries, in proportion to the link of its path with the least room."""
    slowest = np.full(len(routes.first) - 1, np.inf)
    np.minimum.at(slowest, np.repeat(np.arange(len(slowest)), np.diff(routes.first)), room)
    weight = np.where(np.isinf(slowest), 1.0, slowest).reshape(-1, entropies)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True)).ravel()


def _rooms(network: Network, src: Ints, dst: Ints, routes: Routes, owner: Ints) -> Floats:
    """Room that each hop of each value has for it, float64[n_hops]: the bandwidth where all cables are there.

    Else the bandwidth over the part of all values that hash to the link, relative to what all links as far from the
    sender would carry without faults.
    """
    cables = CableCapacity.of(network)
    if cables is None:
        return network.bandwidth[routes.link]
    every, _ = walk(network, src, dst, np.zeros(len(src), np.int64), "spray")
    route, bandwidth = np.repeat(np.arange(len(src)), np.diff(every.first)), network.bandwidth[every.link]
    level = PathsByLevel.of(network, cables, src, every.link, route).level
    tier = np.unique(np.stack((route, level)), axis=1, return_inverse=True)[1].ravel()
    room = bandwidth / every.share / np.bincount(tier, bandwidth / cables.whole[every.link])[tier]
    key = route * network.n_links + every.link
    order = np.argsort(key)
    place = np.searchsorted(key[order], owner * network.n_links + routes.link)
    return np.asarray(room[order][place])


def _sent_again(
    network: Network, src: Ints, dst: Ints, routes: Routes, hop: tuple[Ints, Ints], entropies: int
) -> Floats:
    """Part of its message that each hop of each value carries, what is sent again included.

    Parameters
    ----------
    hop : (int64[n_hops], int64[n_hops])
        Route and depth of each hop of `routes`, which has a row per value.

    Returns
    -------
    float64[n_hops]
    """
    owner, depth = hop
    rate = _rates(network, src, dst, routes, hop, entropies)
    at_depth = [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=-1)) + 1)]
    kept = np.ones(network.n_links)
    carried = np.zeros(len(owner))
    for _ in range(MAX_ROUNDS):
        load = np.zeros(network.n_links)
        for d, now in enumerate(at_depth):
            comes = carried[now - 1] if d else rate[owner[now]] / entropies
            load += np.bincount(routes.link[now], comes, network.n_links)
            carried[now] = comes * kept[routes.link[now]]
        before, kept = kept, np.minimum(1.0, network.bandwidth / np.maximum(load, network.bandwidth))
        if np.abs(kept - before).max(initial=0.0) < ENOUGH:
            break
    last = np.repeat(np.diff(routes.first), np.diff(routes.first)) - 1 == depth
    delivered = np.bincount(owner[last], carried[last], len(src))
    return np.asarray(carried / delivered[owner])


def _rates(network: Network, src: Ints, dst: Ints, routes: Routes, hop: tuple[Ints, Ints], entropies: int) -> Floats:
    """Rate at which each route gets credit, bytes/s: what its ends' links and the fabric on the whole carry."""
    owner, depth = hop
    crosses = np.diff(routes.first).reshape(-1, entropies)[:, 0] > 0
    begins, ends = routes.first[:-1][::entropies][crosses], routes.first[1:][::entropies][crosses] - 1
    rate = np.zeros(len(src))
    n_sent, n_got = (np.bincount(of[crosses], minlength=network.n_nodes)[of[crosses]] for of in (src, dst))
    bandwidth = network.bandwidth[routes.link]
    rate[crosses] = np.minimum(bandwidth[begins] / n_sent, bandwidth[ends] / n_got)
    narrowest = 1.0
    for d in range(1, int(depth.max(initial=-1)) + 1):
        now = depth == d
        room = network.bandwidth[np.unique(routes.link[now])].sum()
        narrowest = max(narrowest, float((rate[owner[now]] / entropies).sum() / room))
    return rate / narrowest
