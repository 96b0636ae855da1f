"""Switches with more in than out, or less, trimmed to as much in as out, so that they can be split off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .max_flow_kernel import max_flow
from .optimum import graph_of
from .whole_rates import Numbers, WholeNetwork

Floats = NDArray[np.float64]
# Trimmed rates are whole multiples of this part of a unit: it has most small denominators.
FINE = 5040
# A set of nodes, and whether what is summed has to enter it, or what is copied has to leave it.
_Cut = tuple[bytes, bool]
_SLACK = 1e-7


def trimmed(whole: WholeNetwork, weight: Numbers, ways: Sequence[bool]) -> WholeNetwork:
    """Lower rates until every switch has as much in as out, so that trees lose as little as possible.

    The largest x such that, for every set S of nodes that misses a rank, x times the weight in S fits what leaves it;
    of the solutions one with as much capacity as possible. Cuts are added as maximum flows find them broken.

    Parameters
    ----------
    whole : WholeNetwork
        Network of any rates.
    weight : int64[n_ranks]
        What each rank has for all others.
    ways : sequence of bool
        False for copies; True for sums, in the reversed network; both for both.

    Returns
    -------
    WholeNetwork
        In units of 1/``FINE`` of the given one's, balanced at its switches.

    Raises
    ------
    InputError
        If some rank cannot be reached.
    """
    cuts: dict[_Cut, None] = {}
    for rank in range(whole.n_ranks):
        for up in ways:
            cuts[(np.arange(whole.n_nodes) != rank).tobytes(), up] = None
    while True:
        x, rate = _solve(whole, weight, list(cuts))
        if x <= 0:
            raise InputError(f"{whole.network.name}: no rank is reached once switches have as much in as out")
        new = [cut for up in ways for cut in _broken(whole, weight, x, rate, up) if cut not in cuts]
        if not new:
            return _rounded_down(whole, rate)
        cuts.update(dict.fromkeys(new))


def _solve(whole: WholeNetwork, weight: Numbers, cuts: list[_Cut]) -> tuple[float, Floats]:
    """Return x and the rates for some cuts."""
    from scipy.optimize import linprog

    m = len(whole.src)
    rows = np.zeros((len(cuts), 1 + m))
    for row, (side, up) in zip(rows, cuts, strict=True):
        inside = np.frombuffer(side, np.bool_)
        src, dst = (whole.dst, whole.src) if up else (whole.src, whole.dst)
        row[0] = weight[inside[: whole.n_ranks]].sum()
        row[1:] = -1.0 * (inside[src] & ~inside[dst])
    capacity = 1e-4 / max(1, int(whole.rate.sum()))  # counts less than any x
    cost = np.r_[-1.0 / int(whole.rate.max()), np.full(m, -capacity)]
    balance = _balance(whole)
    bounds = [(0, None), *((0, r) for r in whole.rate.tolist())]
    equal = np.column_stack((np.zeros(len(balance)), balance))
    solution = linprog(cost, rows, np.zeros(len(rows)), equal, np.zeros(len(balance)), bounds)
    if not solution.success:
        raise InputError(f"{whole.network.name}: switches cannot be trimmed: {solution.message}")
    return float(solution.x[0]), np.asarray(solution.x[1:])


def _balance(whole: WholeNetwork) -> Floats:
    """Return rows of 1 for what enters each switch, and -1 for what leaves it."""
    switches = np.arange(whole.n_ranks, whole.n_nodes)[:, np.newaxis]
    return np.asarray((whole.dst == switches).astype(np.float64) - (whole.src == switches))


def _broken(whole: WholeNetwork, weight: Numbers, x: float, rate: Floats, up: bool) -> Iterator[_Cut]:
    """Cuts that a solution breaks."""
    unit = x * float(weight.sum()) / 2**30
    half = whole.reversed() if up else whole
    half = replace(half, rate=np.floor(np.maximum(rate, 0.0) / unit).astype(np.int64))
    own = np.floor(x * weight / unit).astype(np.int64)
    arcs, search = graph_of(half, own)
    wanted = int(own.sum() * (1 - _SLACK))
    for rank in range(whole.n_ranks):
        if max_flow(arcs, search, whole.n_nodes, rank, wanted) < wanted:
            yield (search.level[: whole.n_nodes] >= 0).tobytes(), up


def _rounded_down(whole: WholeNetwork, rate: Floats) -> WholeNetwork:
    """Round down to whole multiples of a small unit; flows with whole bounds have whole vertices."""
    from scipy.optimize import linprog

    most = np.floor(rate * FINE + 1e-4)
    balance = _balance(whole)
    solution = linprog(-np.ones(len(most)), A_eq=balance, b_eq=np.zeros(len(balance)), bounds=[(0, r) for r in most])
    left = np.rint(solution.x).astype(np.int64)
    link_rate = np.zeros(len(whole.link_rate), np.int64)
    for units, links in zip(left.tolist(), whole.links, strict=True):
        for link in links:  # parallel links are filled one after the other
            link_rate[link] = min(units, int(whole.link_rate[link]) * FINE)
            units -= int(link_rate[link])
    return replace(whole.with_link_rates(link_rate), unit=whole.unit / FINE)
