"""The least time per byte that copies to all ranks need, as an exact fraction, with the cut that proves it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .max_flow_kernel import Arcs, PathSearch, max_flow, new_graph, reaches_all, widen
from .whole_rates import Numbers, WholeNetwork, unbalanced_switch


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The worst cut, and how many trees attain it.

    Parameters
    ----------
    per_unit : Fraction
        Largest, over sets of nodes that miss a rank, of the weight of the ranks inside over the units that leave it.
    inside : bool[n_nodes]
        Such a set.
    room : WholeNetwork
        The network, whose rates are the unit trees that each link can carry.
    roots : int64[n_ranks]
        Unit trees that each rank is the root of, in proportion to its weight.
    """

    per_unit: Fraction
    inside: NDArray[np.bool_]
    room: WholeNetwork
    roots: Numbers


def optimum(whole: WholeNetwork, weight: Numbers) -> Optimum:
    """Find the worst cut: Newton's method on maximum flows, in integers.

    Let p/q be a ratio that is known to be needed. Give every arc p times its rate, and every rank q times its weight
    from a source. Where less than q times all weights reaches some rank, the minimum cut has a larger ratio. With
    ``g = gcd(q, all rates)``, p/g times the rates and q/g times the weights are whole: so many unit trees fit.

    Parameters
    ----------
    whole : WholeNetwork
        Rates in units.
    weight : int64[n_ranks]
        How much each rank has for all others, relative to the others.

    Raises
    ------
    InputError
        If a rank cannot be reached.

    References
    ----------
    Edmonds, "Edge-disjoint branchings", 1973. Dinkelbach, "On nonlinear fractional programming", Management Science
    1967. Zhao et al., "ForestColl: throughput-optimal collective communications on heterogeneous network fabrics",
    2024, section 4.
    """
    n, total = whole.n_ranks, int(weight.sum())
    into = np.bincount(whole.dst, whole.rate, whole.n_nodes).astype(np.int64)
    best, inside = Fraction(0), np.zeros(whole.n_nodes, np.bool_)
    for rank in range(n):
        needed = total - int(weight[rank])
        if needed and not into[rank]:
            raise _unreachable(whole, rank)
        ratio = Fraction(needed, int(into[rank]) or 1)
        if ratio > best:
            best, inside = ratio, np.arange(whole.n_nodes) != rank
    while (cut := _worse_cut(whole, weight, best)) is not None:
        best, inside = cut
    p, q = best.numerator, best.denominator
    shared = math.gcd(q, *(whole.link_rate * p).tolist())
    return Optimum(best, inside, whole.with_link_rates(whole.link_rate * p // shared), weight * (q // shared))


def _worse_cut(whole: WholeNetwork, weight: Numbers, ratio: Fraction) -> tuple[Fraction, NDArray[np.bool_]] | None:
    """Return the worst of the cuts that maximum flows to each rank find to need more than a ratio."""
    source, wanted = whole.n_nodes, ratio.denominator * int(weight.sum())
    scaled = whole.with_link_rates(whole.link_rate * ratio.numerator)
    arcs, search = graph_of(scaled, weight * ratio.denominator)
    worst = None
    for rank in range(whole.n_ranks):
        if max_flow(arcs, search, source, rank, wanted) == wanted:
            continue
        side = search.level[:source] >= 0
        leaves = int(whole.rate[side[whole.src] & ~side[whole.dst]].sum())
        if not leaves:
            raise _unreachable(whole, rank)
        now = Fraction(int(weight[side[: whole.n_ranks]].sum()), leaves)
        if worst is None or now > worst[0]:
            worst = now, side
    return worst


def graph_of(whole: WholeNetwork, roots: Numbers, spare: int = 0) -> tuple[Arcs, PathSearch]:
    """Return a graph of the arcs and a source, number ``n_nodes``, with an arc to every rank.

    Parameters
    ----------
    whole : WholeNetwork
        Network whose rates are the capacities.
    roots : int64[n_ranks]
        Weights of the source's arcs.
    spare : int
        Further arcs that may be added, pairs counted once.
    """
    n = whole.n_nodes
    arcs, search = new_graph(n + 1, 2 * (len(whole.src) + whole.n_ranks + spare))
    for a, b, room in zip(whole.src.tolist(), whole.dst.tolist(), whole.rate.tolist(), strict=True):
        widen(arcs, a, b, room)
    for rank, room in enumerate(roots.tolist()):
        widen(arcs, n, rank, room)
    return arcs, search


def _unreachable(whole: WholeNetwork, rank: int) -> InputError:
    name = whole.network.nodes[int(whole.node[rank])]
    return InputError(f"{whole.network.name}: {name} cannot be reached from every other rank; nothing is synthesized")


def multiplied(best: Optimum, times: int) -> Optimum:
    """Return the same optimum with so many times the trees: finer shares, which switches can be split into evenly."""
    return replace(best, room=best.room.with_link_rates(best.room.link_rate * times), roots=best.roots * times)


def with_few_trees(whole: WholeNetwork, weight: Numbers, best: Optimum, n_trees: int) -> tuple[Optimum, Fraction]:
    """Return the best that so many unit trees per unit of weight can do.

    An arc of b units carries ``floor(U b)`` unit trees when each takes 1/U of its time; the least U is found by
    bisection over those at which some floor changes. With b' the slowest arc, it is at most 1/b' above the optimum.

    Parameters
    ----------
    whole : WholeNetwork
        Rates in units.
    weight : int64[n_ranks]
        Same as in :func:`optimum`.
    best : Optimum
        What any number of trees can do.
    n_trees : int
        Number of trees per unit of weight.

    Returns
    -------
    Optimum
        With `per_unit` and `inside` of the optimum itself.
    Fraction
        How many times the optimal time these trees take.
    """
    least, roots = best.per_unit * n_trees, weight * n_trees
    rates = sorted({int(rate) for rate in whole.link_rate[whole.link_rate > 0]})
    changes = {least} | {
        Fraction(j, rate)
        for rate in rates
        for j in range(-int(-least * rate // 1), int(least * rate + 2 + rate // rates[0]))
    }
    tried = sorted(changes)
    low, high = 0, len(tried) - 1
    while low < high:
        middle = (low + high) // 2
        if _fits(_floored(whole, tried[middle]), roots):
            high = middle
        else:
            low = middle + 1
    return Optimum(best.per_unit, best.inside, _floored(whole, tried[low]), roots), tried[low] / least


def _floored(whole: WholeNetwork, times: Fraction) -> WholeNetwork:
    """Return whole multiples of the rates of all links, rounded down."""
    floors = [int(rate) * times.numerator // times.denominator for rate in whole.link_rate.tolist()]
    return whole.with_link_rates(np.array(floors, np.int64))


def _fits(whole: WholeNetwork, roots: Numbers) -> bool:
    """Whether all unit trees of all roots fit the rates as they are, and switches are balanced."""
    if unbalanced_switch(whole) is not None:
        return False
    arcs, search = graph_of(whole, roots)
    return int(reaches_all(arcs, search, whole.n_nodes, whole.n_ranks, int(roots.sum()))) < 0
