"""A collective on several groups of ranks at once, on one network: each group is a job of one simulation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.alpha_beta import simulate_alpha_beta
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.routing.flaps import Flaps
from commsim.scenario import Plan, prepare
from commsim.scenario.inputs import PACKED, load_network, load_placement
from commsim.scenario.plans.aggregated import AggregatedPlan
from commsim.scenario.plans.several import Several
from commsim.scenario.scenario import Wish
from commsim.scenario.together.job_costs import has_own_costs, shared_job, with_rest

if TYPE_CHECKING:
    from commsim.engine.packet.transport import Fabric, Transport

SIMULATORS = {"flow": simulate_flows, "alpha-beta": simulate_alpha_beta}


@dataclass(frozen=True, slots=True)
class PreparedGroups:
    """Groups placed on a network, prepared to be predicted together.

    Parameters
    ----------
    groups : tuple of Plan
        The collective of each group, as if it were the only one.
    plan : FlowPlan
        All of them at once.
    """

    groups: tuple[Plan, ...]
    plan: FlowPlan

    @property
    def network(self) -> Network:
        """Network that all groups share."""
        return self.plan.network

    @property
    def schedule(self) -> Schedule:
        """What the first group sends; the others run the same collective."""
        return self.groups[0].schedule

    @property
    def notes(self) -> tuple[str, ...]:
        """What was derived for each group."""
        return tuple(dict.fromkeys(note for group in self.groups for note in group.notes))

    def run(self, size: float, wish: Wish) -> Several:
        """Predict one size; a result for each group."""
        if wish.start_jitter:
            raise InputError("start jitter is not modelled for groups")
        results = self.predict(
            size, engine=wish.engine, framing=wish.framing, trace=wish.trace, transport=wish.transport,
            fabric=wish.fabric, flaps=wish.flaps,
        )  # fmt: skip
        return Several(tuple(group.checked(found) for group, found in zip(self.groups, results, strict=True)))

    def predict(
        self,
        size: float,
        *,
        engine: str = "flow",
        framing: Framing | None = None,
        trace: bool = False,
        transport: Transport | None = None,
        fabric: Fabric | None = None,
        flaps: Flaps | None = None,
    ) -> tuple[Result, ...]:
        """Predict one size, the same in every group.

        Parameters
        ----------
        size : float, bytes
            Size of each group's operation.
        engine, framing, trace, transport, fabric, flaps
            Same as in :meth:`commsim.scenario.Plan.predict`.

        Returns
        -------
        tuple of Result
            One per group, in order.

        Raises
        ------
        InputError
            If the engine knows no contention between groups, or the size is not positive.
        """
        if engine not in (*SIMULATORS, "packet"):
            raise InputError(
                f"groups are simulated together by {', '.join(SIMULATORS)} or packet, got engine {engine!r}"
            )
        if flaps is not None and engine not in ("flow", "packet"):
            raise InputError(f"links flap in the engines flow and packet, got engine {engine}")
        if engine != "packet" and (transport is not None or fabric is not None):
            raise InputError(f"transports and queues are the packet engine's, got engine {engine}")
        wish = Wish(
            engine=engine, framing=framing, trace=trace, transport=transport, fabric=fabric, flaps=flaps,
            seed=self.plan.seed,
        )  # fmt: skip
        if len(self.groups) == 1:
            return (self.groups[0].run(size, wish),)
        if engine == "packet" and isinstance(self.groups[0], AggregatedPlan):
            return self._in_slots(size, wish)
        sized = [group.at(size) for group in self.groups]
        own = [has_own_costs(group, self.network) for group in sized]
        if flaps is not None and any(own):
            name = sized[own.index(True)].schedule.name
            raise InputError(f"flaps are not modelled for several groups with software costs: {name}")
        found = self._together(size, sized, wish)
        if engine == "flow":
            return tuple(with_rest(group, result, size) for result, group in zip(found, sized, strict=True))
        done = [group.finished(result, size) for result, group in zip(found, sized, strict=True)]
        for k in np.flatnonzero(own).tolist():  # all see the network's links: what software costs is added
            rest = self.groups[k].run(size, wish).time - self._only(k)._together(size, [sized[k]], wish)[0].time
            last = found[k].time_from_last_start + rest
            done[k] = dataclasses.replace(found[k], size=size, time=found[k].time + rest, time_from_last_start=last)
        return tuple(done)

    def _only(self, k: int) -> PreparedGroups:
        """Return group `k` by itself."""
        group = self.groups[k]
        plan = plan_flows(self.network, [group.paths.job], routing=self.plan.routing, seed=self.plan.seed)
        return PreparedGroups((group,), plan)

    def _in_slots(self, size: float, wish: Wish) -> tuple[Result, ...]:
        """Simulate groups whose switches add as jobs, in packets of the switch system."""
        from commsim.scenario.together.background import Messages
        from commsim.scenario.together.composition import JobEntry
        from commsim.scenario.together.predict import Together

        for name in ("framing", "trace", "flaps"):
            if getattr(wish, name):
                raise InputError(f"{name} is not modelled for groups in packets of switch systems; use engine flow")
        entries = tuple(
            JobEntry(f"group {k}", group.schedule.name, tuple(range(group.schedule.n_ranks)), size)
            for k, group in enumerate(self.groups)
        )
        jobs = Together(self.network, entries, self.groups, Messages.none(), self.plan.routing, wish.seed)
        return jobs.predict(engine="packet", transport=wish.transport, fabric=wish.fabric)[0]

    def _together(self, size: float, sized: Sequence[Plan], wish: Wish) -> tuple[Result, ...]:
        """Simulate the messages of all groups at once, without the launch and the rest of their software."""
        plan = self.plan
        if any(at_size is not group for at_size, group in zip(sized, self.groups, strict=True)):
            jobs = [group.paths.job for group in sized]
            if wish.engine != "packet":
                framings = [group.framing if wish.framing is None else None for group in sized]
                jobs = [shared_job(group, plan.network, cut) for group, cut in zip(sized, framings, strict=True)]
            plan = plan_flows(plan.network, jobs, routing=plan.routing, seed=plan.seed)
        sent = np.array([size if group.sent is None else group.sent for group in sized])
        if wish.engine == "packet":
            from commsim.engine.packet.messages import simulate_messages

            return simulate_messages(
                plan, sent, transport=wish.transport, fabric=wish.fabric, framing=wish.framing, trace=wish.trace,
                flaps=wish.flaps, seed=wish.seed,
            )  # fmt: skip
        if wish.flaps is None:
            return SIMULATORS[wish.engine](plan, sent, framing=wish.framing, trace=wish.trace)
        results = simulate_flows(plan, sent, framing=wish.framing, trace=wish.trace, flaps=wish.flaps)
        whole = simulate_flows(plan, sent, framing=wish.framing)
        return tuple(
            dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
            for r, w in zip(results, whole, strict=True)
        )


def prepare_groups(
    collective: str | Schedule,
    network: str | Network,
    groups: Sequence[Sequence[int]],
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
) -> PreparedGroups:
    """Place all ranks, and let every group of them run the collective.

    Parameters
    ----------
    collective, network, placement, routing, seed
        Same as in :func:`commsim.scenario.prepare`; the placement is that of all ranks.
    groups : sequence of sequence of int
        Ranks of each group, in the order in which they are the collective's ranks. A rank may be in several.
    n_ranks : int, optional
        Ranks in all, by default as many as the placement has, or all seats of the network.

    Raises
    ------
    InputError
        If a group is empty, or names a rank twice or one that does not exist.
    """
    network = load_network(network) if isinstance(network, str) else network
    placement = PACKED if placement is None else placement
    if isinstance(placement, str):
        placement = load_placement(placement, network, n_ranks or len(network.endpoints), seed)
    n_ranks = len(placement.nodes)
    if not groups:
        raise InputError("at least one group is needed, got none")
    for group in groups:
        if not group or len(set(group)) != len(group) or not all(0 <= rank < n_ranks for rank in group):
            raise InputError(f"a group must be different ranks 0..{n_ranks - 1}, got {list(group)}")
    prepared = [_prepare(collective, network, placement, group, routing, seed) for group in groups]
    jobs = [group.paths.job for group in prepared]
    can = np.logical_or.reduce(
        [group.network.aggregates for group in prepared]
    )  # switches that some group put helpers on
    network = dataclasses.replace(network, aggregates=can)
    return PreparedGroups(tuple(prepared), plan_flows(network, jobs, routing=routing, seed=seed))


def _prepare(
    collective: str | Schedule, network: Network, placement: Placement, group: Any, routing: Any, seed: int
) -> Plan:
    where = Placement(placement.nodes[list(group)])
    named = isinstance(collective, str) and not collective.endswith(".npz")
    n_ranks = len(group) if named else None  # a schedule's participants are all in the group, helpers too
    prepared = prepare(collective, network, n_ranks=n_ranks, placement=where, routing=routing, seed=seed)
    title = f"group {','.join(map(str, group))}: "
    return dataclasses.replace(prepared, notes=tuple(title + note for note in prepared.notes))
