"""Jobs and background traffic placed on one network, and what each gets there and would get without the others."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_plan import FlowPlan, Job, plan_flows
from commsim.scenario.build import prepare
from commsim.scenario.inputs import PACKED, load_placement
from commsim.scenario.plans.aggregated import AggregatedPlan
from commsim.scenario.plans.dense import Plan
from commsim.scenario.plans.several import Several
from commsim.scenario.scenario import Wish

from .background import Messages, draw_messages
from .composition import Composition, JobEntry
from .job_costs import framed, has_own_costs, shared_job, with_rest
from .sharing import Sharing

if TYPE_CHECKING:
    from commsim.engine.packet.packet_job import AggregationJob
    from commsim.engine.packet.transport import Fabric, Transport

__all__ = ["Together", "prepare_together"]


@dataclass(frozen=True, slots=True)
class Together:
    """What shares a network.

    Parameters
    ----------
    network : Network
        Network that it runs on; switches on which aggregators were put can aggregate.
    entries : tuple of JobEntry
        The jobs as they were named.
    prepared : tuple of Plan
        The collective of each.
    messages : Messages
        Background traffic.
    routing, seed : str or None, int
        Routing and seed of all routes; the seed also of losses and marks.
    """

    network: Network
    entries: tuple[JobEntry, ...]
    prepared: tuple[Plan, ...]
    messages: Messages
    routing: str | None
    seed: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What was derived for each job."""
        return tuple(dict.fromkeys(note for plan in self.prepared for note in plan.notes))

    def run(self, size: float, wish: Wish) -> Several:  # noqa: ARG002
        """Predict all jobs, each of the size that its file says, and each on its own."""
        if wish.start_jitter or wish.flaps is not None:
            raise InputError(f"{'start jitter' if wish.start_jitter else 'flap'} is not modelled for jobs")
        options = {name: getattr(wish, name) for name in ("engine", "framing", "transport", "fabric")}
        results, took, ideal = self.predict(**options)
        by_itself = [self.alone(k).predict(**options)[0][0].time for k in range(len(self.entries))]
        checked = tuple(plan.checked(found) for plan, found in zip(self.prepared, results, strict=True))
        return Several(checked, Sharing(tuple(by_itself), took, ideal))

    def predict(
        self,
        *,
        engine: str = "flow",
        framing: Framing | None = None,
        transport: Transport | None = None,
        fabric: Fabric | None = None,
    ) -> tuple[tuple[Result, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Simulate everything at once.

        Parameters
        ----------
        engine : {"flow", "packet"}
            How.
        framing, transport, fabric
            Same as in :meth:`commsim.scenario.Plan.predict`; of all but the jobs whose packets a switch system says.

        Returns
        -------
        tuple of Result
            One per job. In the packet engine, those of jobs with switch systems say whether every sum was `exact`.
        float64[n], float64[n], s
            Time of each background message, and its time without others.

        Raises
        ------
        InputError
            If the engine does not know a job's kind, weight or cap.
        """
        if engine not in ("flow", "packet"):
            raise InputError(f"jobs share a network in the flow or the packet engine, got engine {engine}")
        if fabric is not None and len(self.entries) == 1:
            fabric = dataclasses.replace(fabric, class_weights=())  # a single job has every link to itself
        wish = Wish(engine=engine, framing=framing, transport=transport, fabric=fabric, seed=self.seed)
        if self._is_single:
            named = dataclasses.replace(self.prepared[0].run(self.entries[0].size, wish), engine=engine)
            return (named,), np.empty(0), np.empty(0)
        results, took, ideal = self._shared(wish)
        if engine == "packet":
            results = tuple(self._with_own_costs(k, result, wish) for k, result in enumerate(results))
        return results, took, ideal

    @property
    def _is_single(self) -> bool:
        """Whether one collective has the network to itself, so that it takes what it takes in any other question."""
        return len(self.entries) == 1 and not len(self.messages.start) and self.entries[0].rate_cap == np.inf

    def _with_own_costs(self, k: int, result: Result, wish: Wish) -> Result:
        """Add to a time in packets what the job's software costs it by itself; all packets see the network's links."""
        size, plan = self.entries[k].size, self.prepared[k]
        if isinstance(plan, AggregatedPlan) or not has_own_costs(plan.at(size), self.network):
            return result
        on_links = self.alone(k)._shared(wish)[0][0].time
        rest = plan.run(size, wish).time - on_links
        last = result.time_from_last_start + rest
        return dataclasses.replace(result, time=result.time + rest, time_from_last_start=last)

    def _shared(self, wish: Wish) -> tuple[tuple[Result, ...], NDArray[np.float64], NDArray[np.float64]]:
        """Simulate everything in one run; the results are those of :meth:`predict`."""
        engine, framing = wish.engine, wish.framing
        in_packets = [engine == "packet" and isinstance(p, AggregatedPlan) for p in self.prepared]
        for entry, packets in zip(self.entries, in_packets, strict=True):
            if packets and (entry.weight != 1 or entry.rate_cap < np.inf):
                raise InputError(
                    f"{entry.name}: packets of a switch system have no weight or rate_cap, but a priority; "
                    "use engine flow"
                )
        plain = [k for k, packets in enumerate(in_packets) if not packets]
        jobs, sizes, starts = self._jobs(plain, framing, engine)
        plan = plan_flows(self.network, jobs, routing=self.routing, seed=self.seed) if jobs else None
        if plan is not None and engine == "flow":
            results = list(simulate_flows(plan, sizes, starts=starts))
        else:
            slots = [self._aggregation(k) for k, packets in enumerate(in_packets) if packets]
            options = {"framing": framing, "transport": wish.transport}
            results = self._packets(plan, (sizes, starts), slots, wish.fabric, options)
        of_job: list[Result | None] = [None] * len(self.entries)
        for k, result in zip(plain, results, strict=False):
            size = self.entries[k].size
            finished = with_rest if engine == "flow" else Plan.finished
            of_job[k] = finished(self.prepared[k].at(size), result, size)
        n_background = len(self.messages.start)
        took = np.array([r.time for r in results[len(plain) : len(plain) + n_background]])
        others = iter(results[len(plain) + n_background :])
        every = [next(others) if result is None else result for result in of_job]
        named = tuple(
            dataclasses.replace(r, collective=p.schedule.name, engine=engine)
            for r, p in zip(every, self.prepared, strict=True)
        )
        added = framing if engine == "flow" else framing or _roce()
        return named, took, self._ideal(plan, len(plain), added) if n_background and plan is not None else took

    def _jobs(
        self, which: list[int], framing: Framing | None, engine: str
    ) -> tuple[list[Job], NDArray[np.float64], NDArray[np.float64]]:
        """Return these jobs and the background's, their sizes, and when each participant starts."""
        jobs, sizes, starts = [], [], []
        for k in which:
            entry, at_size = self.entries[k], self.prepared[k].at(self.entries[k].size)
            added = at_size.framing if framing is None or at_size.sent is not None else framing
            sharing: dict[str, Any] = {"weight": entry.weight, "priority": entry.priority}
            if engine == "flow":
                cap = min(at_size.paths.job.rate_cap, entry.rate_cap)
                jobs.append(shared_job(at_size, self.network, added, rate_cap=cap, **sharing))
            else:  # packets have the rates of links
                flags = at_size.in_packets() if framing is None else None
                job = dataclasses.replace(at_size.paths.job, rate_cap=entry.rate_cap, **sharing)
                jobs.append(framed(job, flags))
            sizes.append(entry.size if at_size.sent is None else at_size.sent)
            starts += [entry.start] * jobs[-1].schedule.n_participants
        message = COLLECTIVES["binomial_broadcast"].build(2)
        for src, dst, size, start in zip(
            self.messages.src, self.messages.dst, self.messages.size, self.messages.start, strict=True
        ):
            job = Job(message, Placement([src, dst]))
            jobs.append(framed(job, framing) if engine == "flow" else job)
            sizes.append(size)
            starts += [start, start]
        return jobs, np.array(sizes), np.array(starts)

    def _packets(
        self,
        plan: FlowPlan | None,
        sized: tuple[NDArray[np.float64], NDArray[np.float64]],
        slots: list[AggregationJob],
        fabric: Fabric | None,
        options: dict[str, Any],
    ) -> list[Result]:
        from commsim.engine.packet.aggregation import simulate_aggregation
        from commsim.engine.packet.messages import run_messages
        from commsim.engine.packet.together import run_together

        several = len(self.entries) > 1  # the sums of a job by itself are proved elsewhere
        if plan is None:
            return list(
                simulate_aggregation(self.network, slots, fabric=fabric, seed=self.seed, values=several).results
            )
        sizes, starts = sized
        given = {"starts": starts, "fabric": fabric, "seed": self.seed, **options}
        if slots:
            return list(run_together(plan, sizes, slots, **given).results)
        return list(run_messages(plan, sizes, **given).results)

    def _aggregation(self, k: int) -> AggregationJob:
        entry, prepared = self.entries[k], self.prepared[k]
        assert isinstance(prepared, AggregatedPlan)
        ranks = prepared.ranks
        job = prepared.system.job(prepared.network, ranks, entry.size, (entry.start,) * len(ranks))
        return dataclasses.replace(job, priority=entry.priority)

    def _ideal(self, plan: FlowPlan, first: int, framing: Framing | None) -> NDArray[np.float64]:
        """Seconds of each background message by itself: its bytes at the rate of its path, and the latency."""
        rate = plan.routes.rates(plan.network)
        of_connection = np.flatnonzero(plan.job_of_connection >= first)
        on_wire = np.asarray((framing or Framing()).on_wire(self.messages.size), np.float64)
        return np.asarray(on_wire / rate[of_connection] + plan.routes.latency[of_connection])

    def alone(self, k: int) -> Together:
        """Return job `k` by itself."""
        only = (self.entries[k],), (self.prepared[k],), Messages.none()
        return Together(self.network, *only, self.routing, self.seed)


def _roce() -> Framing:
    from commsim.engine.packet.transport import ROCE

    return ROCE


def prepare_together(
    composition: Composition,
    network: Network,
    *,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
) -> Together:
    """Place all jobs of a composition, and draw its background traffic.

    Parameters
    ----------
    composition : Composition
        Composition from :func:`commsim.scenario.together.composition.read_composition`.
    network : Network
        Network that it runs on.
    placement : str, optional
        Placement of all ranks, some of which each job names; packed by default.
    routing, seed
        Same as in :func:`commsim.scenario.prepare`; the seed also of the background traffic.

    Raises
    ------
    InputError
        If a job names a rank twice, or one that does not exist.
    """
    if not isinstance(placement, Placement):
        placement = load_placement(placement or PACKED, network, len(network.endpoints), seed)
    nodes = placement.nodes
    prepared, entries = [], []
    for entry in composition.jobs:
        wrong = [rank for rank in entry.ranks if not 0 <= rank < len(nodes)]
        if not entry.ranks or wrong or len(set(entry.ranks)) < len(entry.ranks):
            got = wrong[0] if wrong else list(entry.ranks)
            raise InputError(f"job {entry.name}: ranks are different numbers 0..{len(nodes) - 1}, got {got}")
        where = Placement(nodes[list(entry.ranks)])
        named = not entry.collective.endswith(".npz")  # a file's participants are all in `ranks`, helpers too
        n_ranks = len(entry.ranks) if named else None
        plan = prepare(entry.collective, network, n_ranks=n_ranks, placement=where, routing=routing, seed=seed)
        prepared.append(plan)
        signals = plan.schedule.operation != "custom" and OPERATIONS[plan.schedule.operation].signals
        entries.append(dataclasses.replace(entry, size=0.0) if signals else entry)
    can = np.logical_or.reduce([p.network.aggregates for p in prepared])
    together = dataclasses.replace(network, aggregates=can)
    messages = draw_messages(network, composition.background, seed)
    return Together(together, tuple(entries), tuple(prepared), messages, routing, seed)
