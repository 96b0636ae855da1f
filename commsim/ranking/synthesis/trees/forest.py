"""Trees for an operation on a network: the optimum with its certificate, and what fewer trees lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from commsim.core.network_queries import levels_from
from commsim.core.units import first_of

from .free_roots import free_roots, of_one_root
from .optimum import Optimum, multiplied, optimum, with_few_trees
from .splitting import split_switches
from .tree_packing import SpanningTrees, pack, pack_widely
from .whole_rates import Numbers, WholeNetwork

Report = Callable[[str, int, int], None]

# Operations that trees carry: whether data are summed up trees, and copied down.
DIRECTIONS = {
    "all_gather": (False, True),
    "broadcast": (False, True),
    "reduce_scatter": (True, False),
    "reduce": (True, False),
    "all_reduce": (True, True),
}
# Unit trees of a rank from which on switches are split evenly enough, where there are few ranks; with more, packing
# finer shares takes longer than lower trees save.
_FINE, _FEW_RANKS = 16, 40
# Times the optimum's time that trees of one root may take, to be tried where ways are long and sizes small.
_MOST_OF_CENTRE = 2
# From here on trees are first packed without flows.
_MANY_RANKS = 64
# Nodes of a cut that are named.
MAX_NAMES = 6


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof of how fast an operation can be at best, in exact numbers.

    Parameters
    ----------
    fraction : Fraction, s/GB
        Time per 1e9 bytes of what `per` says.
    per : str
        ``size`` of the operation, or ``size / n_ranks``.
    k : int
        Unit trees per rank, the largest of all ranks, that attain it.
    cut : tuple of str
        Nodes that data leaves or enters, where it cannot get faster: of several cuts the heaviest; without a cut the
        ends of the links that bound it together.
    n_cuts : int
        Number of cuts that the bound adds up: one of copies or sums, often several of an all-reduce, whose trees share
        the capacity of the links; 0 of an exchange, which links bound together, each with its weight.
    proved : bool
        Whether the bound is exact and there are trees that attain it.
    """

    fraction: Fraction
    per: str
    k: int
    cut: tuple[str, ...]
    n_cuts: int
    proved: bool

    @property
    def sentence(self) -> str:
        """The certificate in one line: it is about bytes only, which decide as sizes grow."""
        proved = "attained" if self.proved else "not proved to be attained"
        nodes = first_of(self.cut, MAX_NAMES, "others")
        ways = {0: f"the links of {nodes} together", 1: f"the cut around {nodes}"}
        why = ways.get(self.n_cuts, f"{self.n_cuts} cuts together, the heaviest around {nodes}")
        return (
            f"as sizes grow, optimum: {self.fraction} s/GB times {self.per}, k = {self.k}, {proved}; limited by {why}"
        )

    def row(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "fraction": str(self.fraction), "per": self.per, "k": self.k, "cut": list(self.cut), "n_cuts": self.n_cuts,
            "proved": self.proved,
        }  # fmt: skip


def weights_of(operation: str, n_ranks: int, root: int) -> Numbers:
    """Return how much each rank has for all others, or needs of all, relative to the others."""
    rooted = operation in ("broadcast", "reduce")
    return np.eye(n_ranks, dtype=np.int64)[root] if rooted else np.ones(n_ranks, np.int64)


def untrimmed(whole: WholeNetwork, weight: Numbers, up: bool, trimmed: Certificate) -> Certificate:
    """Return the certificate of a network whose switches had to be trimmed: its own cut, proved if that is attained.

    Parameters
    ----------
    whole : WholeNetwork
        Network before switches were trimmed.
    weight : int64[n_ranks]
        Weight of each rank.
    up : bool
        Whether data are summed.
    trimmed : Certificate
        Certificate of what is left.
    """
    best = optimum(whole.reversed() if up else whole, weight)
    fraction = best.per_unit * Fraction(10**9) / whole.unit
    return Certificate(
        fraction,
        trimmed.per,
        trimmed.k,
        tuple(whole.names(best.inside)),
        1,
        fraction == trimmed.fraction and not whole.rounded,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees that carry an operation.

    Parameters
    ----------
    name : str
        Name of the set of trees.
    up, down : tuple of SpanningTrees
        Trees for sums, and for copies.
    per_byte : float, s/byte
        Time per byte of the operation's size, once every link is busy.
    gap : Fraction
        How many times the optimum that is.
    """

    name: str
    up: tuple[SpanningTrees, ...]
    down: tuple[SpanningTrees, ...]
    per_byte: float
    gap: Fraction

    @property
    def mean_height(self) -> float:
        """Height of an average unit tree, both halves added."""
        total = 0.0
        for half in (self.up, self.down):
            units = [tree.units for tree in half]
            total += float(np.average([tree.height for tree in half], weights=units)) if half else 0.0
        return total

    @property
    def height(self) -> int:
        """Messages one after the other, from the first to the last rank."""
        return sum(max((tree.height for tree in half), default=0) for half in (self.up, self.down))

    @property
    def n_arcs(self) -> int:
        """Messages of one piece of all trees."""
        return sum(len(tree.src) for tree in (*self.up, *self.down))


class Grower:
    """Finds the certificate of an operation on a network, and grows forests for it.

    Parameters
    ----------
    whole : WholeNetwork
        Balanced at its switches.
    operation : str
        One of ``DIRECTIONS``.
    root : int
        Root of a rooted operation.
    proved : bool
        Whether `whole` is the network as it is; if not, what is attained is not the network's optimum.
    """

    def __init__(self, whole: WholeNetwork, operation: str, root: int = 0, *, proved: bool = True) -> None:
        self.whole, self.operation = whole, operation
        up, down = DIRECTIONS[operation]
        rooted = operation in ("broadcast", "reduce")
        n = whole.n_ranks
        self._weight = weights_of(operation, n, root)
        self._rated: list[tuple[str, WholeNetwork, Numbers, Optimum | None]]
        per_gb = Fraction(10**9) / whole.unit  # from times per unit to times per GB/s
        if up and down:
            plan = free_roots(whole)
            exact = plan.rate == plan.bound
            self._rated = [("up", plan.up, plan.roots, None), ("down", plan.down, plan.roots, None)]
            self._per_unit, self.bound_per_unit = 1 / plan.rate, 1 / plan.bound
            names, n_cuts = tuple(whole.names(plan.cuts[0])) if plan.cuts else (), len(plan.cuts)
            k, share = int(plan.roots.max()), 1
        else:
            half = whole.reversed() if up else whole
            best = optimum(half, self._weight)
            self._rated = [("up" if up else "down", half, self._weight, best)]
            exact, names, n_cuts, k = True, tuple(whole.names(best.inside)), 1, int(best.roots.max())
            share = 1 if rooted else n
            self._per_unit = self.bound_per_unit = best.per_unit
        self._share = share
        self.certificate = Certificate(
            self.bound_per_unit * per_gb, "size" if share == 1 else "size / n_ranks", k, names, n_cuts, exact and proved
        )
        self.bound_per_byte = float(self.bound_per_unit / whole.unit) / share
        self.per_byte = float(self._per_unit / whole.unit) / share  # of trees that attain the optimum

    def optimal(self, report: Report | None = None) -> Forest:
        """Return trees that attain the optimum."""
        few, switches = self.whole.n_ranks <= _FEW_RANKS, self.whole.n_nodes > self.whole.n_ranks
        times = max(1, -(-_FINE // self.certificate.k)) if few and switches else 1
        halves: dict[str, Sequence[SpanningTrees]] = {"up": (), "down": ()}
        for way, room, roots, best in self._rated:
            if best is not None:
                finer = multiplied(best, times)
                room, roots = finer.room, finer.roots
            else:
                room, roots = room.with_link_rates(room.link_rate * times), roots * times
            halves[way] = _grown(room, roots, way == "up", report)
        return self._forest("trees", halves, Fraction(1))

    def few(self, n_trees: int, report: Report | None = None) -> Forest | None:
        """Return so many trees per rank, for small sizes; None where the optimum has no more of them.

        All-reduce is then two equal halves, sums and copies, with the same share for every rank.
        """
        ones = np.ones(self.whole.n_ranks, np.int64)
        whole = {"up": self.whole.reversed(), "down": self.whole}
        given = [
            (way, half, weight, best) if best else (way, whole[way], ones, optimum(whole[way], ones))
            for way, half, weight, best in self._rated
        ]
        most = max(int(best.roots.max()) for *_, best in given)
        if n_trees >= most and (len(given) == 1 or n_trees > 1):
            return None
        halves: dict[str, Sequence[SpanningTrees]] = {"up": (), "down": ()}
        per_unit = Fraction(0)
        for way, half, weight, best in given:
            few, gap = with_few_trees(half, weight, best, n_trees)
            halves[way] = _grown(few.room, few.roots, way == "up", report)
            per_unit += best.per_unit * gap
        shared = 1 if len(given) == 1 else self.whole.n_ranks  # all-reduce is rated by its size, its halves by shares
        return self._forest(f"trees k={n_trees}", halves, per_unit / shared / self._per_unit)

    def of_centre(self, report: Report | None = None) -> Forest | None:
        """Return trees of all-reduce whose root is the rank that is nearest to the farthest, for short ways.

        None for other operations, among many ranks, and where one root has much less than the optimum.
        """
        whole = self.whole
        if len(self._rated) == 1 or whole.n_ranks > _FEW_RANKS:
            return None
        far = []
        for rank in range(whole.n_ranks):
            links = levels_from(np.arange(whole.n_nodes) == rank, whole.src, whole.dst)[: whole.n_ranks]
            far.append((int(links.max()), int(links.sum())))
        plan = of_one_root(whole, far.index(min(far)))
        if plan is None or 1 / plan.rate > _MOST_OF_CENTRE * self._per_unit:
            return None
        halves: dict[str, Sequence[SpanningTrees]] = {
            way: _grown(room, plan.roots, way == "up", report) for way, room in (("up", plan.up), ("down", plan.down))
        }
        return self._forest("trees of one root", halves, 1 / plan.rate / self._per_unit)

    def _forest(self, name: str, halves: dict[str, Sequence[SpanningTrees]], gap: Fraction) -> Forest:
        per_byte = float(self._per_unit * gap / self.whole.unit) / self._share
        return Forest(name, tuple(halves["up"]), tuple(halves["down"]), per_byte, gap)


def _grown(room: WholeNetwork, roots: Numbers, up: bool, report: Report | None) -> list[SpanningTrees]:
    """Split the switches off, and pack; trees of a reversed network come back the right way round."""
    told = None if report is None else lambda done, of: report("packing trees", done, of)
    trees = None
    if len(roots) > _MANY_RANKS:
        trees = pack_widely(split_switches(room, roots, careful=False), told)
    if trees is None:
        trees = pack(split_switches(room, roots), told)
    return [tree.backwards() for tree in trees] if up else trees
