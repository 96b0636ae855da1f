"""Linear programs made of flows: what is sent is balanced at nodes, and no link carries more than its share of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.prediction.bounds.demand import UsableLinks

# Columns from which on the interior-point method, which ends in a vertex too, takes a third of the simplex's time.
LARGE = 4000
# By which the solver may be off.
ROUNDING = 1e-6
Floats = NDArray[np.float64]


@dataclass
class FlowProgram:
    """Rows of a linear program: least of column 0, all columns at least 0."""

    n: int = 1
    equal: list[tuple[Any, Any, Floats]] = field(default_factory=list)
    most: list[tuple[Any, Any, Floats]] = field(default_factory=list)

    def columns(self, count: int) -> NDArray[np.int64]:
        """Return the numbers of new columns."""
        self.n += count
        return np.arange(self.n - count, self.n)

    def solve(self, name: str, rounding: float = ROUNDING) -> float:
        """Return the least of column 0, less what the solver may be off."""
        from scipy.optimize import linprog

        cost = np.zeros(self.n)
        cost[0] = 1.0
        before = EXPECTED.part
        EXPECTED.part = before or f"solving a linear program of {self.n} variables"
        method = "highs-ds" if self.n < LARGE else "highs-ipm"
        result = linprog(cost, *self._matrix(self.most), *self._matrix(self.equal), bounds=(0, None), method=method)
        EXPECTED.part = before
        if not result.success:
            raise InputError(f"{name}: a rank cannot reach another one, so no bound exists")
        return float(result.x[0]) * (1 - rounding)

    def _matrix(self, parts: list[tuple[Any, Any, Floats]]) -> tuple[Any, Floats]:
        """Stack (matrix, its columns, right side)."""
        from scipy.sparse import coo_array

        row, column, value, below = [], [], [], 0
        for matrix, columns, right in parts:
            part = matrix.tocoo()
            row.append(part.row + below)
            column.append(columns[part.col])
            value.append(part.data)
            below += len(right)
        entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
        return coo_array(entries, shape=(below, self.n)).tocsr(), np.concatenate([right for _, _, right in parts])


def send(
    program: FlowProgram,
    graph: UsableLinks,
    node: int,
    variable: list[tuple[int, int]],
    fixed: Floats,
    rank: int,
    back: bool = False,
) -> NDArray[np.int64]:
    """Columns for what one rank puts on the links, such that every other gets a fixed amount and some columns.

    Parameters
    ----------
    program : FlowProgram
        Gets the columns and rows.
    graph : UsableLinks
        Graph of the network.
    node : int
        Node of the rank.
    variable : list of (int, int)
        Ranks that get what a column says, and the column.
    fixed : float64[n_ranks]
        What each rank gets besides.
    rank : int
        The sender.
    back : bool
        Take the links in the other direction.
    """
    from scipy.sparse import coo_array, hstack

    flows = program.columns(len(graph.link))
    right = np.zeros(graph.n_nodes)
    right[graph.ranks] = fixed
    right[graph.ranks[rank]] = 0.0
    keep = np.flatnonzero(np.arange(graph.n_nodes) != node)
    balance = incidence(graph.src, graph.dst, graph.n_nodes, back)
    at = graph.ranks[[v for v, _ in variable]] if variable else np.empty(0, np.int64)
    taken = coo_array((-np.ones(len(at)), (at, np.arange(len(at)))), shape=(graph.n_nodes, len(at)))
    columns = np.concatenate((flows, np.array([c for _, c in variable], np.int64)))
    program.equal.append((hstack([balance, taken]).tocsr()[keep], columns, right[keep]))
    return flows


def flow(
    program: FlowProgram, arcs: NDArray[np.int64], capacity: NDArray[np.int64], sources: Floats, sink: int
) -> None:
    """Require that the arcs let everything at the sources flow to the sink, at most the columns `capacity` each.

    Parameters
    ----------
    program : FlowProgram
        Gets the columns and rows.
    arcs : int64[n_arcs, 2]
        Source and destination of each arc, as ranks.
    capacity : int64[n_arcs]
        Columns.
    sources : float64[n_ranks]
        What each rank has.
    sink : int
        Rank that gets it.
    """
    from scipy.sparse import eye_array, hstack

    p = len(sources)
    moved = program.columns(len(arcs))
    one = eye_array(len(arcs))
    program.most.append((hstack([one, -one]), np.concatenate((moved, capacity)), np.zeros(len(arcs))))
    keep = np.flatnonzero(np.arange(p) != sink)
    program.equal.append((incidence(arcs[:, 0], arcs[:, 1], p).tocsr()[keep], moved, -sources[keep]))


def on_links(program: FlowProgram, graph: UsableLinks, carried: list[NDArray[np.int64]]) -> FlowProgram:
    """Let no link carry more than T times its bandwidth."""
    from scipy.sparse import coo_array, eye_array, hstack

    m = len(graph.link)
    rate = coo_array((-graph.bandwidth / unit(graph), (np.arange(m), np.zeros(m, np.int64))), shape=(m, 1))
    program.most.append((
        hstack([rate, *(eye_array(m) for _ in carried)]), np.concatenate((np.array([0]), *carried)), np.zeros(m)
    ))  # fmt: skip
    return program


def incidence(src: Any, dst: Any, n: int, back: bool = False) -> Any:
    """By node and arc: 1 where it ends, -1 where it begins."""
    from scipy.sparse import coo_array

    if back:
        src, dst = dst, src
    m, arc = len(src), np.arange(len(src))
    ends = (np.concatenate((dst, src)), np.concatenate((arc, arc)))
    return coo_array((np.concatenate((np.ones(m), -np.ones(m))), ends), shape=(n, m))


def unit(graph: UsableLinks) -> float:
    """Rate that the program counts as 1, so that its numbers are near 1."""
    return float(graph.bandwidth.max(initial=0.0)) or 1.0
