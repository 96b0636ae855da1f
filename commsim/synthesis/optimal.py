"""The best that a small network allows, by linear programs: all-to-all exactly, all-reduce over trees.

Both need SciPy, the extra ``opt``. Paths are free here: a bound, not what a routing makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.network import Network

MAX_VARIABLES = 60_000
Rows = list[tuple[int, int, float]]


def all_to_all_rate(network: Network) -> float | None:
    """Highest algorithm bandwidth of all-to-all: the maximum concurrent flow between all pairs, times their number.

    With ``f[s, e]`` the bytes from endpoint s on link e, for a vector of one byte per rank of which 1/p goes to each:
    minimise T such that every endpoint absorbs 1/p of what each other sends, everything else passes on what it gets,
    and no link carries more than T times its bandwidth.

    Returns
    -------
    float or None
        Bytes/s of S = the vector of one rank over T; None without SciPy or for a network too large for the program;
        infinite for one endpoint.

    Raises
    ------
    InputError
        If some endpoint cannot reach another one.

    References
    ----------
    Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990.
    """
    p = len(network.endpoints)
    if p < 2:
        return float("inf")
    if p * network.n_links > MAX_VARIABLES:
        return None
    program = _Program(network, n_extra=0)
    for s in range(p):
        program.deliver(s, {v: [(1.0 / p, -1)] for v in range(p) if v != s})
    return program.rate()


def tree_all_reduce_rate(network: Network) -> float | None:
    """Highest algorithm bandwidth of an all-reduce that reduces and broadcasts along trees, without switches that add.

    Every part of the vector is reduced along some tree of endpoints to a root and broadcast along another from it;
    ring, tree, halving-doubling and hierarchical schedules are of this kind. Let ``x[r]`` be the part with root r, and
    ``b[u, v]``, ``c[u, v]`` what is sent from endpoint u to v to broadcast and to reduce. Trees that carry all of it
    exist exactly if ``b`` (and ``c`` reversed) lets 1 flow to every v from a source that is joined to each r by x[r]
    (Edmonds' branching theorem, by max-flow min-cut). Messages are routed freely, as in all-to-all.

    Returns
    -------
    float or None
        As for :func:`all_to_all_rate`.

    Raises
    ------
    InputError
        If some endpoint cannot reach another one.

    References
    ----------
    Edmonds, "Edge-disjoint branchings", 1973. Zhao et al., "ForestColl: throughput-optimal collective communications
    on heterogeneous network fabrics", 2024, for the same idea with switches split off.
    """
    p = len(network.endpoints)
    if p < 2:
        return float("inf")
    arcs = [(u, v) for u in range(p) for v in range(p) if u != v]
    if p * network.n_links + 2 * (p + 1) * len(arcs) > MAX_VARIABLES:
        return None
    n_arcs = len(arcs)
    program = _Program(network, n_extra=p + 2 * n_arcs * (p + 1) + 2 * p * p)
    root = program.extra
    first = (
        root + p
    )  # of each direction: what is sent on every arc; then per sink, its flow on arcs and from the source
    block = n_arcs * (p + 1) + p * p
    for s in range(p):
        sent = [(first + a, first + block + a) for a, (u, _) in enumerate(arcs) if u == s]
        heads = [v for u, v in arcs if u == s]
        program.deliver(s, {v: [(0.0, column) for column in columns] for v, columns in zip(heads, sent, strict=True)})
    program.equal([(root + r, 1.0) for r in range(p)], 1.0)
    for direction in range(2):
        base = first + direction * block
        for sink in range(p):
            flow, source = base + n_arcs * (1 + sink), base + n_arcs * (p + 1) + p * sink
            for a in range(n_arcs):
                program.at_most([(flow + a, 1.0), (base + a, -1.0)], 0.0)
            for v in range(p):
                program.at_most([(source + v, 1.0), (root + v, -1.0)], 0.0)
                out = [(flow + a, -1.0) for a, arc in enumerate(arcs) if arc[direction] == v]
                into = [(flow + a, 1.0) for a, arc in enumerate(arcs) if arc[1 - direction] == v]
                program.equal([*out, *into, (source + v, 1.0)], 1.0 if v == sink else 0.0)
    return program.rate()


class _Program:
    """A linear program: least T, flows of each endpoint on the links, and further columns."""

    def __init__(self, network: Network, n_extra: int) -> None:
        self._network = network
        self._endpoint = np.full(network.n_nodes, -1)
        self._endpoint[network.endpoints] = np.arange(len(network.endpoints))
        p, m = len(network.endpoints), network.n_links
        self.extra = 1 + p * m
        self._n = self.extra + n_extra
        self._rows: dict[str, Rows] = {"equal": [], "most": []}
        self._right: dict[str, list[float]] = {"equal": [], "most": []}
        for link in range(m):  # what all endpoints send over a link
            used = [(1 + s * m + link, 1.0) for s in range(p)]
            self.at_most([*used, (0, -float(network.bandwidth[link]) / _unit(network))], 0.0)

    def equal(self, terms: list[tuple[int, float]], value: float) -> None:
        self._add("equal", terms, value)

    def at_most(self, terms: list[tuple[int, float]], value: float) -> None:
        self._add("most", terms, value)

    def deliver(self, s: int, demand: dict[int, list[tuple[float, int]]]) -> None:
        """Let endpoint s send; `demand` has by receiver (constant, -1), or (0, column) for the columns to add up."""
        network = self._network
        base = 1 + s * network.n_links
        for node in range(network.n_nodes):
            at = int(self._endpoint[node])
            terms = [(base + int(e), -1.0) for e in np.flatnonzero(network.src == node)]
            if at != s and not network.forwards[node]:  # others' bytes do not pass
                for column, _ in terms:
                    self.equal([(column, 1.0)], 0.0)
                terms = []
            if at == s:
                continue
            terms += [(base + int(e), 1.0) for e in np.flatnonzero(network.dst == node)]
            wanted = demand.get(at, []) if at >= 0 else []
            terms += [(column, -1.0) for _, column in wanted if column >= 0]
            self.equal(terms, sum(constant for constant, column in wanted if column < 0))

    def rate(self) -> float | None:
        """Solve it, and return 1 over the least T, in bytes/s."""
        try:
            from scipy.optimize import linprog
        except ImportError:
            return None
        cost = np.zeros(self._n)
        cost[0] = 1.0
        result = linprog(cost, *self._matrix("most"), *self._matrix("equal"), bounds=(0, None), method="highs")
        if not result.success:
            raise InputError(f"{self._network.name}: some endpoint cannot reach another one, so there is no bound")
        return _unit(self._network) / float(result.x[0])

    def _add(self, kind: str, terms: list[tuple[int, float]], value: float) -> None:
        row = len(self._right[kind])
        self._rows[kind] += [(row, column, factor) for column, factor in terms]
        self._right[kind].append(value)

    def _matrix(self, kind: str) -> tuple[Any, NDArray[np.float64]]:
        from scipy.sparse import coo_array

        row, column, factor = (np.array(c) for c in zip(*self._rows[kind], strict=True))
        right = np.array(self._right[kind])
        return coo_array((factor, (row, column)), shape=(len(right), self._n)).tocsr(), right


def _unit(network: Network) -> float:
    """Rate that the program counts as 1, so that its numbers are near 1."""
    return float(network.bandwidth.max())
