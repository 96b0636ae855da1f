"""All-reduce at its best: how much each rank sums and sends on, and how links share their time, by a linear program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .max_flow_kernel import max_flow
from .optimum import graph_of, optimum
from .whole_rates import Numbers, WholeNetwork, alike

Floats = NDArray[np.float64]
Side = NDArray[np.bool_]

# Float capacities are this many units when a cut is looked for, and a cut is missed by less than this part of it.
_UNITS, _SLACK = 2**30, 1e-7
# Common denominators of a solution that are tried; vertices of these programs have small ones.
MAX_DENOMINATOR = 2_000
# Part of the optimum that is given up where a solution has no small denominator.
GIVEN_UP = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class FreeRoots:
    """A plan of trees up and down that together take no more than each link has.

    Parameters
    ----------
    rate : Fraction
        Units that are reduced per unit of time: all roots together.
    bound : Fraction
        What no plan exceeds, by the program's dual solution in exact numbers.
    cuts : tuple of bool[n_nodes]
        Sets of nodes that the bound adds up, the heaviest first.
    down, up : WholeNetwork
        Unit trees that each link can carry; `up` is turned round.
    roots : int64[n_ranks]
        Unit trees of each rank in both.
    per_tree : Fraction
        Units that one unit tree is.
    """

    rate: Fraction
    bound: Fraction
    cuts: tuple[Side, ...]
    down: WholeNetwork
    up: WholeNetwork
    roots: Numbers
    per_tree: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    """Values of a program, and of its dual."""

    value: float
    x: Floats
    down: Floats
    duals: Floats
    balance: Floats


class CutProgram:
    """The program, by its cuts as far as they are needed.

    Largest sum of ``x[v]`` such that, for every set S of nodes that misses a rank, ``x(S)`` fits what leaves S for
    copies (``B``) and what enters S for sums (``b - B``); by Edmonds' theorem trees then exist. Where switches only
    forward, as many copies enter as leave each; without that line the program is a bound for switches that add too.
    Cuts that a solution breaks are found by maximum flows.

    Parameters
    ----------
    whole : WholeNetwork
        Rates in units.
    adding : bool
        Whether switches add and copy.
    only : int, optional
        The only rank that is a root.
    """

    def __init__(self, whole: WholeNetwork, adding: bool = False, only: int | None = None) -> None:
        self.whole, self.adding, self.only = whole, adding, only
        self.n, self.m = whole.n_ranks, len(whole.src)
        self.cuts: dict[tuple[bytes, bool], None] = {}
        for rank in range(self.n):
            others = np.arange(whole.n_nodes) != rank
            for up in (False, True):
                self.cuts[others.tobytes(), up] = None
                self.cuts[(~others).tobytes(), up] = None

    def solve(self, total: float | None = None) -> _Solution:
        """Return the largest sum; or, given the sum, the solution whose largest ``x`` is least."""
        while True:
            solution = self._solve_once(total)
            new = [cut for cut in self._broken(solution) if cut not in self.cuts]
            if not new:
                return solution
            self.cuts.update(dict.fromkeys(new))

    def sides(self) -> list[tuple[Side, bool]]:
        """Return the sets of nodes, and whether what is summed has to enter them."""
        return [(np.frombuffer(side, np.bool_), up) for side, up in self.cuts]

    def crossing(self, side: Side, up: bool) -> NDArray[np.bool_]:
        """Arcs that leave a set, or enter it."""
        src, dst = (self.whole.dst, self.whole.src) if up else (self.whole.src, self.whole.dst)
        return np.asarray(side[src] & ~side[dst])

    def _solve_once(self, total: float | None) -> _Solution:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, vstack

        n, m = self.n, self.m
        scale = float(self.whole.rate.max())
        rate = self.whole.rate / scale
        rows, right = [], []
        for side, up in self.sides():
            across = self.crossing(side, up)
            rows.append(np.concatenate((side[:n], across if up else -1.0 * across)))
            right.append(float(rate[across].sum()) if up else 0.0)
        most = csr_array(np.array(rows, np.float64))
        cost = np.concatenate((-np.ones(n), np.zeros(m)))
        equal, equal_right = self._balance(), np.zeros(0)
        if equal is not None:
            equal_right = np.zeros(equal.shape[0])
        bounds: list[tuple[float, float | None]] = [(0, None if self.only in (None, v) else 0) for v in range(n)]
        bounds += [(0, r) for r in rate.tolist()]
        if total is not None:  # one more column: the largest x
            most = vstack([
                hstack([most, csr_array((most.shape[0], 1))]),
                hstack([csr_array(np.eye(n, n + m)), csr_array(-np.ones((n, 1)))]),
            ])  # fmt: skip
            right += [0.0] * n
            cost = np.concatenate((np.zeros(n), np.full(m, 1e-6 / m), np.ones(1)))
            sums = csr_array(np.concatenate((np.ones(n), np.zeros(m + 1)))[np.newaxis])
            equal = sums if equal is None else vstack([hstack([equal, csr_array((equal.shape[0], 1))]), sums])
            equal_right = np.append(equal_right, total / scale)
            bounds.append((0, None))
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        result = linprog(cost, most, right, equal, equal_right if equal is not None else None, bounds, options=options)
        if not result.success:
            raise InputError(f"{self.whole.network.name}: the linear program of all-reduce failed: {result.message}")
        x, down = result.x[:n] * scale, result.x[n : n + m] * scale
        balance = result.eqlin.marginals if equal is not None else np.zeros(0)
        return _Solution(float(x.sum()), x, down, -result.ineqlin.marginals, -balance)

    def _balance(self) -> Any:
        """Rows that say that as many copies enter as leave each switch; None without switches that only forward."""
        from scipy.sparse import csr_array

        whole = self.whole
        switches = np.arange(self.n, whole.n_nodes)
        if self.adding or not len(switches):
            return None
        into = (whole.dst == switches[:, np.newaxis]).astype(np.float64) - (whole.src == switches[:, np.newaxis])
        return csr_array(np.hstack((np.zeros((len(switches), self.n)), into)))

    def _broken(self, solution: _Solution) -> Iterator[tuple[bytes, bool]]:
        """Cuts that a solution breaks."""
        whole, unit = self.whole, max(solution.value, 1e-30) / _UNITS
        x = np.floor(solution.x / unit).astype(np.int64)
        for up in (False, True):
            rate = np.maximum(whole.rate - solution.down if up else solution.down, 0.0)
            half = _with_rates(whole.reversed() if up else whole, np.floor(rate / unit).astype(np.int64))
            arcs, search = graph_of(half, x)
            wanted = int(x.sum() * (1 - _SLACK))
            for rank in range(self.n):
                if max_flow(arcs, search, whole.n_nodes, rank, wanted) < wanted:
                    yield (search.level[: whole.n_nodes] >= 0).tobytes(), up


def free_roots(whole: WholeNetwork) -> FreeRoots:
    """Return the best plan of all-reduce by trees, in whole numbers.

    Equal shares of all ranks are taken where they attain the optimum; else the solution with the least largest share.
    The plan is checked in integers, and so is the bound.

    Parameters
    ----------
    whole : WholeNetwork
        Balanced at its switches.

    Raises
    ------
    InputError
        If a rank cannot be reached.
    """
    ones = np.ones(whole.n_ranks, np.int64)
    down, up = optimum(whole, ones).per_unit, optimum(whole.reversed(), ones).per_unit
    program = CutProgram(whole)
    first = program.solve()
    bound, cuts = _exact_bound(program, first)
    equal = whole.n_ranks / (down + up)
    if equal == bound or float(equal) >= first.value * (1 - 1e-9):
        rate_of = np.array([r * down / (down + up) for r in _fractions(whole.rate)], object)
        return _whole_plan(whole, np.array([1 / (down + up)] * whole.n_ranks, object), rate_of, bound, cuts)
    total = float(bound) if abs(float(bound) / first.value - 1) < 1e-7 else first.value
    classes = alike(whole)
    for given_up in (0.0, GIVEN_UP):
        solution = program.solve(total * (1 - 1e-12 - given_up))
        for tried in (_averaged(solution, *classes), solution):
            exact = _rounded(whole, tried, coarse=bool(given_up))
            if exact is not None:
                plan = _whole_plan(whole, *exact, bound, cuts)
                if fits(plan):
                    return plan
    raise InputError(f"{whole.network.name}: no plan of all-reduce with small whole numbers was found")


def of_one_root(whole: WholeNetwork, root: int) -> FreeRoots | None:
    """Return the best plan whose sums all arise at one rank, or None, as :func:`free_roots` does for any roots."""
    solution = CutProgram(whole, only=root).solve()
    exact = _rounded(whole, solution, coarse=False) if solution.value > 0 else None
    if exact is None:
        return None
    plan = _whole_plan(whole, *exact, sum(exact[0], Fraction(0)), ())
    return plan if fits(plan) else None


def _averaged(solution: _Solution, node: Numbers, arc: Numbers) -> _Solution:
    """Give nodes and arcs that look alike the mean of what they have: trees are then alike, and low."""
    x, down = (
        (np.bincount(of, values) / np.maximum(np.bincount(of), 1))[of]
        for of, values in ((node[: len(solution.x)], solution.x), (arc, solution.down))
    )
    return replace(solution, x=x, down=down)


def fits(plan: FreeRoots) -> bool:
    """Whether all trees of a plan fit both halves, by maximum flows in integers."""
    wanted = int(plan.roots.sum())
    for half in (plan.down, plan.up):
        arcs, search = graph_of(half, plan.roots)
        if any(max_flow(arcs, search, half.n_nodes, rank, wanted) < wanted for rank in range(half.n_ranks)):
            return False
    return True


def _exact_bound(program: CutProgram, solution: _Solution) -> tuple[Fraction, tuple[Side, ...]]:
    """Return the dual solution's bound in exact numbers: any multipliers give one, the solver's the best.

    The multipliers of the cuts are made to add up to 1 or more at every rank; each link is then charged what they and
    the balances of its ends leave.
    """
    whole, sides = program.whole, program.sides()
    common = max(1.0, float(np.abs(solution.duals).max(initial=0.0)))
    weight = [max(Fraction(0), Fraction(float(d) / common).limit_denominator(10_000)) for d in solution.duals]
    price = [Fraction(float(d) / common).limit_denominator(10_000) for d in solution.balance]
    least = min(
        sum((w for w, (side, _) in zip(weight, sides, strict=True) if w and side[v]), Fraction(0))
        for v in range(whole.n_ranks)
    )
    if least <= 0:
        raise InputError(f"{whole.network.name}: the linear program of all-reduce gave no bound")
    charge = [Fraction(0)] * len(whole.src)
    total = Fraction(0)
    for w, (side, up) in zip(weight, sides, strict=True):
        if w:
            across = np.flatnonzero(program.crossing(side, up))
            total += w * int(whole.rate[across].sum()) if up else 0
            for arc in across.tolist():
                charge[arc] += -w if up else w
    for arc, (a, b) in enumerate(zip(whole.src.tolist(), whole.dst.tolist(), strict=True)):
        if price:
            charge[arc] -= (price[b - whole.n_ranks] if b >= whole.n_ranks else 0) - (
                price[a - whole.n_ranks] if a >= whole.n_ranks else 0
            )
        total += max(Fraction(0), charge[arc]) * int(whole.rate[arc])
    heaviest = sorted((i for i, w in enumerate(weight) if w), key=lambda i: -weight[i])
    return total / least, tuple(sides[i][0] for i in heaviest)


def _rounded(whole: WholeNetwork, solution: _Solution, coarse: bool) -> tuple[Any, Any] | None:
    """Write a solution with a small common denominator; None if it has none. Coarse: round it to a fine grid."""
    values = np.concatenate((solution.x, solution.down))
    for denominator in range(1, 0 if coarse else MAX_DENOMINATOR):
        nearest = np.rint(values * denominator)
        if np.abs(nearest - values * denominator).max() < 1e-6 * denominator * max(1.0, values.max() / 100):
            exact = np.array([Fraction(int(v), denominator) for v in nearest], object)
            return exact[: whole.n_ranks], exact[whole.n_ranks :]
    if not coarse:
        return None
    return _on_grid(whole, solution)


def _on_grid(whole: WholeNetwork, solution: _Solution) -> tuple[Any, Any]:
    """Round to multiples of a small unit; switches stay balanced, since flows with whole bounds have whole vertices."""
    from scipy.optimize import linprog

    fine = math.ceil(4 / GIVEN_UP * len(whole.src) / max(1.0, solution.value / max(1, int(whole.rate.min()))))
    down = solution.down * fine
    low, high = np.floor(down + 1e-6), np.minimum(np.ceil(down - 1e-6), whole.rate * fine)
    low = np.minimum(low, high)
    equal = CutProgram(whole)._balance()
    if equal is None:
        whole_down = np.rint(down)
    else:
        part = equal[:, whole.n_ranks :]
        result = linprog(low - down, A_eq=part, b_eq=np.zeros(part.shape[0]), bounds=list(zip(low, high, strict=True)))
        whole_down = np.rint(result.x if result.success else low)
    x = np.floor(solution.x * fine)
    return (
        np.array([Fraction(int(v), fine) for v in x], object),
        np.array([Fraction(int(v), fine) for v in whole_down], object),
    )


def _whole_plan(whole: WholeNetwork, x: Any, down: Any, bound: Fraction, cuts: tuple[Side, ...]) -> FreeRoots:
    """Scale a plan until all of it is whole."""
    common = math.lcm(*(v.denominator for v in (*x, *down)))
    roots = np.array([int(v * common) for v in x], np.int64)
    copies = np.array([int(v * common) for v in down], np.int64)
    sums = whole.rate * common - copies
    # links of one arc are filled one after the other, so each of them has to be a whole number too
    links = (whole.link_rate * common).tolist()
    shared = math.gcd(*roots.tolist(), *copies.tolist(), *sums.tolist(), *links) or 1
    return FreeRoots(
        sum(x, Fraction(0)),
        bound,
        cuts,
        _with_rates(whole, copies // shared, common, shared),
        _with_rates(whole.reversed(), sums // shared, common, shared, last=True),
        roots // shared,
        Fraction(shared, common),
    )


def _with_rates(
    whole: WholeNetwork, rate: Numbers, common: int = 0, shared: int = 1, last: bool = False
) -> WholeNetwork:
    """Return the network with other rates of its arcs, which parallel links are filled with one after the other."""
    link_rate = np.zeros(len(whole.link_rate), np.int64)
    for units, links in zip(rate.tolist(), whole.links, strict=True):
        for link in reversed(links) if last else links:
            most = int(whole.link_rate[link]) * common // shared if common else units
            link_rate[link] = min(units, most)
            units -= int(link_rate[link])
    return whole.with_link_rates(link_rate)


def _fractions(values: Numbers) -> list[Fraction]:
    return [Fraction(int(v)) for v in values]
