"""Schedules that are tried for an operation on a network, size by size, and the bound that they are held against."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.prediction.bounds.demand import demand_of, usable
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan

from .all_to_all import NEAR_ENOUGH, OptimalExchange, best_exchange, plan_exchange
from .greedy import MAX_STEPS, send_greedily
from .latency import latency_bounds, nearest_ranks
from .textbook import registered
from .trees.forest import DIRECTIONS, Certificate, Forest, Grower, untrimmed, weights_of
from .trees.tree_program import TreePlan, plan_trees
from .trees.trimming import trimmed
from .trees.whole_rates import WholeNetwork, unbalanced_switch, whole_network

if TYPE_CHECKING:
    from .bound import LowerBound

Report = Callable[[str, int, int], None]

# Messages of a schedule that is tried: the flow engine then takes a minute.
MAX_MESSAGES = 3_000_000
# Pieces per height of an average tree: filling the trees then takes some tenths of a percent. Trees of a single root
# fill no links that others leave idle.
PIECES_PER_HEIGHT, PIECES_OF_ONE_ROOT = 80, 200
# Part of the time that filling takes for one piece and a tree of height 1; of estimates only.
_FILLING = 0.6
_FEW_TREES = (1, 2, 4, 8)
# Pieces below this are not made smaller.
_LEAST_PIECE = 512.0
# Forests that are simulated at a size, the best by estimate first; more where their schedules are short.
_TRIED, _MANY_TRIED, _SHORT = 2, 5, 100_000
_PIECES_OF_HIGHEST = 110
# Chunks of a share that greedy sending is tried with. While the bound is at most so many times that of no bytes they
# may take a second to draw; beyond, trees mostly come as near to it, in less time.
_PER_RANK, _NEAR_LATENCY, _FEW_STEPS = (1, 2, 4, 8), 30.0, 2_000_000
# A registered collective that is so near to the bound is not to be beaten.
_ATTAINED = 1.001


@dataclass(frozen=True, slots=True, eq=False)
class TimedSchedule:
    """A schedule for a size, and the time that the flow engine predicts.

    Parameters
    ----------
    method : str
        ``trees``, ``trees k=N``, ``trees of one root``, ``greedy``, ``ordered greedy`` (what starts sooner has a larger
        share), ``paths`` (all-to-all), or the name of a registered collective.
    size : int, bytes
        Size of the operation.
    time : float, s
        Time by the flow engine; an estimate, which may be too low, where the schedule is too long for it.
    prepared : Plan
        The schedule, its placement and routes.
    result : Result or None
        Result of the flow engine; None for an estimate.
    pieces : int
        Pieces of trees that follow each other; 1 for other schedules.
    height : int
        Messages one after the other; 0 where it is not known.
    in_pieces : callable, optional
        Function from a number of pieces to the same trees' schedule, where there are trees.
    """

    method: str
    size: int
    time: float
    prepared: Plan
    result: Result | None
    pieces: int = 1
    height: int = 0
    in_pieces: Callable[[int], TreePlan] | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """What candidates are sorted by: an estimate is no proof, so that it comes after all that are simulated."""
        return self.result is None, self.time


class Maker:
    """Makes the schedules of an operation, size by size.

    Parameters
    ----------
    operation, network, root
        Same as in :func:`synthesize`.
    nodes : int32[n_ranks]
        Node of each rank.
    max_messages : int
        Largest number of messages of one schedule.
    report : callable, optional
        Same as in :func:`synthesize`.
    """

    def __init__(
        self, operation: str, network: Network, nodes: Any, root: int, max_messages: int, report: Report | None
    ) -> None:
        self.operation, self.network, self.nodes, self.root = operation, network, nodes, root
        self.max_messages, self.report = max_messages, report
        self.notes: list[Remark] = []
        self.certificate: Certificate | None = None
        self.grower: Grower | None = None
        self.exchange: tuple[WholeNetwork, OptimalExchange] | None = None
        self._per_byte = 0.0  # that no schedule beats, where it is known in exact numbers
        self._rounded = False  # whether the exact numbers are those of lower rates than the network has
        self._forests: list[Forest] | None = None
        self._books: dict[str, Plan] | None = None
        self.graph = usable(network, nodes, anywhere=False)
        self.demand = demand_of(operation, len(nodes), root)
        if operation in DIRECTIONS:
            self._prepare_trees()
        elif operation == "all_to_all":
            self._prepare_exchange()

    def _whole(self) -> WholeNetwork:
        """Return the network with whole rates; where that rounds them, it is noted."""
        whole = whole_network(self.network, self.nodes)
        self._rounded = whole.rounded > 0
        if whole.rounded:
            text = f"rates have no common measure: rounded down by at most {whole.rounded:.2e}; not proved beyond that"
            self.notes.append(Remark("rates-rounded", text, whole.rounded))
        return whole

    def _prepare_trees(self) -> None:
        """Find the optimum; of a network with uneven switches that of what is left once they are trimmed."""
        whole = self._whole()
        uneven = unbalanced_switch(whole)
        if uneven is None:
            self.grower = Grower(whole, self.operation, self.root, proved=not whole.rounded)
            self.certificate = self.grower.certificate
            self._per_byte = self.grower.bound_per_byte
            return
        name, into, out = uneven
        gb = float(whole.unit) / 1e9
        text = f"{name} has {into * gb:g} GB/s in and {out * gb:g} GB/s out"
        up, down = DIRECTIONS[self.operation]
        weight = weights_of(self.operation, whole.n_ranks, self.root)
        try:
            left = trimmed(whole, weight, [True] * up + [False] * down)
        except InputError as error:
            more = f"trees need as much in as out, and {error}"
            self.notes.append(Remark("not-proved", f"not proved: {text}", needed=True, details=more))
            return
        self.grower = Grower(left, self.operation, self.root, proved=False)
        if not (up and down):  # the bound is that of the network as it is
            self.certificate = untrimmed(whole, weight, up, self.grower.certificate)
            self._per_byte = self.grower.bound_per_byte * float(
                self.certificate.fraction / self.grower.certificate.fraction
            )
        if self.certificate is None or not self.certificate.proved:
            more = "trees use as much in as out, and may be slower than the best"
            self.notes.append(Remark("not-proved", f"not proved: {text}", needed=True, details=more))

    def _prepare_exchange(self) -> None:
        """Find the best exchange, where the network is small enough for that."""
        whole = self._whole()
        try:
            exchange = best_exchange(whole)
        except InputError as error:
            self.notes.append(Remark("not-tried", f"not tried: {error}", needed=True))
            return
        self.exchange = whole, exchange
        busy = sorted({int(end) for arc in exchange.busiest for end in (whole.src[arc], whole.dst[arc])})
        names = tuple(self.network.nodes[int(whole.node[i])] for i in busy)
        proved = exchange.per_unit <= float(exchange.bound_per_unit) * NEAR_ENOUGH and not whole.rounded
        fraction = exchange.bound_per_unit * Fraction(10**9) / whole.unit
        self.certificate = Certificate(fraction, "size / n_ranks", exchange.n_parts, names, 0, proved)
        self._per_byte = float(exchange.bound_per_unit / whole.unit) / whole.n_ranks

    def bound(self, size: int) -> float:
        """Return the least time that is proved, in seconds."""
        if self.certificate is None or self._rounded:
            # Schedules use what rounding took from the rates, and can be faster than the optimum without it.
            return self._by_cuts.time(size)
        return max(self._of_no_bytes, self._per_byte * size + nearest_ranks(self.graph))

    @functools.cached_property
    def _by_cuts(self) -> LowerBound:
        """Bound with the rates that the network has."""
        from .bound import lower_bound

        return lower_bound(self.operation, self.network, self.nodes, root=self.root)

    @functools.cached_property
    def _of_no_bytes(self) -> float:
        """Bound at no size, in seconds."""
        return max((cut.fixed for cut in latency_bounds(self.graph, self.demand)), default=0.0)

    def candidates(self, size: int, *, textbook: bool) -> Iterator[TimedSchedule]:
        """Make schedules for a size: registered collectives first, and then, unless these attain the bound, our own."""
        if textbook:
            best = math.inf
            for name, ready in self.books().items():
                try:
                    result = ready.predict(size)
                except InputError:  # too large for the engine, or for this size
                    continue
                best = min(best, result.time)
                yield TimedSchedule(name, size, result.time, ready, result)
            if best <= self.bound(size) * _ATTAINED:
                return
        planned = sorted((self._estimate(forest, size), i) for i, forest in enumerate(self.forests()))
        n_tried = 0  # of those that are simulated: an estimate takes no other's place
        for (guess, pieces), i in planned[:_MANY_TRIED]:
            forest = self.forests()[i]
            if n_tried >= _TRIED and forest.n_arcs * pieces > _SHORT:
                continue
            n_tried += forest.n_arcs <= self.max_messages
            self._tell(f"simulating {forest.name}", 0, 1)
            in_pieces = functools.partial(
                plan_trees, self.operation, self.nodes.tolist(), forest.up, forest.down, root=self.root
            )
            plan = in_pieces(pieces)
            ready = prepare(plan.schedule, self.network, placement=plan.placement)
            made = self._candidate(forest, ready, size, pieces, guess)
            yield dataclasses.replace(made, in_pieces=in_pieces)
        if self.operation in DIRECTIONS:
            yield from self._greedy(size)
        if self.exchange is not None:
            yield from self._exchanges(size)

    def _greedy(self, size: int) -> Iterator[TimedSchedule]:
        """Greedily sent chunks."""
        near = self.bound(size) <= _NEAR_LATENCY * self._of_no_bytes
        for per_rank in _PER_RANK:
            self._tell("sending greedily", 0, 1)
            steps = MAX_STEPS if near else _FEW_STEPS
            schedule = send_greedily(self.operation, self.graph, size, per_rank, self.root, max_steps=steps)
            if schedule is None:
                return
            for in_order in (False, True):
                plan = schedule.plan(in_order=in_order)
                if plan.schedule.n_transfers > self.max_messages:
                    return
                ready = prepare(plan.schedule, self.network, placement=plan.placement)
                result = ready.predict(size)
                yield TimedSchedule("ordered greedy" if in_order else "greedy", size, result.time, ready, result)
                if result.time <= schedule.time * _ATTAINED:  # fair sharing delays nothing
                    break

    def _exchanges(self, size: int) -> Iterator[TimedSchedule]:
        """Exchange in one piece; and in several, where ranks pass on what is not theirs."""
        assert self.exchange is not None
        whole, exchange = self.exchange
        height = exchange.height(whole)
        n_messages = len(exchange.ways) * height
        most = min(self.max_messages // n_messages, int(size / whole.n_ranks / exchange.n_parts / _LEAST_PIECE))
        for pieces in (1, min(most, 16 * height)):
            if pieces < 1 or (pieces > 1 and height == 1):
                continue
            self._tell("simulating paths", 0, 1)
            plan = plan_exchange(whole, exchange, pieces)
            ready = prepare(plan.schedule, self.network, placement=plan.placement)
            result = ready.predict(size)
            yield TimedSchedule("paths", size, result.time, ready, result, pieces, height)

    def _candidate(self, forest: Forest, ready: Plan, size: int, pieces: int, guess: float) -> TimedSchedule:
        """Simulate a forest's schedule, or say that it is too long for that."""
        if forest.n_arcs > self.max_messages:
            text = f"{forest.name}: estimated, since {forest.n_arcs} messages a piece exceed --max-messages"
            more = f"the limit is {self.max_messages}; it is chosen only where nothing is simulated"
            note = Remark("estimated", text, needed=True, details=more)
            self.notes += [note] if note not in self.notes else []
            return TimedSchedule(forest.name, size, max(guess, self.bound(size)), ready, None, pieces, forest.height)
        result = ready.predict(size)
        return TimedSchedule(forest.name, size, result.time, ready, result, pieces, forest.height)

    def forests(self) -> list[Forest]:
        """Trees that attain the optimum, and fewer ones."""
        if self._forests is None:
            self._forests = []
            if self.grower is not None:
                self._forests.append(self.grower.optimal(self.report))
                for n_trees in _FEW_TREES:
                    few = self.grower.few(n_trees, self.report)
                    self._forests += [few] if few is not None else []
                centre = self.grower.of_centre(self.report)
                if centre is not None and centre.height < self._forests[0].height:
                    self._forests.append(centre)
        return self._forests

    def books(self) -> dict[str, Plan]:
        """Prepare the registered collectives of the operation that use ranks only."""
        if self._books is None:
            self._books = registered(self.operation, self.network, self.nodes, self.root, self.max_messages)
        return self._books

    def _estimate(self, forest: Forest, size: int) -> tuple[float, int]:
        """Guess the time of some trees, and in how many pieces they are best used."""
        sent = forest.per_byte * size
        fill = _FILLING * max(forest.mean_height - 1.0, 0.0) * sent  # with one piece
        overhead = float(self.network.overhead[self.nodes].max() + self.network.recv_overhead[self.nodes].max())
        ports = max(1, len(self.graph.src) // max(1, self.network.n_nodes))
        ports = min(ports, int(self.network.message_engines.max(initial=1)))
        each = overhead * forest.n_arcs / len(self.nodes) / ports  # of all messages of one piece
        per_height = PIECES_OF_ONE_ROOT if self.operation in ("broadcast", "reduce") else PIECES_PER_HEIGHT
        # Where schedules are short, so many that even filling the highest tree costs less than a percent.
        high = min(round(_PIECES_OF_HIGHEST * (forest.height - 1)), _SHORT // forest.n_arcs)
        most = min(self.max_messages // forest.n_arcs, max(high, round(per_height * forest.mean_height)))
        units = sum(tree.units for tree in forest.down or forest.up)
        most = min(most, int(size / units / _LEAST_PIECE))
        wanted = math.sqrt(fill / each) if each > 0 else math.inf
        pieces = max(1, min(most, math.ceil(min(wanted, 1e9))))
        latency = float(self.network.latency.max(initial=0.0)) * forest.height * 2
        return sent + fill / pieces + each * pieces + (latency + forest.height * overhead), pieces

    def _tell(self, what: str, done: int, of: int) -> None:
        if self.report is not None:
            self.report(what, done, of)
