"""What is under way on the network: collectives and messages that begin at any time, and share links max-min.

Messages that share links are a part of the traffic, from the first moment at which one of them is under way to the
first at which none is; a collective makes all traffic one part. A part is simulated as a whole by the flow engine,
again whenever something begins: what began later changes nothing that is over. So the times are those of one
simulation that knows everything beforehand. The cost grows with the square of what begins in between; what was
simulated once, at the same times after the beginning, is not simulated again. Where only messages are under way, what
has begun is a place in a tree (:class:`MessageTimes`), which each message that begins follows by one look-up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.emulation.clock import Ticks, seconds_of, ticks_of
from commsim.engine.flow import play
from commsim.engine.flow_job import one_job_result
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.flow_times import FlowTimes, link_bytes
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.jobs.job_costs import framed, shared_job, shared_network
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario, Wish

from .message_job import message_job, payload_of, ready_times, without_bytes
from .shared_resources import SharedResources
from .traffic_times import Event, MessageTimes, TrafficPart, TrafficTimes
from .under_way import Flowing, PendingMessage

# Results of simulations that are kept, in all.
MAX_KEPT = 4096
__all__ = ["EmulatedTraffic"]


@dataclass(eq=False)
class EmulatedTraffic:
    """The network of an emulation, with what is under way on it.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults and costs, routing, seed and headers; placement and number of all ranks.
    nodes : int32[n_ranks]
        Node of each rank.
    leaves_together : bool
        Whether all ranks leave a collective when its last message is complete, as :func:`commsim.predict` counts; else
        each when its own part is.
    """

    scenario: Scenario
    nodes: NDArray[np.int32]
    leaves_together: bool = True
    carried: NDArray[np.float64] = field(init=False)
    n_simulated: int = 0
    _shares: SharedResources = field(init=False)
    _parts: list[TrafficPart] = field(default_factory=list)
    _part_of: dict[int, TrafficPart] = field(default_factory=dict)  # by the link or node that its messages use
    _last: dict[tuple[int, int], PendingMessage] = field(default_factory=dict)
    _n_sent: int = 0
    _soonest: Ticks | None = None  # when something ends next
    _is_known: bool = True  # whether that is so
    _kept: dict[Any, TrafficTimes] = field(default_factory=dict)
    _root: MessageTimes = field(default_factory=MessageTimes)
    _n_places: int = 0
    _plans: dict[Any, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.carried = np.zeros(self.network.n_links)
        self._shares = SharedResources(self.scenario, self.nodes)

    @property
    def network(self) -> Network:
        """The network."""
        return self.scenario.network

    def plan(self, members: tuple[int, ...], spec: str) -> Plan:
        """Return the plan of a collective on some ranks, as :func:`commsim.predict` makes it."""
        key = members, spec
        if key not in self._plans:
            self._plans[key] = prepare(
                spec, self.network, n_ranks=len(members), placement=Placement(self.nodes[list(members)]),
                routing=self.scenario.routing, seed=self.scenario.seed,
                assume_programmable=self.scenario.assume_programmable,
            )  # fmt: skip
        return self._plans[key]

    def begin(self, members: tuple[int, ...], spec: str, n_bytes: float, at: Ticks) -> Flowing:
        """Let a collective begin, which ranks enter one by one."""
        plan = self.plan(members, spec)
        part = self._joined(self._parts, at)  # its links are not looked at: all is simulated together
        part.place, self._is_known = None, False
        flowing = Flowing(plan, (members, spec, n_bytes), n_bytes, [None] * len(members), [None] * len(members))
        part.running.append(flowing)
        part.n_open += 1
        return flowing

    def enter(self, flowing: Flowing, rank: int, at: Ticks) -> None:
        """Let a rank of the group enter."""
        flowing.n_entered += flowing.starts[rank] is None
        flowing.starts[rank] = at
        self._parts[0].events, self._is_known = None, False

    def send(self, src: int, dst: int, n_bytes: float, at: Ticks) -> PendingMessage:
        """Let a message begin; it waits for those between the same ranks that have not left."""
        last = self._last.get((src, dst))
        chain = 0 if last is None else last.chain + (last.sent is not None)
        self._n_sent += 1
        message = self._last[src, dst] = PendingMessage(src, dst, n_bytes, at, chain, self._n_sent)
        if self._parts and self._parts[0].running:
            part = self._parts[0]
        else:
            message.path, shared = self._shares.of(src, dst, chain)
            part = self._sharing(shared, at)
        part.messages.append(message)
        part.n_open += 1
        part.events, self._is_known = None, False
        if part.place is not None:
            part.place = self._place_after(part, part.place, message)
        return message

    def _sharing(self, shared: Collection[int], at: Ticks) -> TrafficPart:
        """Return the part whose messages share links or nodes with a message that begins: one of its own, or joined."""
        part_of = self._part_of
        found: list[TrafficPart] = []
        if part_of:
            for one in shared:
                part = part_of.get(one)
                if part is not None and part not in found:
                    found.append(part)
        if not found:
            part = TrafficPart(at, self._root)
            self._parts.append(part)
        else:
            part = found[0] if len(found) == 1 else self._joined(found, at)
        part_of.update(dict.fromkeys(shared, part))
        part.shared.update(shared)
        return part

    def _joined(self, parts: Sequence[TrafficPart], at: Ticks) -> TrafficPart:
        """Return one part for some, or a new one that begins now; what it has of messages is looked up anew."""
        joined = TrafficPart(min((part.begin for part in parts), default=at), self._root)
        for part in parts:
            joined.add(part)
        self._parts = [part for part in self._parts if part not in parts]
        self._parts.append(joined)
        joined.messages.sort(key=lambda message: message.number)
        for one in joined.shared:
            self._part_of[one] = joined
        if joined.place is not None:
            for message in joined.messages:
                joined.place = self._place_after(joined, joined.place, message)
        return joined

    def _place_after(self, part: TrafficPart, place: MessageTimes, message: PendingMessage) -> MessageTimes:
        """Return the place of the messages under way with one more: chains count from the first of their ranks."""
        src, dst, chain = message.src, message.dst, message.chain
        first = part.first_chains.setdefault((src, dst), chain)
        key = src, dst, message.n_bytes, message.start - part.begin, chain - first, message.path
        after = place.then.get(key)
        if after is None:
            if self._n_places >= MAX_KEPT:
                self._root, self._n_places = MessageTimes(), 0
            self._n_places += 1
            after = place.then[key] = MessageTimes()
        return after

    def next_end(self) -> Ticks | None:
        """When something ends next if nothing else begins; None where nothing will."""
        if not self._is_known:
            soonest = None
            for part in self._parts:
                events = part.events if part.events is not None else self._listed(part)
                if part.next < len(events):
                    end = part.begin + events[part.next][0]
                    soonest = end if soonest is None or end < soonest else soonest
            self._soonest, self._is_known = soonest, True
        return self._soonest

    def take_ended(self, until: Ticks) -> list[tuple[Ticks, Flowing | PendingMessage, int]]:
        """Take what has ended: a collective and the rank that leaves, or a message that has left (0) or arrived (1)."""
        ended: list[tuple[Ticks, int, int, int, Flowing | PendingMessage]] = []
        over = []
        for part in self._parts:
            if part.events is None:
                self._listed(part)
            part.take(until, ended)
            if not part.n_open:
                over.append(part)
        if len(self._parts) > 1:
            ended.sort(key=itemgetter(0, 1, 2, 3))
        for part in over:
            self._close(part)
        self._is_known = False
        return [(at, what, which) for at, _, _, which, what in ended]

    def all_carried(self) -> NDArray[np.float64]:
        """Bytes that each link has carried, with those of what never ended."""
        return sum((part.found.link_bytes() for part in self._parts if part.found is not None), self.carried)

    def _close(self, part: TrafficPart) -> None:
        """Forget what is over, when nothing of a part is under way; chains when nothing at all is."""
        if part.found is not None:
            self.carried += part.found.link_bytes()
        self._parts.remove(part)
        if not self._parts:
            self._part_of.clear()
            self._last.clear()
            return
        for one in part.shared:
            if self._part_of.get(one) is part:
                del self._part_of[one]

    def _listed(self, part: TrafficPart) -> list[Event]:
        """List all of a part that will end, in order."""
        if part.events is None:
            part.events, part.next = [], 0
            if part.n_open and (
                part.messages
                or any(message.n_entered == len(message.starts) for message in part.running)
                or not self.leaves_together
            ):
                part.found = self._simulated(part)
                events = part.found.events()
                part.events = list(filter(part.is_open, events)) if part.n_taken else events
        return part.events

    def _simulated(self, part: TrafficPart) -> TrafficTimes:
        place, begin = part.place, part.begin
        if place is not None:
            if place.times is None:
                place.times = self._together(part)
                self.n_simulated += 1
            return place.times
        key = (
            tuple((message.key, message.relative(begin)) for message in part.running),
            tuple((m.src, m.dst, m.n_bytes, m.start - begin, m.chain) for m in part.messages),
        )
        if key not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            alone = part.running[0] if len(part.running) == 1 and not part.messages else None
            is_plain = alone is not None and isinstance(alone.relative(begin), int) and self.leaves_together
            self.n_simulated += 1
            self._kept[key] = self._alone(alone, begin) if alone is not None and is_plain else self._together(part)
        return self._kept[key]

    def _alone(self, flowing: Flowing, begin: Ticks) -> TrafficTimes:
        """Predict a collective that has the network to itself and begins everywhere at once."""
        plan, size, scenario = flowing.plan, flowing.n_bytes, self.scenario
        wish = Wish(seed=scenario.seed, framing=scenario.wish.framing)
        if not size and plan.sizes([1.0])[0] != [0.0]:
            return self._together(TrafficPart(begin, None, [flowing]))
        result = plan.run(size, wish)
        end = (flowing.starts[0] or 0) - begin + ticks_of(result.time)
        return TrafficTimes([[end] * len(flowing.starts)], [], [], result.link_bytes)

    def _together(self, part: TrafficPart) -> TrafficTimes:
        """Simulate everything under way in the flow engine."""
        network = (
            shared_network(self.network, [message.plan for message in part.running]) if part.running else self.network
        )
        jobs, payloads, starts = [], [], []
        framing = self.scenario.wish.framing
        for message in part.running:
            plan = message.plan.at(message.n_bytes)
            headers = framing or plan.framing
            job = shared_job(plan, network, headers, rate_cap=plan.paths.job.rate_cap)
            if not message.n_bytes:
                job = framed(without_bytes(job), headers)
            jobs.append(job)
            payloads.append(payload_of(job, message.n_bytes if plan.sent is None else plan.sent))
            entered = [np.inf if start is None else seconds_of(start - part.begin) for start in message.starts]
            helpers = job.schedule.n_helpers
            starts += entered + [min(entered)] * helpers
        if part.messages:
            jobs.append(message_job(part.messages, self.nodes))
            on_wire = np.array([message.n_bytes for message in part.messages])
            payloads.append(np.asarray((framing.on_wire(on_wire) if framing else on_wire), np.float64))
            starts += [0.0] * len(self.nodes)
        plan_of_all = plan_flows(network, jobs, routing=self.scenario.routing, seed=self.scenario.seed)
        ready = ready_times(part, plan_of_all) if part.messages else 0.0
        played = play(plan_of_all, np.concatenate(payloads), starts=starts, ready=ready)
        times = played.times
        ends = [
            self._ends(part.running[j], plan_of_all, times, j, starts, first)
            for j, first in enumerate(np.cumsum([0, *(job.schedule.n_participants for job in jobs[:-1])]).tolist())
            if j < len(part.running)
        ]
        mine = plan_of_all.transfers_of[-1] if part.messages else slice(0, 0)
        sent, done = ([_after(time) for time in of[mine].tolist()] for of in (times.sent, times.done))
        return TrafficTimes(ends, sent, done, (plan_of_all, times))

    def _ends(
        self, one: Flowing, plan: FlowPlan, times: FlowTimes, j: int, starts: Sequence[float], first: int
    ) -> list[Ticks | None]:
        """When the ranks of a collective leave it, with what its software takes beyond its messages."""
        schedule, mine = plan.jobs[j].schedule, plan.transfers_of[j]
        entered = np.array(starts[first : first + schedule.n_ranks])
        done, sent = times.done[mine], times.sent[mine]
        at_size = one.plan.at(one.n_bytes)
        last = max(float(done.max(initial=0.0)), float(entered.max()))
        own = np.full(schedule.n_participants, last)
        if not self.leaves_together:
            ends = plan.ends[plan.connection_of[mine]] - first
            own[: schedule.n_ranks] = entered
            np.maximum.at(own, ends[:, 1], done)
            np.maximum.at(own, ends[:, 0], sent)
        rest = at_size.before
        if isinstance(at_size.paths, ClosedFormPaths) and np.isfinite(last) and one.n_bytes:
            begin = float(entered.min())
            result = one_job_result(
                plan.network, schedule, one.n_bytes, entered=entered, last=last, begin=begin,
                carried=(link_bytes(plan, times, j), 0.0), counters={},
            )  # fmt: skip
            rest += at_size.paths.with_rest(result, one.n_bytes).time - result.time
        return [_after(time + rest) for time in own[: schedule.n_ranks].tolist()]


def _after(seconds: float) -> Ticks | None:
    return ticks_of(seconds) if seconds < np.inf else None
