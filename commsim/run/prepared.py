"""A collective placed on a network, and its prediction by any engine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import FlowPlan

if TYPE_CHECKING:
    from commsim.engine.packet.transport import Fabric, Transport
    from commsim.run.sparse_data import SparseData

ENGINES = ("flow", "packet", "alpha-beta", "closed-form")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A collective placed on a network, ready to be predicted at any size.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    parameters : mapping of str to value
        With which its builder was called.
    network : Network
        Where; switches on which aggregators were put can aggregate.
    placement : Placement
        Who sits where.
    paths : FlowPaths
        All of a simulation that does not depend on the size, for each way of computing.
    notes : tuple of str
        What was derived, and should be printed.
    data : SparseData, optional
        Which blocks are not zero, where that was said.
    """

    schedule: Schedule
    parameters: Mapping[str, Any]
    network: Network
    placement: Placement
    paths: FlowPaths
    notes: tuple[str, ...]
    data: SparseData | None = None

    @property
    def plan(self) -> FlowPlan:
        """Every transfer laid out, when it is first asked for; takes memory for each."""
        return self.paths.plan

    def predict(
        self,
        size: float,
        *,
        engine: str = "flow",
        start_jitter: float = 0.0,
        iterations: int = 1,
        seed: int = 0,
        framing: Framing | None = None,
        trace: bool = False,
        transport: Transport | None = None,
        fabric: Fabric | None = None,
        method: str = "auto",
    ) -> Result:
        """Predict one size.

        Parameters
        ----------
        size : float, bytes
            Size of the operation, as nccl-tests counts it.
        engine : {"flow", "packet", "alpha-beta", "closed-form"}
            How.
        start_jitter : float, s
            Ranks enter between 0 and this, uniformly.
        iterations : int
            With jitter, how many draws; the result has the median time.
        seed : int
            Of the jitter, and of losses and marks.
        framing : Framing, optional
            How messages are cut into packets.
        trace : bool
            Whether the result keeps the times of every transfer.
        transport, fabric : Transport, Fabric, optional
            Of the packet engine: how packets are sent, and what they meet.
        method : {"auto", "recurrence", "simultaneous", "symmetric", "streamed", "events"}
            By which way the flow engine computes; all that apply give the same answer, to 1e-9.

        Raises
        ------
        InputError
            If the engine is unknown or has no transports, has no closed form for this, the method is unknown or does
            not apply, or the size is not positive.
        """
        if engine not in ENGINES:
            raise InputError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
        if engine != "flow" and method != "auto":
            raise InputError(f"methods are the flow engine's, got method {method!r} and engine {engine!r}")
        if engine == "closed-form":
            return self._closed_form(size, start_jitter, framing)
        if self.data is not None:
            self.data.messages(size)  # a size that the data cannot have is refused before anything runs
        simulate = self._simulator(engine, seed, transport, fabric, method)
        runs = [
            simulate(size, starts=starts, framing=framing, trace=trace)
            for starts in self._starts(start_jitter, iterations, seed)
        ]
        middle = runs[int(np.argsort([r.time for r in runs], kind="stable")[(len(runs) - 1) // 2])]
        if self.data is not None:
            middle = dataclasses.replace(middle, counters={**middle.counters, **self.data.counters(size)})
        return middle if len(runs) == 1 else dataclasses.replace(middle, samples=np.array([r.time for r in runs]))

    def _simulator(
        self, engine: str, seed: int, transport: Transport | None, fabric: Fabric | None, method: str
    ) -> Callable[..., Result]:
        if engine == "packet":
            from commsim.engine.packet.messages import run_messages

            packets = functools.partial(run_messages, transport=transport, fabric=fabric, seed=seed)
            return lambda size, **options: packets(self.plan, size, **options).results[0]
        if transport is not None or fabric is not None:
            raise InputError(f"transports and queues are the packet engine's, got --engine {engine}")
        if engine == "flow":
            return functools.partial(self.paths.simulate, method=method)
        from commsim.engine.alpha_beta import simulate_alpha_beta

        return lambda size, **given: simulate_alpha_beta(self.plan, size, **given)[0]

    def _closed_form(self, size: float, start_jitter: float, framing: Framing | None) -> Result:
        from commsim.engine.closed_form import closed_form

        if start_jitter or framing is not None:
            raise InputError("the closed form knows neither late starters nor packet headers; use --engine flow")
        if self.data is not None:
            raise InputError(f"{self.schedule.name}: the closed form is that of dense data; use --engine flow")
        if self.schedule.name not in COLLECTIVES:
            raise InputError(f"{self.schedule.name} is not a registered collective and has no closed form")
        entry, paths = COLLECTIVES[self.schedule.name], self.paths
        given = dict(self.parameters)
        return closed_form(entry, paths.network, paths.job, size, given, routing=paths.routing, seed=paths.seed)

    def _starts(self, jitter: float, iterations: int, seed: int) -> list[NDArray[np.float64]]:
        if not 0 <= jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {jitter}")
        if not jitter:
            return [np.zeros(self.schedule.n_participants)]
        helpers = np.zeros(self.schedule.n_helpers)
        draw = np.random.default_rng(seed).uniform(0.0, jitter, (max(1, iterations), self.schedule.n_ranks))
        return [np.concatenate((starts, helpers)) for starts in draw]
