"""All-to-all at its best: the maximum concurrent flow, whose paths become messages over pinned routes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.schedule import INPUT, OUTPUT, SCRATCH

from .trees.tree_program import TreePlan
from .trees.whole_rates import WholeNetwork

Floats = NDArray[np.float64]

# Variables of the linear program: some seconds.
MAX_VARIABLES = 40_000
# Parts that a block is cut into; the least that is within this of the optimum is taken.
PARTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30, 36, 48, 60, 72, 96, 120)
NEAR_ENOUGH = 1.002
_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class RoutedShare:
    """Part of what one rank has for another, and the arcs over which it goes.

    Parameters
    ----------
    src, dst : int
        Ranks.
    share : float
        Part of their block; a whole number of parts of it once they are chosen.
    arcs : tuple of int
        Arcs by their numbers in the whole network.
    """

    src: int
    dst: int
    share: float
    arcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OptimalExchange:
    """The best exchange of equal blocks between all pairs of ranks.

    Parameters
    ----------
    bound_per_unit : Fraction
        No exchange of blocks of 1 takes less: lengths of links, found by the program, make every block use up some of
        all links together (weak duality, in exact numbers).
    per_unit : float
        What the ways take.
    busiest : tuple of int
        Arcs that the bound charges.
    ways : tuple of RoutedShare
        All of them; shares are numbers of parts.
    n_parts : int
        Parts of a block.
    """

    bound_per_unit: Fraction
    per_unit: float
    busiest: tuple[int, ...]
    ways: tuple[RoutedShare, ...]
    n_parts: int

    def height(self, whole: WholeNetwork) -> int:
        """Messages one after the other on the longest way."""
        return max(sum(1 for _ in _legs(whole, way.arcs)) for way in self.ways)


def best_exchange(whole: WholeNetwork) -> OptimalExchange:
    """Find the ways by which equal blocks between all pairs arrive soonest.

    Least T such that what rank s sends flows to all others over arcs, one block each, and no arc carries more than T
    times its rate. Ranks on the way pass on what is not theirs.

    Parameters
    ----------
    whole : WholeNetwork
        Network to exchange over.

    Raises
    ------
    InputError
        If the program is too large, or a rank cannot be reached.

    References
    ----------
    Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990.
    """
    flows, lengths = _solve(whole)
    bound = _exact_bound(whole, lengths)
    ways = [way for s in range(whole.n_ranks) for way in _paths(whole, flows[s], s)]
    best: tuple[float, int, list[RoutedShare]] | None = None
    for n_parts in PARTS:
        cut = _in_parts(ways, n_parts)
        load = np.zeros(len(whole.src))
        for way in cut:
            load[list(way.arcs)] += way.share / n_parts
        time = float((load / whole.rate).max())
        if best is None or time < best[0] * (1 - _ZERO):
            best = time, n_parts, cut
        if time <= NEAR_ENOUGH * float(bound):
            break
    assert best is not None
    time, n_parts, cut = best
    busiest = tuple(np.flatnonzero(lengths > lengths.max(initial=0.0) * 1e-6).tolist())
    return OptimalExchange(bound, time, busiest, tuple(cut), n_parts)


def plan_exchange(whole: WholeNetwork, exchange: OptimalExchange, n_pieces: int) -> TreePlan:
    """Write the schedule: every way in pieces, from rank to rank; those on the way keep a piece in scratch memory.

    Parameters
    ----------
    whole : WholeNetwork
        Network to exchange over.
    exchange : OptimalExchange
        The ways.
    n_pieces : int
        Pieces of a block, one after the other.
    """
    n, parts = whole.n_ranks, exchange.n_parts
    block = parts * n_pieces
    begin: dict[tuple[int, int], int] = defaultdict(int)
    slots: dict[int, int] = defaultdict(int)
    numbers: dict[tuple[int, int, int], int] = defaultdict(int)
    weight_of: dict[int, list[int]] = defaultdict(list)  # channels of each number of parts
    weights: list[float] = []
    hops: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    routes = []
    used = np.zeros(len(whole.link_rate))
    for way in sorted(exchange.ways, key=lambda way: (way.src, way.dst)):
        count, offset = int(way.share), begin[way.src, way.dst]
        begin[way.src, way.dst] += count
        at = (INPUT, way.dst * block + offset)
        legs = list(_legs(whole, way.arcs))
        for hop, (a, b, arcs) in enumerate(legs):
            if b == way.dst:
                to = (OUTPUT, way.src * block + offset)
            else:
                to = (SCRATCH, slots[b] * block)
                slots[b] += 1
            nth = numbers[a, b, count]
            numbers[a, b, count] += 1
            if nth == len(weight_of[count]):
                weight_of[count].append(len(weights))
                weights.append(float(count))
            channel = weight_of[count][nth]
            hops[hop].append((a, b, at[1], to[1], at[0], to[0], count, channel))
            routes.append((a, b, channel, tuple(_link(whole, used, arc, count) for arc in arcs)))
            at = to
    n_scratch = max(slots.values(), default=0) * block
    program = Program(n, n * block, n_scratch=n_scratch)
    rank = np.arange(n)
    program.copy(src=rank, dst=rank, src_chunk=rank * block, dst_chunk=rank * block, count=block, dst_buffer=OUTPUT)
    with program.repeat(n_pieces, chunk=parts):
        for hop in sorted(hops):
            src, dst, src_chunk, dst_chunk, src_buffer, dst_buffer, count_of, channels = np.array(hops[hop]).T
            program.copy(
                src=src, dst=dst, src_chunk=src_chunk, dst_chunk=dst_chunk, count=count_of, channel=channels,
                src_buffer=src_buffer, dst_buffer=dst_buffer,
            )  # fmt: skip
    schedule = program.build("synthesized_all_to_all", "all_to_all", weights=weights)
    return TreePlan(schedule, Placement(whole.node[:n], PinnedRoutes.of(routes)))


def _link(whole: WholeNetwork, used: Floats, arc: int, count: int) -> int:
    """Choose the link of an arc that is the least busy with what it has and gets."""
    links = list(whole.links[arc])
    chosen = links[int(np.argmin((used[links] + count) / whole.link_rate[links]))]
    used[chosen] += count
    return chosen


def _solve(whole: WholeNetwork) -> tuple[Floats, Floats]:
    """Return what each rank puts on each arc for blocks of 1, and the lengths of arcs that prove it is least."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, coo_array, csr_array, eye_array, hstack

    n, m = whole.n_ranks, len(whole.src)
    if n * m > MAX_VARIABLES:
        raise InputError(
            f"{whole.network.name}: all-to-all is synthesized up to {MAX_VARIABLES} variables, ranks times links; "
            f"here {n} x {m}"
        )
    rate = whole.rate / float(whole.rate.max())
    arc = np.arange(m)
    ones = np.ones(m)
    balance = coo_array(
        (np.r_[ones, -ones], (np.r_[whole.dst, whole.src], np.r_[arc, arc])), (whole.n_nodes, m)
    ).tocsr()
    rows, right = [], []
    for s in range(n):
        keep = np.arange(whole.n_nodes) != s
        rows.append(balance[keep])
        right.append((np.arange(whole.n_nodes) < n)[keep].astype(np.float64))
    equal = hstack([csr_array((n * (whole.n_nodes - 1), 1)), block_diag(rows)])
    most = hstack([csr_array(-rate[:, np.newaxis]), *(eye_array(m) for _ in range(n))])
    cost = np.zeros(1 + n * m)
    cost[0] = 1.0
    solution = linprog(cost, most.tocsr(), np.zeros(m), equal.tocsr(), np.concatenate(right), bounds=(0, None))
    if not solution.success:
        raise InputError(f"{whole.network.name}: a rank cannot be reached from every other one; nothing is synthesized")
    return np.asarray(solution.x[1:].reshape(n, m)), np.maximum(-solution.ineqlin.marginals, 0.0)


def _exact_bound(whole: WholeNetwork, lengths: Floats) -> Fraction:
    """Return the sum of distances over the sum of rate times length, for lengths in whole numbers."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    scaled = lengths / max(float(lengths.max(initial=0.0)), _ZERO)
    exact = [Fraction(float(x)).limit_denominator(2_000) for x in scaled]
    common = np.lcm.reduce([x.denominator for x in exact]).item()
    common = common if 0 < common < 2**40 else 2**20
    whole_length = np.array([int(x * common) for x in exact], np.int64)
    # An arc of length 0 is an arc all the same: sparse matrices would lose it. All others count n times as much more.
    n = whole.n_nodes
    table = coo_array((whole_length * (n + 1) + 1.0, (whole.src, whole.dst)), shape=(n, n)).tocsr()
    far = np.asarray(dijkstra(table, indices=np.arange(whole.n_ranks)))[:, : whole.n_ranks]
    distance = int(np.floor_divide(far, n + 1).sum())
    return Fraction(distance, int((whole_length * whole.rate).sum()))


def _paths(whole: WholeNetwork, flow: Floats, src: int) -> Iterator[RoutedShare]:
    """Peel the flow of one rank into paths, those with the fewest arcs first."""
    left = np.where(flow > _ZERO, flow, 0.0)
    leaving: dict[int, list[int]] = defaultdict(list)
    for arc in np.flatnonzero(left).tolist():
        leaving[int(whole.src[arc])].append(arc)
    for dst in range(whole.n_ranks):
        wanted = 1.0 if dst != src else 0.0
        while wanted > 1e-7:
            arcs = _shortest(whole, leaving, left, src, dst)
            if not arcs:
                break
            amount = min(wanted, float(left[arcs].min()))
            left[arcs] -= amount
            left[left < _ZERO] = 0.0
            wanted -= amount
            yield RoutedShare(src, dst, amount, tuple(arcs))


def _shortest(whole: WholeNetwork, leaving: dict[int, list[int]], left: Floats, src: int, dst: int) -> list[int]:
    """Return the arcs of a path with the fewest of them among those with flow; none without a path."""
    by: dict[int, int] = {src: -1}
    queue = deque([src])
    while queue and dst not in by:
        node = queue.popleft()
        for arc in leaving[node]:
            to = int(whole.dst[arc])
            if left[arc] > 0 and to not in by:
                by[to] = arc
                queue.append(to)
    path: list[int] = []
    node = dst
    while node in by and by[node] >= 0:
        path.append(by[node])
        node = int(whole.src[by[node]])
    return path[::-1]


def _in_parts(ways: list[RoutedShare], n_parts: int) -> list[RoutedShare]:
    """Round the shares of each pair to whole parts, the largest remainders up."""
    of_pair: dict[tuple[int, int], list[RoutedShare]] = defaultdict(list)
    for way in ways:
        of_pair[way.src, way.dst].append(way)
    cut = []
    for (src, dst), some in of_pair.items():
        total = sum(way.share for way in some)
        wanted = np.array([way.share / total * n_parts for way in some])
        parts = np.floor(wanted + 1e-6)
        order = np.argsort(parts - wanted, kind="stable")
        parts[order[: int(n_parts - parts.sum())]] += 1
        cut += [RoutedShare(src, dst, int(p), way.arcs) for p, way in zip(parts, some, strict=True) if p]
    return cut


def _legs(whole: WholeNetwork, arcs: tuple[int, ...]) -> Iterator[tuple[int, int, list[int]]]:
    """Cut a path at the ranks that it passes."""
    leg: list[int] = []
    for arc in arcs:
        leg.append(arc)
        if whole.dst[arc] < whole.n_ranks:
            yield int(whole.src[leg[0]]), int(whole.dst[arc]), leg
            leg = []
