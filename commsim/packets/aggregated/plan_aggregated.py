"""The plan of a collective that switches aggregate: packets of its switch system, or their flow view at a size."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives import BLOCKING
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.packets.aggregated.aggregator_seats import SeatedPlacement, seat_aggregators
from commsim.packets.aggregated.shared_machines import of_shared_machines
from commsim.packets.aggregated.switch_system import Aggregation, FlowView, describe_packets, links_of_trees
from commsim.packets.aggregated.systems import split_system, usual_system
from commsim.prediction.build import CollectiveRequest, PlacedSchedule, laid_out
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import Run, Starts
from commsim.prediction.result_remarks import remarks_of_switches
from commsim.prediction.scenario import Wish
from commsim.routing.aggregator_placement import AggregatorPlacement
from switch_model.system import System

NOT_SPRAYED = (
    "{}: an aggregating switch needs all packets of a job on the job's tree, and these transports spread them over "
    "paths; use the transport window, dctcp or dcqcn without --balancing"
)
# One rule for overheads that are given, assumed and calibrated: they are of messages that the host's software posts.
NO_OVERHEAD = "overhead: no effect on packets of switch systems, whose hosts cost what the system says"
# Systems whose programs were written for that switch.
OF_TOFINO = ("switchml_udp", "switchml_rdma", "atp")
__all__ = ["NOT_SPRAYED", "NO_OVERHEAD", "AggregatedPlan", "as_messages", "plan_aggregated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedPlan(Plan):
    """A collective whose aggregators sit on switches.

    Parameters
    ----------
    system : Aggregation
        Switch system, and places of its aggregators.
    had_overheads : bool
        Whether the network that was asked for has overheads of messages, which packets of switch systems have not.
    """

    system: Aggregation
    had_overheads: bool = False

    def view(self, size: float) -> FlowView | None:
        """Return what all engines but the packet engine take from the switch system at a size; None for none."""
        if not 0 < size < float("inf"):
            return None
        return self.system.flow_view(self.network, size)

    def at(self, size: float) -> AggregatedPlan:
        """Return the plan of one size: chunks are of whole packets, and have the rate that windows allow."""
        if (view := self.view(size)) is None:
            return self
        key = (view.rate_cap, *(view.parameters.get(name) for name in ("n_chunks", "pool")))
        if key not in self._at:
            schedule = self.system.build(self.schedule.n_ranks, **view.parameters)
            self._at[key] = self.with_schedule(schedule, view.parameters, self.network, rate_cap=view.rate_cap)
        plan: AggregatedPlan = self._at[key]
        return dataclasses.replace(plan, framing=view.framing, sent=view.size, before=view.latency)

    @property
    def own_links(self) -> NDArray[np.int64]:
        """Links of the trees, to which packets of switch systems keep."""
        return np.asarray(links_of_trees(self.system.where.trees), np.int64)

    @property
    def in_slots(self) -> bool:
        """Whether the packet engine simulates the slots of a switch system, and no messages."""
        return True

    def run_of(self, size: float, wish: Wish) -> Run:
        """Return what an engine plays at one size; in packets slot by slot, as ``commsim switch simulate``."""
        if wish.engine != "packet":
            return Plan.run_of(self, size, wish)
        slots = functools.partial(self._slots, size)
        return Run(size, self.sent, self.schedule, self.parameters, self.network, self.paths, slots=slots)

    def _of_switches(self, results: Sequence[Result], has_framing: bool, verbose: bool) -> list[Remark]:  # noqa: ARG002
        """Describe what packets of the system leave out; of other engines, when verbose, where these differ."""
        remarks = of_shared_machines(self.schedule.name, self.network, self.ranks)
        remarks += [Remark("overhead-unused", NO_OVERHEAD)] if self.had_overheads else []
        if results[0].engine == "packet":
            told = "transport flags: no effect, packets, windows and retransmissions are the system's"
            remarks.append(Remark("option-unused", told))
        elif verbose:
            views = {r.size: self.view(r.size) for r in results}
            gaps = {size: view.differences for size, view in views.items() if view is not None}
            remarks += [
                Remark("against-packets", f"{size:.0f} B: against engine packet: {'; '.join(gap)}")
                for size, gap in gaps.items() if gap
            ]  # fmt: skip
        return remarks_of_switches(self.schedule, self.network, results, remarks)

    def _slots(self, size: float, starts: Starts, wish: Wish) -> Result:
        """Simulate the slots of a switch system."""
        from commsim.packets.aggregated.aggregation_jobs import simulate_job

        if wish.sprays:
            raise InputError(NOT_SPRAYED.format(self.schedule.name))
        if wish.framing is not None or wish.trace:
            raise InputError(
                f"{self.schedule.name}: packets are those of {self.system.spec.entry.name}, and no transfers "
                f"have times; {self.schedule.name}:system=none sends transfers in packets of any framing"
            )
        if wish.model.flaps is not None:
            raise InputError(f"{self.schedule.name}: flaps are not modelled for packets of switch systems")
        late = starts[: len(self.ranks)] if starts.any() else ()
        job = self.system.job(self.network, self.ranks, size, late)
        result = simulate_job(
            self.network, job, None if wish.model.transport is None else wish.model.transport.fabric, wish.seed
        )
        return dataclasses.replace(result, collective=self.schedule.name, engine="packet", size=size)


def plan_aggregated(request: CollectiveRequest) -> Plan:
    """Plan a collective whose helpers sit on switches; without a switch system they exchange messages.

    Raises
    ------
    InputError
        If the switch system or its parameters are wrong, or helpers have no seats.
    """
    entry = request.entry
    raw, spec = split_system(entry, request.raw)
    parameters = dataclasses.replace(request, raw=raw).parameters
    if parameters.get(BLOCKING) and spec is not None:
        raise InputError(f"{entry.name}: switches add packets, which have no steps that wait; system=none sends steps")
    seated = seat_aggregators(
        entry.name, (spec or usual_system(entry)).at(), request.network, n_ranks=request.n_ranks,
        placement=request.placement, seed=request.seed, assume_programmable=request.assume_programmable,
    )  # fmt: skip
    where, notes = seated.aggregators, seated.notes
    parameters_given = parameters.copy()
    parameters["tree"] = None if where is None else where.tree
    if spec is not None and where is not None:
        notes = (*notes, Remark("switch-system", f"{entry.name}: as {describe_packets(spec)}"))
        notes += _beyond_a_pipe(entry.name, spec.at(), where, seated)
    collective = PlacedSchedule(entry.build(seated.n_ranks, **parameters), parameters, seated.placement, notes)
    network, is_added = seated.network, spec is not None and where is not None
    free = without_overheads(network) if is_added else network
    plan = laid_out(collective, dataclasses.replace(request, network=free))
    if spec is None or where is None:
        return plan
    system = Aggregation(entry.build, parameters_given, spec, where)
    return plan.as_kind(AggregatedPlan, system=system, had_overheads=free is not network and network.overhead_given)


def _beyond_a_pipe(
    name: str, system: System, where: AggregatorPlacement, seated: SeatedPlacement
) -> tuple[Remark, ...]:
    """Describe that a switch has more children than the switches take for which the system was written."""
    if system.name not in OF_TOFINO:
        return ()
    from switch_model.budget.layout_of_jobs import lay_out
    from switch_model.budget.tofino import tofino_1

    widest = max(max(tree.fan_in) for tree in where.trees)
    leaving = np.isin(seated.network.src, seated.placement.nodes[: seated.n_ranks])
    try:
        rate = float(seated.network.bandwidth[leaving].min())
        most = lay_out(system, tofino_1(), 1, widest, system.pool_size, rate).most_workers
    except InputError:  # ports are slower than these hosts
        return ()
    text = f"{name}: {widest} workers at a switch, and a Tofino takes {most}: commsim switch budget"
    return (Remark("switch-too-small", text, needed=True),) if widest > most else ()


def without_overheads(network: Network) -> Network:
    """Return the network as packets of switch systems see it: a host posts a call, and no message for each packet."""
    if not network.overhead.any() and not network.recv_overhead.any():
        return network
    none = np.zeros(network.n_nodes)
    return dataclasses.replace(network, overhead=none, recv_overhead=none)


def as_messages(plan: AggregatedPlan) -> Plan:
    """Return the plan of the same schedule without its switch system: helpers exchange messages, and no packets."""
    return plan.as_kind(Plan)
