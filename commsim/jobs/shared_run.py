"""Several plans and background traffic in one simulation of the links that they share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import format_size, format_time
from commsim.engine.alpha_beta import simulate_alpha_beta
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import MAX_KEPT
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.aggregated.plan_aggregated import AggregatedPlan
from commsim.prediction.bounds.cuts import ON_PAPER, SLACK
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Wish

from .background import BackgroundMessages
from .job_costs import framed, has_own_costs, shared_job, with_rest
from .job_entries import JobEntry
from .own_transports import own_transport

if TYPE_CHECKING:
    from commsim.packets.aggregated.packet_job import AggregationJob

# Engines that simulate jobs together, beside the packet engine; alpha-beta knows no contention between them.
SIMULATORS = {"flow": simulate_flows, "alpha-beta": simulate_alpha_beta}
# Layouts of small jobs that are kept: those of the usual number of hashes.
MAX_LAID = 8
# Result of each job; time of each background message, and its time without others.
Shared = tuple[tuple[Result, ...], NDArray[np.float64], NDArray[np.float64]]
__all__ = ["SIMULATORS", "PlacedJobs", "Shared"]


@dataclass(frozen=True, slots=True)
class SizedJobs:
    """The jobs that one simulation takes, sized.

    Parameters
    ----------
    plan : FlowPlan or None
        Messages of all of them; None where there are none.
    sizes : float64[n_jobs], bytes
        Size of each job.
    starts : float64[n_participants], s
        Start of each participant.
    """

    plan: FlowPlan | None
    sizes: NDArray[np.float64]
    starts: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlacedJobs:
    """Jobs and background traffic, placed on one network.

    Parameters
    ----------
    network : Network
        Network that they share; switches on which aggregators were put can aggregate.
    entries : tuple of JobEntry
        Jobs as they were named.
    plans : tuple of Plan
        Plan of the collective of each.
    messages : BackgroundMessages
        Background traffic.
    routing, seed : str or None, int
        Routing and seed of all routes; the seed also of losses and marks.
    background : tuple of mapping or None
        How the packets of each entry of the background are sent; None as the run's.
    """

    network: Network
    entries: tuple[JobEntry, ...]
    plans: tuple[Plan, ...]
    messages: BackgroundMessages
    routing: str | None
    seed: int
    background: tuple[Mapping[str, Any] | None, ...] = ()
    _laid: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without `_laid`, whose keys are the ids of objects of this process.
        return PlacedJobs, (
            self.network, self.entries, self.plans, self.messages, self.routing, self.seed, self.background,
        )  # fmt: skip

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Schedule of each job."""
        return tuple(plan.schedule for plan in self.plans)

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What was derived for each job."""
        return tuple(dict.fromkeys(note for plan in self.plans for note in plan.notes))

    def checked(self, results: Sequence[Result]) -> tuple[Result, ...]:
        """Return results that are no faster than physics: each by itself, and on paper also all together.

        Raises
        ------
        InputError, PhysicsError
            If they are faster.
        """
        self._require_links(results)
        return tuple(plan.checked(found) for plan, found in zip(self.plans, results, strict=True))

    def _require_links(self, results: Sequence[Result]) -> None:
        """Refuse times of an engine that shares no links, where the bytes of all need longer on the busiest link."""
        first, last = results[0], max(result.time for result in results)
        if first.engine not in ON_PAPER or self.network.curves is not None:
            return
        needed = sum(result.link_bytes for result in results) / self.network.bandwidth
        if needed.max(initial=0.0) * (1 - SLACK) > last:
            link = self.network.link_name(int(needed.argmax()))
            raise InputError(
                f"{len(results)} groups with {first.collective}, {format_size(int(first.size))}: engine {first.engine} "
                f"gives {format_time(last)}, but together they need at least {format_time(float(needed.max()))} on "
                f"{link}; use engine flow"
            )

    def shared(self, wish: Wish) -> Shared:
        """Simulate everything in one run; time of background messages is also that without others."""
        results, took, ideal = self._on_links(wish)
        if wish.engine != "flow":
            results = tuple(self._with_own_costs(k, result, wish) for k, result in enumerate(results))
        return results, took, ideal

    def _with_own_costs(self, k: int, result: Result, wish: Wish) -> Result:
        """Add to a time what the job's software costs it by itself, where the engine has links' costs for all jobs."""
        size, plan = self.entries[k].size, self.plans[k]
        if self._is_in_slots(k, wish) or not has_own_costs(plan.at(size), self.network):
            return result
        unwatched = wish.but(watch=None)
        rest = plan.run(size, unwatched).time - self.alone(k)._on_links(unwatched)[0][0].time
        last, whole = result.time_from_last_start + rest, 1 + rest / result.time
        interval = None if result.interval is None else (result.interval[0] * whole, result.interval[1] * whole)
        return dataclasses.replace(result, time=result.time + rest, time_from_last_start=last, interval=interval)

    def _is_in_slots(self, k: int, wish: Wish) -> bool:
        return wish.engine == "packet" and self.plans[k].in_slots

    def _on_links(self, wish: Wish) -> Shared:
        """Simulate everything in one run, without what software costs where the engine does not know it of each."""
        engine, framing = wish.engine, wish.framing
        in_slots = [self._is_in_slots(k, wish) for k in range(len(self.entries))]
        for entry, slots in zip(self.entries, in_slots, strict=True):
            if slots and (entry.weight != 1 or entry.rate_cap < np.inf):
                raise InputError(
                    f"{entry.name}: packets of a switch system have no weight or rate_cap, but a priority; "
                    "use engine flow"
                )
        self._require_packets(engine, in_slots)
        order = sorted(range(len(in_slots)), key=lambda k: self.entries[k].number or 0)
        plain, switched = [k for k in order if not in_slots[k]], [k for k in order if in_slots[k]]
        sized = self._sized(plain, wish)
        if engine == "packet":
            results = self._in_packets(sized, plain, [self._aggregation(k) for k in switched], wish)
        else:
            results = self._as_flows(sized, wish)
        n_background = len(self.messages.start)
        of_job = dict(zip(switched, results[len(plain) + n_background :], strict=True))
        carried = sum((result.link_bytes for result in results), np.zeros(self.network.n_links))
        for k, result in zip(plain, results, strict=False):
            size = self.entries[k].size
            run = self.plans[k].run_of(size, wish)
            of_job[k] = with_rest(run, result, carried) if engine == "flow" else run.with_launch(result)
        took = np.array([r.time for r in results[len(plain) : len(plain) + n_background]])
        named = tuple(
            dataclasses.replace(r, collective=p.schedule.name, engine=engine)
            for r, p in ((of_job[k], plan) for k, plan in enumerate(self.plans))
        )
        if sized.plan is None or not n_background:
            return named, took, took
        added = framing if engine == "flow" else framing or _roce()
        return named, took, self._ideal(sized.plan, len(plain), added)

    def _sized(self, which: list[int], wish: Wish) -> SizedJobs:
        """Lay out these jobs and the background's messages."""
        jobs, sizes, starts, laid = [], [], [], []
        framing = wish.framing
        for k in which:
            entry, run = self.entries[k], self.plans[k].run_of(self.entries[k].size, wish)
            laid.append(run.paths)
            sharing: dict[str, Any] = {"weight": entry.weight, "priority": entry.priority, "number": entry.number}
            if wish.engine == "packet":  # packets have the rates of links
                flags = run.in_packets if framing is None else None
                job = dataclasses.replace(run.paths.job, rate_cap=entry.rate_cap, **sharing)
                jobs.append(framed(job, flags))
            else:
                cap = min(run.paths.job.rate_cap, entry.rate_cap)
                jobs.append(shared_job(run, self.network, framing or run.framing, rate_cap=cap, **sharing))
            sizes.append(entry.size if run.sent is None else run.sent)
            starts += [entry.start] * jobs[-1].schedule.n_participants
        message = COLLECTIVES["binomial_broadcast"].build(2)
        sent = self.messages
        for src, dst, size, start, priority in zip(
            sent.src, sent.dst, sent.size, sent.start, sent.priority.tolist(), strict=True
        ):
            job = FlowJob(message, Placement([src, dst]), priority=priority)
            jobs.append(job if wish.engine == "packet" else framed(job, framing))
            sizes.append(size)
            starts += [start, start]
        seed = self.seed if wish.hash_seed is None else wish.hash_seed
        key = (wish.engine == "packet", framing, seed, *map(id, laid))
        if jobs and key not in self._laid:  # the paths are kept too, so that no others have their ids
            if len(self._laid) == MAX_LAID or sum(job.schedule.n_transfers for job in jobs) > MAX_KEPT:
                self._laid.clear()
            self._laid[key] = laid, plan_flows(self.network, jobs, routing=self.routing, seed=seed)
        return SizedJobs(self._laid[key][1] if jobs else None, np.array(sizes), np.array(starts))

    def _as_flows(self, sized: SizedJobs, wish: Wish) -> list[Result]:
        """Simulate flows that share links, or with alpha-beta none; counters say what flaps cost each job."""
        assert sized.plan is not None
        simulate = SIMULATORS[wish.engine]
        if wish.model.flaps is None:
            return list(simulate(sized.plan, sized.sizes, starts=sized.starts, trace=wish.trace))
        self._require_no_own_costs()
        late = simulate_flows(sized.plan, sized.sizes, starts=sized.starts, trace=wish.trace, flaps=wish.model.flaps)
        whole = simulate_flows(sized.plan, sized.sizes, starts=sized.starts)
        return [
            dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
            for r, w in zip(late, whole, strict=True)
        ]

    def _require_no_own_costs(self) -> None:
        for entry, plan in zip(self.entries, self.plans, strict=True):
            if has_own_costs(plan.at(entry.size), self.network):
                name = plan.schedule.name
                raise InputError(f"flaps are not modelled for several groups with software costs: {name}")

    def _require_packets(self, engine: str, in_slots: list[bool]) -> None:
        """Refuse jobs that say how their packets are sent where there are none, or a switch system sends them."""
        for entry, slots in zip(self.entries, in_slots, strict=True):
            if entry.packets and slots:
                raise InputError(
                    f"{entry.name}: packets of a switch system keep to the links of its tree, and its workers send as "
                    f"the system says; leave out {', '.join(entry.packets)}"
                )
        told = next((one for one in (*(entry.packets for entry in self.entries), *self.background) if one), None)
        if told and engine != "packet":
            raise InputError(f"{next(iter(told))} of a job needs engine packet, got engine {engine}")

    def _in_packets(self, sized: SizedJobs, plain: list[int], slots: list[AggregationJob], wish: Wish) -> list[Result]:
        """Simulate packets: of messages, and of the slots of switch systems."""
        from commsim.packets.packet_work import expect_packets
        from commsim.packets.run_packets import run_beside, simulate_packets

        several = len(self.entries) > 1 or sized.plan is not None  # sums of a job by itself are proved elsewhere
        if sized.plan is not None:
            expect_packets(sized.plan, sized.sizes, wish.model.transport)
        options: dict[str, Any] = {
            "starts": sized.starts, "seed": self.seed, "framing": wish.framing, "watch": wish.model.watch,
        }  # fmt: skip
        of_background = [own_transport(one, self.network, wish) for one in self.background]
        options["by_job"] = [own_transport(self.entries[k].packets, self.network, wish) for k in plain]
        options["by_job"] += [of_background[i] if of_background else None for i in self.messages.of]
        if slots or sized.plan is None:
            options["flaps"] = wish.model.flaps
            options |= {} if sized.plan is not None else {"network": self.network, "framing": None, "starts": 0.0}
            return list(
                run_beside(sized.plan, sized.sizes, slots, wish.model.transport, values=several, **options).results
            )
        if wish.model.flaps is not None:
            self._require_no_own_costs()
        return list(
            simulate_packets(
                sized.plan, sized.sizes, wish.model.transport, flaps=wish.model.flaps, trace=wish.trace, **options
            )
        )

    def _aggregation(self, k: int) -> AggregationJob:
        entry, plan = self.entries[k], self.plans[k]
        assert isinstance(plan, AggregatedPlan)
        job = plan.system.job(plan.network, plan.ranks, entry.size, (entry.start,) * len(plan.ranks))
        return dataclasses.replace(job, priority=entry.priority)

    def _ideal(self, plan: FlowPlan, first: int, framing: Framing | None) -> NDArray[np.float64]:
        """Seconds of each background message by itself: its bytes at the rate of its path, and the latency."""
        rate = plan.routes.rates(plan.network)
        of_connection = np.flatnonzero(plan.job_of_connection >= first)
        on_wire = np.asarray((framing or Framing()).on_wire(self.messages.size), np.float64)
        return np.asarray(on_wire / rate[of_connection] + plan.routes.latency[of_connection])

    def alone(self, k: int) -> PlacedJobs:
        """Return job `k` by itself; ECMP hashes what it hashes beside the others."""
        entry = self.entries[k]
        named = dataclasses.replace(entry, number=k if entry.number is None else entry.number)
        only = (named,), (self.plans[k],), BackgroundMessages.none()
        return PlacedJobs(self.network, *only, self.routing, self.seed)


def _roce() -> Framing:
    from commsim.packets.links.queues import ROCE

    return ROCE
