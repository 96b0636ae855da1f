"""Which way the flow engine computes: the one that is expected to be the cheapest of those that give the same answer.

The ways are records of :mod:`commsim.engine.ways.catalog`. Each lays out what does not depend on the size, or declines;
what it lays out simulates a size, or declines where it does not apply to these starts and this size. They never guess.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.core.jit import Kernel, expected_work
from commsim.core.limits import expect, expect_bytes
from commsim.core.network import Network

from .flow_job import FlowJob
from .ways import costs
from .ways.catalog import EVENTS, METHODS, Simulation, Way, choose, ways_of_method

if TYPE_CHECKING:
    from commsim.core.cost import Framing
    from commsim.core.result import Result
    from commsim.routing.flaps import Flaps

    from .flow_plan import FlowPlan
    from .job_connections import JobConnections
    from .recurrence.ring_phases import RingPhase
    from .simultaneous.begun_together import BegunTogether
    from .trace_files import TraceFile

__all__ = ["MAX_KEPT", "METHODS", "FlowPaths"]
# What compiles the event engine, the last kernel of a simulation and the largest.
COMPILES = "commsim.engine.flow:compile_events"
# Seconds from which on an estimate is declared; and what asks for less.
WORTH_SAYING = 1.0
# Transfers up to which the tables of other hashes of routes are kept for the next size.
MAX_KEPT = 1 << 17
# What the schedule alone decides, whatever routes a hash draws.
OF_SCHEDULE = {"ring_phases", "begun_together"}
LESS = "fewer ranks or chunks, or engine alpha-beta"


@dataclass(eq=False)
class FlowPaths:
    """One job on a network; what the ways ask of it, and what they lay out, is found when it is first needed.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`.

    Attributes
    ----------
    of_routes : dict
        Results that events gave, by routes, size, starts and headers: hashes that draw the same routes share them.
    is_regular : bool
        Whether ways other than the event engine may apply.
    n_transfers, n_rows : int
        Transfers, all repetitions counted, and those that the schedule's blocks list, each once.
    n_connections : int
        Connections, or somewhat more: one for each row, unless repetitions move on to other participants.
    event_cost : float, s
        Processor time of the event engine, or less: sharing takes as long again, or many times as long.
    at_risk : float, s
        Processor time that may be lost on ways that turn out not to apply.
    """

    network: Network
    job: FlowJob
    routing: str | None = None
    seed: int = 0
    _plans: dict[Any, Any] = field(default_factory=dict)
    _chosen: dict[bool, Iterator[tuple[Way, float]]] = field(default_factory=dict)
    _hashed: dict[int, FlowPaths] = field(default_factory=dict)
    _answered: dict[bool, dict[Way, float]] = field(default_factory=dict)
    of_routes: dict[Any, Any] = field(default_factory=dict)
    is_regular: bool = field(init=False, repr=False, compare=False)
    n_transfers: int = field(init=False, repr=False, compare=False)
    n_rows: int = field(init=False, repr=False, compare=False)
    n_connections: int = field(init=False, repr=False, compare=False)
    event_cost: float = field(init=False, repr=False, compare=False)
    at_risk: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        network, schedule = self.network, self.job.schedule
        self.is_regular = network.curves is None and network.protocol is None and self.job.is_regular
        self.n_transfers = schedule.n_transfers
        self.n_rows = self.n_connections = sum(len(block.body) for block in schedule.blocks)
        if any(block.times > 1 and (block.xor or any(block.step[:2])) for block in schedule.blocks):
            self.n_connections = min(self.n_transfers, schedule.n_participants**2)
        self.event_cost = costs.EVENTS_BEGIN + costs.EVENTS_TRANSFER * self.n_transfers
        self.event_cost += (costs.ROUTE + costs.EVENTS_CONNECTION) * self.n_connections
        if self.n_transfers > costs.MAX_TRANSFERS:
            self.event_cost = float("inf")
        self.at_risk = costs.UNNOTICED + costs.RISK * self.event_cost

    def __getstate__(self) -> dict[str, Any]:
        # What the ways have laid out is found again when it is needed: it holds functions, which no pickle can.
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)} | {
            "_plans": {},
            "_chosen": {},
            "_hashed": {},
            "_answered": {},
            "of_routes": {},
        }

    def forget(self) -> None:
        """Forget what the ways have laid out; it is found again when it is needed."""
        self._plans.clear()
        self._hashed.clear()
        for name in vars(self).keys() - {one.name for one in dataclasses.fields(self)}:
            del vars(self)[name]

    @property
    def hop_cost(self) -> float:
        """Processor seconds that the event engine takes, once routes are known, since they are long."""
        hops = len(self.tables.routes.link) / max(1, len(self.tables.ends))
        return costs.EVENTS_LONG * self.n_transfers * hops**2

    @property
    def move_cost(self) -> float:
        """Processor seconds of the recurrence, transfer by transfer."""
        phases = vars(self).get("ring_phases")  # where they have been found, connections are known
        n_routes = sum(phase.src.size for phase in phases) if phases else self.n_connections
        return costs.MOVES_BEGIN + costs.MOVE * self.n_transfers + costs.ROUTE * n_routes

    @functools.cached_property
    def ring_phases(self) -> tuple[RingPhase, ...] | None:
        """Phases of rings of which the schedule is made; None where it is not."""
        from commsim.engine.recurrence.ring_phases import find_ring_phases

        return None if self.job.messages is not None else find_ring_phases(self.job.schedule)

    @functools.cached_property
    def begun_together(self) -> BegunTogether | None:
        """Transfers of a schedule that all start together; None where they do not."""
        from .simultaneous.begun_together import begin_together

        return begin_together(self.network, self.job)

    @functools.cached_property
    def shared(self) -> JobConnections | None:
        """Connections that several ways begin with; None where keeping it would take too much memory."""
        from .job_connections import JobConnections

        few = self.n_transfers <= costs.MAX_SHARED
        return JobConnections(self.network, self.job, self.routing, self.seed) if few else None

    @functools.cached_property
    def tables(self) -> FlowPlan:
        """Tables of the event engine, with a row for every transfer; refused where they do not fit into memory."""
        n_bytes = costs.TRANSFER_BYTES * self.n_transfers + costs.CONNECTION_BYTES * self.n_connections
        expect_bytes(n_bytes, f"{self.n_transfers} transfers of {self.job.schedule.name}",
                     LESS)  # fmt: skip
        from .flow_plan import plan_flows

        return plan_flows(self.network, [self.job], routing=self.routing, seed=self.seed, shared=self.shared)

    @property
    def plan(self) -> FlowPlan:
        """Tables of the event engine; they take memory for every transfer."""
        with self._sized(EVENTS):
            return self.tables

    def with_messages(self, messages: Callable[[float], NDArray[np.float64]]) -> FlowPaths:
        """Return the same with other payloads; routes and dependencies do not change."""
        paths = FlowPaths(self.network, dataclasses.replace(self.job, messages=messages), self.routing, self.seed)
        if "tables" in vars(self):
            vars(paths)["tables"] = dataclasses.replace(self.plan, jobs=(paths.job,))
        return paths

    def on(self, network: Network) -> FlowPaths:
        """Return the same on a network whose curves alone differ; routes and dependencies do not change."""
        paths = FlowPaths(network, self.job, self.routing, self.seed)
        vars(paths)["tables"] = dataclasses.replace(self.plan, network=network)
        return paths

    def hashed_by(self, seed: int | None) -> FlowPaths:
        """Return the same with routes that another seed draws; what the schedule alone decides is found once for all.

        Parameters
        ----------
        seed : int, optional
            Seed of the hash of routes. Default: the same.
        """
        if seed is None or seed == self.seed:
            return self
        if (known := self._hashed.get(seed)) is not None:
            return known
        paths = dataclasses.replace(self, seed=seed, _plans={}, _chosen={}, _hashed={})
        paths._answered, paths.of_routes = self._answered, self.of_routes
        vars(paths).update({name: vars(self)[name] for name in vars(self).keys() & OF_SCHEDULE})
        begun = self.shared
        vars(paths)["shared"] = None if begun is None else begun.hashed_by(seed)
        if self.n_transfers <= MAX_KEPT:
            self._hashed[seed] = paths
        return paths

    def simulate(
        self,
        size: float,
        *,
        starts: ArrayLike = 0.0,
        framing: Framing | None = None,
        trace: bool | TraceFile = False,
        method: str = "auto",
        flaps: Flaps | None = None,
    ) -> Result:
        """Simulate by the given method, or by the cheapest that applies.

        Parameters
        ----------
        size : float, bytes
            Size of the collective; its chunks are equal parts of it.
        starts, framing, trace
            Same as in :func:`commsim.engine.flow.simulate_flows`.
        method : str
            One of ``METHODS``, or the way of an installed package; the result's `method` says which it was.
        flaps : Flaps, optional
            Cables that are down for a while, which only the event engine knows. Counters say what they cost.

        Raises
        ------
        InputError
            If the method is unknown or does not apply, or a size or start is not legal.
        """
        if method not in METHODS and not ways_of_method(method):
            raise unknown_name("method", method, METHODS)
        if method not in ("auto", EVENTS.name):
            from .message_costs import refuse_curves

            refuse_curves(self.network, f"method {method!r} takes messages that cost a line", "auto or events")
            if flaps is not None:
                raise InputError(f"method {method!r} does not simulate flaps; use auto or events")
        if flaps is not None:
            return self._with_flaps(size, flaps, method, starts=starts, framing=framing, trace=trace)
        Kernel.needed_soon = Kernel.needed_soon or COMPILES
        ways = self._ways(bool(trace)) if method == "auto" else ((way, 0.0) for way in ways_of_method(method))
        for way, seconds in ways:
            if way is EVENTS:
                _refuse_too_many(self, bool(trace))
            if seconds >= WORTH_SAYING:
                expect(seconds, f"simulating {self.n_transfers} messages of {self.job.schedule.name}", LESS)
            with self._sized(way):
                simulation = self._laid_out(way)
                if way is EVENTS and (long := self.hop_cost) >= WORTH_SAYING:
                    expect(long, f"simulating {self.n_transfers} messages of {self.job.schedule.name}", LESS)
                result = None if simulation is None else simulation(size, starts=starts, framing=framing, trace=trace)
            if result is not None:
                if method == "auto":
                    self._answered.setdefault(bool(trace), {way: seconds})
                return dataclasses.replace(result, method=way.name)
        raise self._refusal(method)

    def _with_flaps(self, size: float, flaps: Flaps, method: str, **options: Any) -> Result:
        """Simulate with flaps, and without them, to say what they cost."""
        from .flow import simulate_flows

        _refuse_too_many(self, bool(options["trace"]))
        with self._sized(EVENTS):
            (found,) = simulate_flows(self.plan, size, flaps=flaps, **options)
        whole = FlowPaths.simulate(self, size, method=method, **options | {"trace": False})
        counters = {**found.counters, "flap_lost_s": found.time - whole.time}
        return dataclasses.replace(found, method="events", counters=counters)

    def _refusal(self, method: str) -> InputError:
        return InputError(
            f"method {method!r} does not apply to {self.job.schedule.name} on {self.network.name}: "
            f"it needs {self._needs(method)}; use auto"
        )

    def _needs(self, method: str) -> str:
        """Return what a method that does not apply needs."""
        return (
            ways_of_method(method)[0].needs if self.job.is_regular else "routes that are not pinned, and equal weights"
        )

    @property
    def traced_alike(self) -> bool:
        """Whether the way that computes the time has the times of all transfers too."""
        return all(way.traces for way, _ in self._ways(False))

    def _sized(self, way: Way) -> AbstractContextManager[None]:
        return expected_work(way.steps * self.n_transfers + self.network.n_links)

    def _ways(self, trace: bool) -> Iterator[tuple[Way, float]]:
        """Return the ways to try, which are chosen as far as they are asked for, and then known."""
        if trace not in self._chosen:
            again = self._answered.get(trace)
            if trace and self.traced_alike:
                self._chosen[trace] = self._ways(False)  # a trace is of the way that finds the time
            elif again is None:
                self._chosen[trace] = choose(self, trace=trace)
            else:  # for another hash: the way that answered is tried first
                self._chosen[trace] = iter((again | {EVENTS: self.event_cost}).items())
        ways, self._chosen[trace] = itertools.tee(self._chosen[trace])
        return ways

    def _laid_out(self, way: Way) -> Simulation | None:
        """Return the simulation of a way, laid out when it is first asked for; None where the way does not apply."""
        if way.plan is None or not (way.general or self.is_regular):
            return None
        if way not in self._plans:
            self._plans[way] = way.plan(self)
        simulation: Simulation | None = self._plans[way]
        return simulation


def _refuse_too_many(paths: FlowPaths, trace: bool) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    InputError
        If there are more transfers than the event engine is for.
    """
    if paths.n_transfers > costs.MAX_TRANSFERS:
        name, n, most = paths.job.schedule.name, paths.n_transfers, costs.MAX_TRANSFERS
        if trace:
            raise InputError(f"{name}: too many messages ({n}; at most {most} are traced)")
        raise InputError(f"{name}: {n} transfers share links irregularly; the event engine takes at most {most}")
