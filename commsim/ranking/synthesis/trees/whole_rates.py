"""A network with whole rates: what is computed with integers is exact, so that a cut of it is a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import format_bandwidth
from commsim.prediction.bounds.demand import usable

Numbers = NDArray[np.int64]

# Rates that are no small multiples of one rate are rounded down to this many parts of the largest.
PARTS = 10_080
# Of the largest rate: below this a difference is that of text and float, not of rates.
NEAR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class WholeNetwork:
    """Nodes that ranks or messages can use: ranks first, in their order, then what only forwards.

    Parameters
    ----------
    network : Network
        Network of these nodes and links.
    n_ranks : int
        Ranks.
    node : int64[n_nodes]
        Node of the network of each node here.
    src, dst : int64[n_arcs]
        Ends of arcs; at most one arc from one node to another.
    rate : int64[n_arcs]
        Whole number of units that all links of the arc carry together.
    links : tuple of tuples
        Links of each arc.
    link_rate : int64[n_links of the network]
        Units of each link, 0 where it is not used.
    unit : Fraction, bytes/s
        What 1 means.
    rounded : float
        Largest part of a link's rate that rounding took away; 0 where rates are exact.
    """

    network: Network
    n_ranks: int
    node: Numbers
    src: Numbers
    dst: Numbers
    rate: Numbers
    links: tuple[tuple[int, ...], ...]
    link_rate: Numbers
    unit: Fraction
    rounded: float = 0.0

    @property
    def n_nodes(self) -> int:
        """Ranks and forwarding nodes."""
        return len(self.node)

    def names(self, inside: NDArray[np.bool_]) -> list[str]:
        """Names of the nodes of a set."""
        return [self.network.nodes[int(i)] for i in self.node[inside]]

    def reversed(self) -> WholeNetwork:
        """Return the same with every arc turned round, for sums, whose trees are those of copies backwards."""
        return replace(self, src=self.dst, dst=self.src)

    def with_link_rates(self, link_rate: Numbers) -> WholeNetwork:
        """Return the same with other whole numbers of units on the links."""
        rate = np.array([sum(int(link_rate[i]) for i in links) for links in self.links], np.int64)
        return replace(self, rate=rate, link_rate=link_rate)


def whole_network(network: Network, ranks: NDArray[np.int32]) -> WholeNetwork:
    """Return the part of a network that schedules can use, with whole rates.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank, no two the same.

    Raises
    ------
    InputError
        If two ranks share a node, or there are fewer than 2.
    """
    if len(ranks) < 2:
        raise InputError(f"{network.name}: nothing to synthesize, it takes at least 2 ranks, got {len(ranks)}")
    if len(np.unique(ranks)) < len(ranks):
        raise InputError(f"{network.name}: two ranks on one node cannot be synthesized; place one rank on each")
    graph = usable(network, ranks, anywhere=False)
    units, unit, rounded = whole_rates(graph.bandwidth)
    n = len(ranks)
    number = np.full(network.n_nodes, -1, np.int64)
    number[ranks] = np.arange(n)
    others = np.setdiff1d(np.unique(np.concatenate((graph.src, graph.dst))), ranks)
    number[others] = n + np.arange(len(others))
    ends: dict[tuple[int, int], list[int]] = {}
    for link, a, b in zip(graph.link.tolist(), number[graph.src].tolist(), number[graph.dst].tolist(), strict=True):
        ends.setdefault((a, b), []).append(link)
    link_rate = np.zeros(network.n_links, np.int64)
    link_rate[graph.link] = units
    return WholeNetwork(
        network,
        n,
        np.concatenate((ranks.astype(np.int64), others)),
        np.array([a for a, _ in ends], np.int64),
        np.array([b for _, b in ends], np.int64),
        np.array([link_rate[links].sum() for links in ends.values()], np.int64),
        tuple(tuple(links) for links in ends.values()),
        link_rate,
        unit,
        rounded,
    )


def whole_rates(bandwidth: NDArray[np.float64]) -> tuple[Numbers, Fraction, float]:
    """Write rates as whole multiples of one rate.

    Parameters
    ----------
    bandwidth : float64[n], bytes/s
        Rates; each is taken for the fraction of the largest with a small denominator that it is next to.

    Returns
    -------
    units : int64[n]
        Whole numbers, as small as possible.
    unit : Fraction, bytes/s
        What 1 means.
    rounded : float
        Largest part of a rate that was rounded away, without a common measure; 0 otherwise.
    """
    if not len(bandwidth):
        return np.empty(0, np.int64), Fraction(1), 0.0
    largest = Fraction(float(bandwidth.max()))
    values, which = np.unique(bandwidth, return_inverse=True)
    parts = [(Fraction(float(v)) / largest).limit_denominator(1000) for v in values]
    common = math.lcm(*(part.denominator for part in parts))
    apart = max(abs(float(part * largest) / float(v) - 1) for part, v in zip(parts, values, strict=True))
    rounded = 0.0
    if common > PARTS * 100 or apart > NEAR:
        # never 0: a very slow link would be lost, and with it perhaps the connection
        parts = [max(Fraction(1, PARTS), Fraction(int(Fraction(float(v)) / largest * PARTS), PARTS)) for v in values]
        common = PARTS
        if float(values[0]) < float(largest) / PARTS:
            raise InputError(
                f"rates from {format_bandwidth(float(values[0]))} to {format_bandwidth(float(largest))} have no common "
                f"measure of at least 1/{PARTS} of the largest; leave the slowest links out"
            )
        rounded = max(1 - float(part * largest) / float(v) for part, v in zip(parts, values, strict=True))
    whole = [int(part * common) for part in parts]
    shared = math.gcd(*whole)
    units = np.array([w // shared for w in whole], np.int64)
    return units[which], largest * shared / common, rounded


def unbalanced_switch(whole: WholeNetwork) -> tuple[str, int, int] | None:
    """Name a forwarding node whose rates in and out differ, with the two sums in units; None without one.

    Trees attain the bound where every such node has as much in as out: only then can it be split off.
    """
    out = np.bincount(whole.src, whole.rate, whole.n_nodes).astype(np.int64)
    into = np.bincount(whole.dst, whole.rate, whole.n_nodes).astype(np.int64)
    bad = whole.n_ranks + np.flatnonzero(out[whole.n_ranks :] != into[whole.n_ranks :])
    if not bad.size:
        return None
    first = int(bad[0])
    return whole.network.nodes[int(whole.node[first])], int(into[first]), int(out[first])


def alike(whole: WholeNetwork) -> tuple[Numbers, Numbers]:
    """Class of each node, and of each arc: those of one class look alike, by their rates and by what they lead to.

    Colours are refined until they are stable. Nodes that a symmetry maps to each other have one class; the reverse need
    not hold, so that what is concluded from classes is to be checked.

    Returns
    -------
    int64[n_nodes], int64[n_arcs]

    References
    ----------
    Weisfeiler and Leman, "The reduction of a graph to canonical form", 1968.
    """
    colour = (np.arange(whole.n_nodes) >= whole.n_ranks).astype(np.int64)
    ends = np.concatenate((whole.src, whole.dst)), np.concatenate((whole.dst, whole.src))
    rate = np.concatenate((whole.rate, -whole.rate))  # what leaves, and what enters
    while True:
        seen: list[list[tuple[int, int]]] = [[] for _ in range(whole.n_nodes)]
        for a, units, other in zip(ends[0].tolist(), rate.tolist(), colour[ends[1]].tolist(), strict=True):
            seen[a].append((units, other))
        looks = [(c, *sorted(near)) for c, near in zip(colour.tolist(), seen, strict=True)]
        number = {look: i for i, look in enumerate(dict.fromkeys(looks))}
        finer = np.array([number[look] for look in looks], np.int64)
        if len(number) == len(np.unique(colour)):
            break
        colour = finer
    arcs = np.stack((whole.rate, colour[whole.src], colour[whole.dst]), axis=1)
    return colour, np.unique(arcs, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
