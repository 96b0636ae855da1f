"""A collective placed on a network, and its prediction by any engine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import BLOCKING, COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import FlowPlan

if TYPE_CHECKING:
    from commsim.engine.link_samples import LinkWatch
    from commsim.engine.packet.transport import Fabric, Transport
    from commsim.routing.flaps import Flaps
    from commsim.run.aggregation import Aggregation, FlowView
    from commsim.run.nccl_launch import NcclLaunch
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
        Node of each participant.
    paths : FlowPaths
        All of a simulation that does not depend on the size, for each way of computing.
    notes : tuple of str
        What was derived, and should be printed.
    data : SparseData, optional
        Which blocks are not zero, where that was said.
    aggregation : Aggregation, optional
        The switch system of a collective whose aggregators sit on switches.
    cut : callable, optional
        From a size to the parameters for it, of a pipeline that is cut by size.
    launch : NcclLaunch, optional
        What NCCL launches at each size, of a collective of NCCL.
    framing : Framing, optional
        What its protocol adds on the wire.
    sized : callable, optional
        From a size to what is prepared for it, of schedules that are made for each size.
    """

    schedule: Schedule
    parameters: Mapping[str, Any]
    network: Network
    placement: Placement
    paths: FlowPaths
    notes: tuple[str, ...]
    data: SparseData | None = None
    aggregation: Aggregation | None = None
    cut: Callable[[float], dict[str, Any]] | None = None
    launch: NcclLaunch | None = None
    framing: Framing | None = None
    sized: Callable[[float], Prepared] | None = None
    before: float = 0.0
    _at: dict[Any, Prepared] = field(default_factory=dict, repr=False, compare=False)
    _bounds: dict[str, Prepared] = field(default_factory=dict, repr=False, compare=False)

    @property
    def plan(self) -> FlowPlan:
        """Every transfer laid out, when it is first asked for; takes memory for each."""
        return self.paths.plan

    def view(self, size: float) -> FlowView | None:
        """Return what all engines but the packet engine take from a switch system at this size; None without one."""
        if self.aggregation is None or not 0 < size < float("inf"):
            return None
        return self.aggregation.flow_view(self.network, self.placement.nodes[: self.schedule.n_ranks], size)

    def at(self, size: float) -> Prepared:
        """Return the same with the schedule for one size.

        A pipeline has as many pieces as suit the size; where switches add packets, chunks are of whole packets; of
        NCCL it is what that launches.
        """
        if self.sized is not None:
            return self.sized(size)
        if self.launch is not None:
            return self._launched(self.launch, size)
        if self.cut is not None and 0 < size < float("inf"):
            return self._cut(self.cut(size))
        view = self.view(size)
        if self.aggregation is None or view is None:
            return self
        key = (view.rate_cap, *(view.parameters.get(name) for name in ("n_chunks", "pool")))
        if key not in self._at:
            schedule = self.aggregation.build(self.schedule.n_ranks, **view.parameters)
            job = dataclasses.replace(self.paths.job, schedule=schedule, rate_cap=view.rate_cap)
            packets_pass = np.where(self.network.kind == SWITCH, 0.0, self.network.overhead)  # switches at line rate
            network = dataclasses.replace(self.network, overhead=packets_pass)
            paths = FlowPaths(network, job, self.paths.routing, self.paths.seed)
            self._at[key] = dataclasses.replace(self, schedule=schedule, parameters=view.parameters, paths=paths)
        return self._at[key]

    def _cut(self, parameters: dict[str, Any]) -> Prepared:
        key = tuple(parameters.get(name) for name in ("n_chunks", "n_partitions"))
        if key not in self._at:
            schedule = COLLECTIVES[self.schedule.name].build(self.schedule.n_ranks, **parameters)
            job = dataclasses.replace(self.paths.job, schedule=schedule)
            paths = FlowPaths(self.network, job, self.paths.routing, self.paths.seed)
            self._at[key] = dataclasses.replace(self, schedule=schedule, parameters=parameters, paths=paths, cut=None)
        return self._at[key]

    def _launched(self, launch: NcclLaunch, size: float) -> Prepared:
        """Return what NCCL launches for one size."""
        if not 0 < size < float("inf"):
            return self
        parameters = launch.parameters(size)
        key = tuple(parameters.items())
        if key not in self._at:
            schedule = launch.build(self.schedule.n_ranks, **parameters)
            placement = launch.placed(schedule, parameters)
            costs = launch.costs(size, parameters)
            network, cap, before = (self.network, float("inf"), 0.0) if costs is None else costs
            job = dataclasses.replace(self.paths.job, schedule=schedule, placement=placement, rate_cap=cap)
            self._at[key] = dataclasses.replace(
                self,
                schedule=schedule,
                parameters=parameters,
                placement=placement,
                paths=FlowPaths(network, job, self.paths.routing, self.paths.seed),
                framing=launch.framing(parameters),
                before=before,
            )
        return self._at[key]

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
        flaps: Flaps | None = None,
        watch: LinkWatch | None = None,
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
            How messages are cut into packets; as the collective's switch system says, or not at all, unless given.
        trace : bool
            Whether the result keeps the times of every transfer.
        transport, fabric : Transport, Fabric, optional
            Of the packet engine: how packets are sent, unless a switch system says so, and what they meet.
        method : {"auto", "recurrence", "simultaneous", "symmetric", "streamed", "events"}
            By which way the flow engine computes; all that apply give the same answer, to 1e-9.
        flaps : Flaps, optional
            Cables that go down during the run, with the engines flow and packet; ``flap_lost_s`` of the counters is
            what they cost. In packets their `rto`, if any, is the transport's.
        watch : LinkWatch, optional
            Is shown the links of the packet engine again and again.

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
        if flaps is not None and engine not in ("flow", "packet"):
            raise InputError(f"links flap in the engines flow and packet, got --engine {engine}")
        if self.aggregation is not None and engine == "packet":
            if framing is not None or trace:
                raise InputError(
                    f"{self.schedule.name}: packets are those of {self.aggregation.spec.entry.name}, and no transfers "
                    f"have times; {self.schedule.name}:system=none sends transfers in packets of any framing"
                )
            slots: Callable[..., Result] = functools.partial(self._slots, fabric=fabric, seed=seed)
            return self._middle(slots, size, start_jitter, iterations, seed)
        if engine == "closed-form" and self.launch is not None and self.launch.is_known:
            from commsim.run.nccl_time import nccl_time

            if start_jitter or framing is not None:
                raise InputError("NCCL's closed form has neither late starters nor packet headers; use --engine flow")
            return nccl_time(self.launch, self.schedule.name, size)
        view, here = self.view(size), self.at(size)
        if view is None and engine == "closed-form" and framing is not None:
            raise InputError("the closed form has no packet headers; use --engine flow")
        if framing is None:
            framing = here.framing if view is None else view.framing
            if engine == "packet" and self.launch is not None and framing is not None:
                framing = self.launch.in_packets(framing)
        sent = size if view is None else view.size
        if engine == "closed-form":
            return finished(here._closed_form(sent, start_jitter, framing), size, view)
        if self.data is not None:
            self.data.messages(size)  # a size that the data cannot have is refused before anything runs
        simulate = functools.partial(
            here._simulator(engine, seed, transport, fabric, method, flaps, watch), framing=framing, trace=trace
        )
        middle = here._middle(simulate, sent, start_jitter, iterations, seed)
        if self.network.curves is not None and engine != "packet":
            middle = dataclasses.replace(middle, interval=here._interval(engine, sent, framing))
        if self.data is not None:
            middle = dataclasses.replace(middle, counters={**middle.counters, **self.data.counters(size)})
        return finished(middle, size, view, here.before)

    def _middle(
        self, simulate: Callable[..., Result], size: float, start_jitter: float, iterations: int, seed: int
    ) -> Result:
        """Simulate every draw of the starts; the result is that of the median time."""
        runs = [simulate(size, starts=starts) for starts in self._starts(start_jitter, iterations, seed)]
        middle = runs[int(np.argsort([r.time for r in runs], kind="stable")[(len(runs) - 1) // 2])]
        return middle if len(runs) == 1 else dataclasses.replace(middle, samples=np.array([r.time for r in runs]))

    def _interval(self, engine: str, size: float, framing: Framing | None) -> tuple[float, float]:
        """Predict again as if all steps took what only a tenth of those measured went below, and above."""
        if not self._bounds:
            for which in ("low", "high"):
                assert self.network.curves is not None
                network = dataclasses.replace(self.paths.network, curves=self.network.curves.bound(which))
                self._bounds[which] = dataclasses.replace(self, paths=self.paths.on(network))
        times = (
            self._bounds[which]._simulator(engine, 0, None, None, "auto", None)(size, framing=framing, starts=0.0).time
            for which in ("low", "high")
        )
        low, high = times
        return low, high

    def _slots(self, size: float, *, starts: NDArray[np.float64], fabric: Fabric | None, seed: int) -> Result:
        """Play the packets of the switch system slot by slot, as ``commsim switch simulate`` does."""
        from commsim.run.packet_job import simulate_job

        assert self.aggregation is not None
        ranks = self.placement.nodes[: self.schedule.n_ranks]
        late = starts[: len(ranks)] if starts.any() else ()
        result = simulate_job(self.network, self.aggregation.job(self.network, ranks, size, late), fabric, seed)
        return dataclasses.replace(result, collective=self.schedule.name, engine="packet", size=size)

    def _simulator(
        self,
        engine: str,
        seed: int,
        transport: Transport | None,
        fabric: Fabric | None,
        method: str,
        flaps: Flaps | None,
        watch: LinkWatch | None = None,
    ) -> Callable[..., Result]:
        if engine == "packet":
            from commsim.engine.packet.messages import simulate_messages

            paths = self.paths
            if np.isfinite(paths.job.rate_cap):  # packets have the links' rates only
                paths = FlowPaths(
                    paths.network, dataclasses.replace(paths.job, rate_cap=np.inf), paths.routing, paths.seed
                )
            packets = functools.partial(
                simulate_messages, transport=transport, fabric=fabric, seed=seed, flaps=flaps, watch=watch
            )
            return lambda size, **options: packets(paths.plan, size, **options)[0]
        if transport is not None or fabric is not None:
            raise InputError(f"transports and queues are the packet engine's, got --engine {engine}")
        if engine == "flow":
            return functools.partial(self.paths.simulate, method=method, flaps=flaps)
        from commsim.engine.alpha_beta import simulate_alpha_beta

        return lambda size, **given: simulate_alpha_beta(self.plan, size, **given)[0]

    def _closed_form(self, size: float, start_jitter: float, framing: Framing | None) -> Result:
        from commsim.engine.closed_form import closed_form

        if start_jitter:
            raise InputError("the closed form has no late starters; use --engine flow")
        if self.data is not None:
            raise InputError(f"{self.schedule.name}: the closed form is that of dense data; use --engine flow")
        if self.schedule.name not in COLLECTIVES:
            raise InputError(f"{self.schedule.name} is not a registered collective and has no closed form")
        entry, paths = COLLECTIVES[self.schedule.name], self.paths
        given = dict(self.parameters)
        if given.pop(BLOCKING, False):
            raise InputError(
                f"{self.schedule.name}: the closed form is that of steps that do not wait; use --engine flow"
            )
        return closed_form(
            entry, paths.network, paths.job, size, given, framing=framing, routing=paths.routing, seed=paths.seed
        )

    def _starts(self, jitter: float, iterations: int, seed: int) -> list[NDArray[np.float64]]:
        if not 0 <= jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {jitter}")
        if not jitter:
            return [np.zeros(self.schedule.n_participants)]
        helpers = np.zeros(self.schedule.n_helpers)
        draw = np.random.default_rng(seed).uniform(0.0, jitter, (max(1, iterations), self.schedule.n_ranks))
        return [np.concatenate((starts, helpers)) for starts in draw]


def finished(result: Result, size: float, view: FlowView | None, before: float = 0.0) -> Result:
    """Return the result for `size` bytes, with what no transfer has: latency of hosts and switches, or of a launch."""
    more = before if view is None else view.latency
    if not more and view is None:
        return result
    return dataclasses.replace(
        result,
        size=size,
        time=result.time + more,
        time_from_last_start=result.time_from_last_start + more,
        samples=result.samples + more,
    )
