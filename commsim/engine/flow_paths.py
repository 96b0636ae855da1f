"""Which way the flow engine computes: the one that is expected to be the cheapest of those that give the same answer.

The ways are records of :mod:`commsim.engine.ways.catalog`. Each lays out what does not depend on the size, or declines;
then it simulates a size, or declines when it turns out not to apply to these starts and this size. They never guess.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.jit import expected_work
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.ways.known_time import KnownTime, Proof, applies, prove, simulate_known, simulate_loops
from commsim.routing.flaps import Flaps

from .flow_plan import FlowPlan, Job
from .message_costs import refuse_curves
from .trace_files import TraceFile
from .ways.catalog import EVENTS, choose, named, refuse_too_many
from .ways.catalog import METHODS as WAYS
from .ways.way import Task, Way

# A way for jobs whose time is known where no link is in the way; and what is no way, since it extrapolates.
KNOWN, LOOPS = "closed-form", "loops"
METHODS = (*WAYS, KNOWN, LOOPS)
__all__ = ["METHODS", "FlowPaths"]


@dataclass(eq=False)
class FlowPaths:
    """One job on a network, laid out for each way of computing when it is first needed.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : Job
        What runs.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    known : KnownTime, optional
        Time of the job on a reference network, for one size.
    """

    network: Network
    job: Job
    routing: str | None = None
    seed: int = 0
    _plans: dict[Any, Any] = field(default_factory=dict)
    _chosen: dict[bool, tuple[Way, ...]] = field(default_factory=dict)
    known: KnownTime | None = None

    @functools.cached_property
    def task(self) -> Task:
        """The job and the network as the ways take them."""
        return Task(self.network, self.job, self.routing, self.seed)

    @property
    def plan(self) -> FlowPlan:
        """Tables of the event engine; they take memory for every transfer."""
        with self._sized(EVENTS):
            plan: FlowPlan = self._plan(EVENTS)
        return plan

    def with_messages(self, messages: Callable[[float], NDArray[np.float64]]) -> FlowPaths:
        """Return the same with other payloads; routes and dependencies do not change."""
        job = dataclasses.replace(self.job, messages=messages)
        kept = {EVENTS: dataclasses.replace(self.plan, jobs=(job,))} if EVENTS in self._plans else {}
        return FlowPaths(self.network, job, self.routing, self.seed, kept)

    def on(self, network: Network) -> FlowPaths:
        """Return the same on a network whose curves alone differ; routes and dependencies do not change."""
        kept = {EVENTS: dataclasses.replace(self.plan, network=network)}
        return FlowPaths(network, self.job, self.routing, self.seed, kept)

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
            One of ``METHODS``; the result's `method` says which it was.
        flaps : Flaps, optional
            Cables that are down for a while, which only the event engine knows. Counters say what they cost.

        Raises
        ------
        InputError
            If the method is unknown or does not apply, or a size or start is not legal.
        """
        if method not in METHODS:
            raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
        if method in ("auto", KNOWN) and flaps is None and not trace:
            found = self._known(size, starts, framing)
            if found is not None:
                return found
        if method == KNOWN:
            raise InputError(
                f"method {method!r} does not apply to {self.job.schedule.name} on {self.network.name}: it needs a "
                f"closed form and {self._in_the_way()}; use auto"
            )
        loops = None if self.known is None or trace or flaps is not None else self.known.loops
        if method == LOOPS and loops is None:
            raise InputError(f"method {method!r} is for NCCL's calls of many loops, and no traces or flaps; use auto")
        if loops is not None and method in ("auto", LOOPS):
            return self._with_rest(self._looped(self.network, size, starts, framing), size)
        return self._with_rest(self._computed(size, starts, framing, trace, method, flaps), size)

    def _looped(self, network: Network, size: float, starts: ArrayLike, framing: Framing | None) -> Result:
        """Simulate some loops of a job of many, on its network or the reference."""
        assert self.known is not None
        assert self.known.loops is not None

        def time(where: Network, job: Job, part: float) -> float:
            paths = FlowPaths(where, job, self.routing, self.seed)
            return paths.simulate(part, starts=starts, framing=framing).time

        found = simulate_loops(network, self.known.loops, (self.job, self.proof), size, starts, framing, time)
        return dataclasses.replace(found, method=LOOPS)

    def _known(self, size: float, starts: ArrayLike, framing: Framing | None) -> Result | None:
        """Return the known time where it is proved to be that of the simulation."""
        if self.known is None or not applies(self.network, self.job, self.known, starts, framing):
            return None
        if self.proof.full >= 0:
            return None
        found = simulate_known(self.network, self.job, self.known, self.proof, size)
        return None if found is None else dataclasses.replace(found, method=KNOWN)

    @property
    def proof(self) -> Proof:
        """Whether a link may be in the way of a job whose time is known."""
        if "proof" not in self._plans:
            assert self.known is not None
            self._plans["proof"] = prove(self.network, self.job, self.known, self.routing, self.seed)
        found: Proof = self._plans["proof"]
        return found

    def _in_the_way(self) -> str:
        if self.known is None or self.proof.full < 0:
            return "no late starters, headers, traces or flaps"
        return f"no link in the way, and {self.network.link_name(self.proof.full)} may be"

    def _with_rest(self, found: Result, size: float) -> Result:
        """Add what the known time has beyond the messages, where nothing is in their way."""
        if self.known is None:
            return found
        key = f"rest {found.method == LOOPS}"  # of the same kind, so that what loops leave out cancels
        if key not in self._plans:
            reference, framing = self.known.reference, self.known.framing
            looped = found.method == LOOPS
            alone = self._looped(reference, size, 0.0, framing).time if looped else self.on_reference(size)
            self._plans[key] = self.known.seconds - alone
        rest: float = self._plans[key]
        if rest < 0:  # no more than leaves the busiest link its time
            busiest = float((found.link_bytes / self.network.bandwidth).max(initial=0.0))
            rest = max(rest, min(0.0, busiest - found.time_from_last_start))
        last = found.time_from_last_start + rest
        return dataclasses.replace(found, time=found.time + rest, time_from_last_start=last)

    def on_reference(self, size: float) -> float:
        """Simulate a job whose time is known on the reference network, and return what its messages take."""
        assert self.known is not None
        paths = FlowPaths(self.known.reference, self.job, self.routing, self.seed)
        return paths.simulate(size, framing=self.known.framing).time

    def _computed(
        self, size: float, starts: ArrayLike, framing: Framing | None, trace: bool | TraceFile, method: str,
        flaps: Flaps | None,
    ) -> Result:  # fmt: skip
        """Simulate by one of the ways that are proved for any job."""
        if method not in ("auto", "events"):
            refuse_curves(self.network, f"method {method!r} takes messages that cost a line", "auto or events")
            if flaps is not None:
                raise InputError(f"method {method!r} knows no flaps; use auto or events")
        if flaps is not None:
            return self._with_flaps(size, flaps, method, starts=starts, framing=framing, trace=trace)
        for way in self._ways(bool(trace)) if method == "auto" else named(method):
            if way is EVENTS:
                refuse_too_many(self.task, bool(trace))
            with self._sized(way):
                plan = self._plan(way)
                found = None if plan is None else way.simulate(plan, size, starts=starts, framing=framing, trace=trace)
            if found is not None:
                return dataclasses.replace(found, method=way.name)
        raise self._refusal(method)

    def _with_flaps(self, size: float, flaps: Flaps, method: str, **options: Any) -> Result:
        """Simulate with flaps, and without them, to say what they cost."""
        refuse_too_many(self.task, bool(options["trace"]))
        with self._sized(EVENTS):
            found = EVENTS.simulate(self.plan, size, flaps=flaps, **options)
        whole = self._computed(size, options["starts"], options["framing"], False, method, None)
        assert found is not None
        counters = {**found.counters, "flap_lost_s": found.time - whole.time}
        return dataclasses.replace(found, method="events", counters=counters)

    def _refusal(self, method: str) -> InputError:
        needs = named(method)[0].needs if self.job.is_regular else "routes that are not pinned, and equal weights"
        return InputError(
            f"method {method!r} does not apply to {self.job.schedule.name} on {self.network.name}: "
            f"it needs {needs}; use auto"
        )

    def _sized(self, way: Way) -> AbstractContextManager[None]:
        return expected_work(way.steps * self.job.schedule.n_transfers + self.network.n_links)

    def _ways(self, trace: bool) -> tuple[Way, ...]:
        if trace not in self._chosen:
            self._chosen[trace] = choose(self.task, trace=trace)
        return self._chosen[trace]

    def _plan(self, way: Way) -> Any:
        if not way.general and not self.task.is_regular:
            return None
        if way not in self._plans:
            self._plans[way] = way.plan(self.task)
        return self._plans[way]
