"""Jellyfish: switches cabled to each other at random, all with the same number of cables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .uplinks import by_tier

_ROUNDS = 20  # of swaps that each touch most cables: by then nothing is left of the regular start


@topology(sized_by=("hosts_per_switch", "n_switches"))
def jellyfish(
    n_switches: int,
    degree: int,
    hosts_per_switch: int,
    seed: int = 0,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    uplink_bandwidth: Bandwidth | None = None,
    latency: Seconds = LINK_LATENCY,
    uplink_latency: Seconds | None = None,
) -> Network:
    """Jellyfish: a random regular graph of switches, connected, without parallel cables.

    Parameters
    ----------
    n_switches : int
        Switches, at least 1.
    degree : int
        Cables from each switch to others, below `n_switches`; `n_switches` or `degree` is even. Above 1, except that
        one or two switches may have fewer.
    hosts_per_switch : int
        Number of hosts of a switch, at least 1; they are numbered consecutively.
    seed : int
        Seed of the cables; another seed gives another network.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and switch, one way.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each link between switches; by default that of the hosts.
    latency : float, s
        Latency of each link.
    uplink_latency : float, s, optional
        Latency of each cable between switches; by default that of the hosts' links.

    Returns
    -------
    Network
        Hosts ``h0 …`` and ``switch0 …``; ``n_switches (2 hosts_per_switch + degree)`` links.

    Raises
    ------
    InputError
        If no connected network has these counts, `seed` is negative, or the network would be too large.

    References
    ----------
    Singla, Hong, Popa and Godfrey, "Jellyfish: networking data centers randomly", NSDI 2012, section 3.
    """
    require_at_least("jellyfish", 1, n_switches=n_switches, hosts_per_switch=hosts_per_switch)
    require_at_least("jellyfish", 0, degree=degree, seed=seed)
    n_hosts, links = n_switches * hosts_per_switch, n_switches * (2 * hosts_per_switch + degree)
    require_buildable("jellyfish", n_hosts + n_switches, links)
    if degree >= n_switches or n_switches * degree % 2 or degree < min(2, n_switches - 1):
        wanted = "a degree from 2 to n_switches - 1, and one of the two even"
        raise InputError(f"jellyfish needs {wanted}, got n_switches={n_switches}, degree={degree}")
    cable = _random_regular(n_switches, degree, np.random.default_rng(seed))
    host = np.arange(n_hosts)
    src, dst = both_ways(
        np.concatenate((host, n_hosts + cable[0])),
        np.concatenate((n_hosts + host // hosts_per_switch, n_hosts + cable[1])),
    )
    between = bandwidth if uplink_bandwidth is None else uplink_bandwidth
    rate = np.tile(np.repeat([bandwidth, between], [n_hosts, cable.shape[1]]), 2)
    delay = by_tier([n_hosts, cable.shape[1]], latency, uplink_latency)
    names = node_names(h=n_hosts, switch=n_switches)
    return Network("jellyfish", names, kinds(n_hosts, n_switches), src, dst, rate, delay)


def _random_regular(n: int, degree: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Cables of a random connected graph: start from neighbours on a circle, and swap ends until nothing is left of it.

    Returns
    -------
    int64[2, n degree / 2]
    """
    node = rng.permutation(n)
    steps = [(node, np.roll(node, -k)) for k in range(1, degree // 2 + 1)]
    if degree % 2:
        steps.append((node[: n // 2], node[n // 2 :]))
    cable = np.concatenate(steps, axis=1) if steps else np.empty((2, 0), np.int64)
    rounds = 0
    # A connected graph of degree 2 is one circle, and the permutation has already made it random.
    while degree > 2 and (rounds < _ROUNDS or not _is_connected(n, cable)):
        cable = _swap(n, cable, rng)
        rounds += 1
    return cable


def _swap(n: int, cable: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Make of pairs of cables a-b and c-d the cables a-d and c-b, wherever these are new and join two switches."""
    cable = cable[:, rng.permutation(cable.shape[1])]
    turned = rng.random(cable.shape[1]) < 0.5
    cable[:, turned] = cable[::-1, turned]
    pairs = cable.shape[1] // 2
    (a, b), (c, d) = cable[:, :pairs], cable[:, pairs : 2 * pairs]
    wanted = np.concatenate((_key(n, a, d), _key(n, c, b)))
    good = np.flatnonzero(_is_single(n, wanted, _key(n, *cable)).reshape(2, pairs).all(axis=0) & (a != d) & (c != b))
    cable[1, good], cable[1, pairs + good] = d[good], b[good]
    return cable


def _is_single(n: int, wanted: NDArray[np.int64], have: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Find which wanted cables are wanted once and not there."""
    every = np.concatenate((wanted, have))
    if n * n <= 4 * every.size:  # many cables: counting them takes less than sorting
        return np.equal(np.bincount(every, minlength=n * n)[wanted], 1)
    _, place, count = np.unique(every, return_inverse=True, return_counts=True)
    return np.equal(count[place[: wanted.size]], 1)


def _key(n: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.minimum(a, b) * n + np.maximum(a, b)


def _is_connected(n: int, cable: NDArray[np.int64]) -> bool:
    """Whether every switch gets the smallest label, passed on along the cables."""
    label = np.arange(n)
    while True:
        least = label.copy()
        for a, b in (cable, cable[::-1]):
            np.minimum.at(least, a, label[b])
        if np.array_equal(least, label):
            return bool((label == 0).all())
        label = np.minimum(least, least[least])
