"""Which way the flow engine computes: the cheapest one that gives the event engine's answer.

Each way is a pair of functions: ``plan_X(network, job, *, routing, seed)`` lays out what does not depend on the size,
or returns None where the way does not apply; ``simulate_X(plan, size, *, starts, connection, trace)`` returns the
result, or None when it phases out not to apply to these starts and this size. They never guess.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.jit import expected_work
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.routing.flaps import Flaps

from .flow_plan import FlowPlan, Job, JobConnections, plan_flows
from .message_costs import refuse_curves
from .trace_files import TraceFile


class Way(NamedTuple):
    """A way of computing beside the event engine; it has kernels and is imported when it is first tried."""

    module: str
    steps: int  # that a transfer takes in kernels, where there are few of them; or more
    shares: bool  # whether it begins with what the event engine begins with
    needs: str  # for the message that refuses it


WAYS = {
    "recurrence": Way(
        ".recurrence.recurrence", 300, True,
        "every message alone on its links, or sharing them with others that start and end when it does",
    ),
    "simultaneous": Way(".simultaneous.simultaneous", 300, False, "messages that all start together"),
    "symmetric": Way(".symmetry.symmetry", 5000, True, "transfers and links that fall into few classes of equals"),
    "streamed": Way(".streamed", 300, False, "rings of at most 2^32 messages, and no trace"),
}  # fmt: skip
METHODS = ("auto", *WAYS, "events")
# What a transfer takes in the event engine.
STEPS = 300

# Transfers above which symmetry is looked for: where a block repeats, which is laid out once, and where none does.
LEAST_FOR_SYMMETRY = {True: 2**16, False: 2**18}
# Transfers up to which that is kept.
MAX_SHARED = 2**20

# The event engine keeps some hundred bytes for each.
MAX_TRANSFERS = 2**26

Simulate = Callable[..., Result | None]


@dataclass(slots=True, eq=False)
class FlowPaths:
    """One job on a network, laid out for each way of computing when it is first needed.

    Parameters
    ----------
    network : Network
        Where.
    job : Job
        What runs.
    routing, seed : str or None, int
        As in :func:`commsim.routing.routing.find_routes`.
    """

    network: Network
    job: Job
    routing: str | None = None
    seed: int = 0
    _plans: dict[str, Any] = field(default_factory=dict)

    @property
    def _begun(self) -> JobConnections | None:
        """What several ways begin with; None where keeping it would take too much memory."""
        if "begun" not in self._plans:
            few = self.job.schedule.n_transfers <= MAX_SHARED
            self._plans["begun"] = JobConnections(self.network, self.job, self.routing, self.seed) if few else None
        begun: JobConnections | None = self._plans["begun"]
        return begun

    @property
    def plan(self) -> FlowPlan:
        """Tables of the event engine; they take memory for every transfer."""
        if "events" not in self._plans:
            with self._sized("events"):
                self._plans["events"] = plan_flows(
                    self.network, [self.job], routing=self.routing, seed=self.seed, shared=self._begun
                )
        plan: FlowPlan = self._plans["events"]
        return plan

    def with_messages(self, messages: Callable[[float], NDArray[np.float64]]) -> FlowPaths:
        """Return the same with other payloads; routes and dependencies do not change."""
        job = dataclasses.replace(self.job, messages=messages)
        kept = {"events": dataclasses.replace(self.plan, jobs=(job,))} if "events" in self._plans else {}
        return FlowPaths(self.network, job, self.routing, self.seed, kept)

    def on(self, network: Network) -> FlowPaths:
        """Return the same on a network whose curves alone differ; routes and dependencies do not change."""
        return FlowPaths(
            network, self.job, self.routing, self.seed, {"events": dataclasses.replace(self.plan, network=network)}
        )

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
            Of the collective; its chunks are equal parts of it.
        starts, framing, trace
            As in :func:`commsim.engine.flow.simulate_flows`.
        method : str
            One of ``METHODS``; the result's `method` says which it was.
        flaps : Flaps, optional
            Cables that are down for a while, which the event engine alone knows. Counters say what they cost.

        Raises
        ------
        InputError
            If the method is unknown or does not apply, or a size or start is not legal.
        """
        from .flow import simulate_flows

        if method not in METHODS:
            raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
        if method not in ("auto", "events"):
            refuse_curves(self.network, f"method {method!r} takes messages that cost a line", "auto or events")
            if flaps is not None:
                raise InputError(f"method {method!r} knows no flaps; use auto or events")
        for name in self._order() if method == "auto" and flaps is None else (method,):
            if name in ("auto", "events"):
                break
            with self._sized(name):
                found = self._try(name, size, starts, framing, trace)
            if found is not None:
                return dataclasses.replace(found, method=name)
            if method != "auto":
                needs = WAYS[name].needs if self.job.is_regular else "routes that are not pinned, and equal weights"
                raise InputError(
                    f"method {name!r} does not apply to {self.job.schedule.name} on {self.network.name}: "
                    f"it needs {needs}; use auto"
                )
        if self.job.schedule.n_transfers > MAX_TRANSFERS:
            why = "are to be traced" if trace else "share links here in no regular way"
            raise InputError(
                f"{self.job.schedule.name}: {self.job.schedule.n_transfers} transfers {why}; "
                f"the event engine is for at most {MAX_TRANSFERS}"
            )
        with self._sized("events"):
            (found,) = simulate_flows(self.plan, size, starts=starts, framing=framing, trace=trace, flaps=flaps)
        if flaps is not None:
            whole = self.simulate(size, starts=starts, framing=framing, method=method)
            found = dataclasses.replace(found, counters={**found.counters, "flap_lost_s": found.time - whole.time})
        return dataclasses.replace(found, method="events")

    def _sized(self, name: str) -> AbstractContextManager[None]:
        return expected_work(
            (WAYS[name].steps if name in WAYS else STEPS) * self.job.schedule.n_transfers + self.network.n_links
        )

    def _order(self) -> tuple[str, ...]:
        """Ways in the order in which they are tried: rings first, and then what takes the least to lay out."""
        if self.network.curves is not None or not self.job.is_regular:
            return ("events",)  # the cheaper ways know neither curves nor pinned routes nor weights
        recurrence = self._plan("recurrence")
        if recurrence.rings is not None:
            return ("recurrence", "streamed", "simultaneous", "symmetric")
        if not recurrence.phases and not self._symmetry_may_pay():
            return ("simultaneous", "recurrence")
        if recurrence.phases:  # that share links: to simulate them is less than to look for symmetry
            return ("streamed", "simultaneous", "recurrence", "symmetric")
        return ("simultaneous", "recurrence", "symmetric")

    def _symmetry_may_pay(self) -> bool:
        """Whether laying out one repetition, or one of many transfers, is little beside simulating all."""
        schedule = self.job.schedule
        return schedule.n_transfers > LEAST_FOR_SYMMETRY[any(block.times > 1 for block in schedule.blocks)]

    def _try(
        self, name: str, size: float, starts: ArrayLike, framing: Framing | None, trace: bool | TraceFile
    ) -> Result | None:
        plan = self._plan(name)
        if plan is None:
            return None
        simulate = _way(name)[1]
        return simulate(plan, size, starts=starts, framing=framing, trace=trace)

    def _plan(self, name: str) -> Any:
        if not self.job.is_regular:
            return None
        if name not in self._plans:
            lay_out = _way(name)[0]
            begun = {"shared": self._begun} if WAYS[name].shares else {}
            self._plans[name] = lay_out(self.network, self.job, routing=self.routing, seed=self.seed, **begun)
        return self._plans[name]


def _way(name: str) -> tuple[Callable[..., Any], Simulate]:
    """How a way beside the event engine lays out, and how it simulates."""
    module = importlib.import_module(WAYS[name].module, __package__)
    return getattr(module, f"plan_{name}"), getattr(module, f"simulate_{name}")


__all__ = ["METHODS", "FlowPaths"]
