"""What is under way on the network: collectives and messages that begin at any time, and share links max-min.

From the first moment at which anything is under way to the first at which nothing is, all of it is simulated together
by the flow engine, again whenever something begins: what began later changes nothing that is over. So the times are
those of one simulation that knows everything beforehand. The cost grows with the square of what begins in between;
what was simulated once, at the same times after the beginning, is not simulated again. Where only messages are under
way, what has begun is a place in a tree (:class:`MessageTimes`), which each message that begins follows by one look-up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH
from commsim.engine.flow import play
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.flow_times import FlowTimes, link_bytes
from commsim.engine.results import one_job_result
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.jobs.job_costs import framed, shared_job, shared_network
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario, Wish

from .clock import Ticks, seconds_of, ticks_of
from .traffic_times import Event, MessageTimes, TrafficTimes
from .under_way import Flowing, PendingMessage

# Results of simulations that are kept, in all.
MAX_KEPT = 4096
# Number that ECMP hashes for messages, the same whatever collectives are under way beside them.
MESSAGES = 30
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
    _begin: Ticks = 0
    _running: list[Flowing] = field(default_factory=list)
    _messages: list[PendingMessage] = field(default_factory=list)
    _last: dict[tuple[int, int], PendingMessage] = field(default_factory=dict)
    _n_open: int = 0
    _events: list[Event] | None = None  # what will end, in order, in ticks after the beginning; None: to be listed
    _next: int = 0  # the next of them
    _n_taken: int = 0  # what has ended since the beginning
    _found: TrafficTimes | None = None
    _kept: dict[Any, TrafficTimes] = field(default_factory=dict)
    _root: MessageTimes = field(default_factory=MessageTimes)
    _n_places: int = 0
    _place: MessageTimes | None = None  # of the messages under way; None where a collective is
    _plans: dict[Any, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.carried = np.zeros(self.network.n_links)

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
        self._open(at)
        flowing = Flowing(plan, (members, spec, n_bytes), n_bytes, [None] * len(members), [None] * len(members))
        self._running.append(flowing)
        self._n_open += 1
        return flowing

    def enter(self, flowing: Flowing, rank: int, at: Ticks) -> None:
        """Let a rank of the group enter."""
        flowing.n_entered += flowing.starts[rank] is None
        flowing.starts[rank] = at
        self._events = None

    def send(self, src: int, dst: int, n_bytes: float, at: Ticks) -> PendingMessage:
        """Let a message begin; it waits for those between the same ranks that have not left."""
        messages = self._messages
        if not messages and not self._running:
            self._begin, self._place = at, self._root
        last = self._last.get((src, dst)) if messages else None
        chain = 0 if last is None else last.chain + (last.sent is not None)
        message = self._last[src, dst] = PendingMessage(src, dst, n_bytes, at, chain)
        messages.append(message)
        self._n_open += 1
        self._events = None
        if self._place is not None:
            key = src, dst, n_bytes, at - self._begin, chain
            self._place = self._place.then.get(key) or self._new_place(self._place, key)
        return message

    def _new_place(self, place: MessageTimes, key: tuple[int, int, float, Ticks, int]) -> MessageTimes:
        """Return what a message leads to that did not begin there before."""
        if self._n_places >= MAX_KEPT:
            self._root, self._n_places = MessageTimes(), 0
        self._n_places += 1
        after = place.then[key] = MessageTimes()
        return after

    def next_end(self) -> Ticks | None:
        """When something ends next if nothing else begins; None where nothing will."""
        events = self._events
        if events is None:
            events = self._listed()
        return self._begin + events[self._next][0] if self._next < len(events) else None

    def take_ended(self, until: Ticks) -> list[tuple[Ticks, Flowing | PendingMessage, int]]:
        """Take what has ended: a collective and the rank that leaves, or a message that has left (0) or arrived (1)."""
        ended: list[tuple[Ticks, Flowing | PendingMessage, int]] = []
        events, number, begin = self._listed(), self._next, self._begin
        while number < len(events) and begin + events[number][0] <= until:
            after, kind, which, place = events[number]
            number += 1
            at = begin + after
            if kind:
                message = self._messages[which]
                if place:
                    message.done = at
                    self._n_open -= 1
                else:
                    message.sent = at
                ended.append((at, message, place))
            else:
                flowing = self._running[which]
                flowing.ends[place] = at
                flowing.n_left += 1
                self._n_open -= flowing.n_left == len(flowing.ends)
                ended.append((at, flowing, place))
        self._next = number
        self._n_taken += len(ended)
        if not self._n_open and (self._messages or self._running):
            self._close()
        return ended

    def all_carried(self) -> NDArray[np.float64]:
        """Bytes that each link has carried, with those of what never ended."""
        return self.carried if self._found is None else self.carried + self._found.link_bytes()

    def _open(self, at: Ticks) -> None:
        if not self._running and not self._messages:
            self._begin = at
        self._events = self._place = None

    def _close(self) -> None:
        """Forget what is over, when nothing is under way."""
        if self._found is not None:
            self.carried += self._found.link_bytes()
        self._running, self._messages, self._last, self._found, self._events = [], [], {}, None, []
        self._next = self._n_taken = 0

    def _listed(self) -> list[Event]:
        """List all that will end, in order: when, whether it is a message, its number, and rank or phase."""
        if self._events is None:
            self._events, self._next = [], 0
            if self._n_open and (
                self._messages
                or any(message.n_entered == len(message.starts) for message in self._running)
                or not self.leaves_together
            ):
                self._found = self._simulated()
                events = self._found.events()
                self._events = list(filter(self._is_open, events)) if self._n_taken else events
        return self._events

    def _is_open(self, event: Event) -> bool:
        """Whether something that ends has not ended before."""
        _, is_message, number, which = event
        if not is_message:
            return self._running[number].ends[which] is None
        message = self._messages[number]
        return message.done is None and (bool(which) or message.sent is None)

    def _simulated(self) -> TrafficTimes:
        place = self._place
        if place is not None:
            if place.times is None:
                place.times = self._together()
                self.n_simulated += 1
            return place.times
        begin = self._begin
        key = (
            tuple((message.key, message.relative(begin)) for message in self._running),
            tuple((m.src, m.dst, m.n_bytes, m.start - begin, m.chain) for m in self._messages),
        )
        if key not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            alone = self._running[0] if len(self._running) == 1 and not self._messages else None
            is_plain = alone is not None and isinstance(alone.relative(begin), int) and self.leaves_together
            self.n_simulated += 1
            self._kept[key] = self._alone(alone) if alone is not None and is_plain else self._together()
        return self._kept[key]

    def _alone(self, flowing: Flowing) -> TrafficTimes:
        """Predict a collective that has the network to itself and begins everywhere at once."""
        plan, size, scenario = flowing.plan, flowing.n_bytes, self.scenario
        wish = Wish(seed=scenario.seed, framing=scenario.wish.framing)
        if not size and plan.sizes([1.0])[0] != [0.0]:
            return self._together()
        result = plan.run(size, wish)
        end = (flowing.starts[0] or 0) - self._begin + ticks_of(result.time)
        return TrafficTimes([[end] * len(flowing.starts)], [], [], result.link_bytes)

    def _together(self) -> TrafficTimes:
        """Simulate everything under way in the flow engine."""
        network = (
            shared_network(self.network, [message.plan for message in self._running]) if self._running else self.network
        )
        jobs, payloads, starts = [], [], []
        framing = self.scenario.wish.framing
        for message in self._running:
            plan = message.plan.at(message.n_bytes)
            headers = framing or plan.framing
            job = shared_job(plan, network, headers, rate_cap=plan.paths.job.rate_cap)
            if not message.n_bytes:
                job = framed(_without_bytes(job), headers)
            jobs.append(job)
            payloads.append(_payload(job, message.n_bytes if plan.sent is None else plan.sent))
            entered = [np.inf if start is None else seconds_of(start - self._begin) for start in message.starts]
            helpers = job.schedule.n_helpers
            starts += entered + [min(entered)] * helpers
        if self._messages:
            jobs.append(self._message_job())
            on_wire = np.array([message.n_bytes for message in self._messages])
            payloads.append(np.asarray((framing.on_wire(on_wire) if framing else on_wire), np.float64))
            starts += [0.0] * len(self.nodes)
        plan_of_all = plan_flows(network, jobs, routing=self.scenario.routing, seed=self.scenario.seed)
        ready = self._ready(plan_of_all) if self._messages else 0.0
        played = play(plan_of_all, np.concatenate(payloads), starts=starts, ready=ready)
        times = played.times
        ends = [
            self._ends(plan_of_all, times, j, starts, first)
            for j, first in enumerate(np.cumsum([0, *(job.schedule.n_participants for job in jobs[:-1])]).tolist())
            if j < len(self._running)
        ]
        mine = plan_of_all.transfers_of[-1] if self._messages else slice(0, 0)
        sent, done = ([_after(time) for time in of[mine].tolist()] for of in (times.sent, times.done))
        return TrafficTimes(ends, sent, done, (plan_of_all, times))

    def _ends(
        self, plan: FlowPlan, times: FlowTimes, j: int, starts: Sequence[float], first: int
    ) -> list[Ticks | None]:
        """When the ranks of a collective leave it, with what its software takes beyond its messages."""
        one, schedule, mine = self._running[j], plan.jobs[j].schedule, plan.transfers_of[j]
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

    def _message_job(self) -> FlowJob:
        """Return all messages as transfers of one job, each chain with a channel of its own."""
        seats = dict[int, int]()
        place = [seats.setdefault(message.dst, 0) for message in self._messages]
        for i, message in enumerate(self._messages):
            place[i] = seats[message.dst]
            seats[message.dst] += 1
        program = Program(len(self.nodes), 1, n_scratch=max(seats.values()))
        src, dst, chain = np.array([(m.src, m.dst, m.chain) for m in self._messages]).T
        program.copy(src=src, dst=dst, src_chunk=0, dst_chunk=np.array(place), dst_buffer=SCRATCH, channel=chain % 1000)
        return FlowJob(program.build(), Placement(self.nodes), number=MESSAGES)

    def _ready(self, plan: FlowPlan) -> NDArray[np.float64]:
        """When each connection may send its first message: that of a chain when its first message begins."""
        ready = np.zeros(len(plan.connection))
        of = plan.connection_of[plan.transfers_of[-1]]
        start = [seconds_of(message.start - self._begin) for message in self._messages]
        ready[of[::-1]] = start[::-1]  # the first of each connection is written last
        return ready


def _after(seconds: float) -> Ticks | None:
    return ticks_of(seconds) if seconds < np.inf else None


def _payload(job: FlowJob, size: float) -> NDArray[np.float64]:
    """Bytes of each transfer of a job."""
    if job.messages is not None:
        return job.messages(size)
    count = job.schedule.expand()["count"]
    return np.asarray(count * (size / job.schedule.n_chunks), np.float64)


def _without_bytes(job: FlowJob) -> FlowJob:
    return dataclasses.replace(job, messages=lambda size: np.zeros(job.schedule.n_transfers))  # noqa: ARG005
