"""The kind of traffic: messages between hosts by a pattern, which is a schedule without dependencies."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import PLURALS, Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.finished_run import PacketRun
from commsim.packets.links.ports import find_ports
from commsim.packets.packet_work import expect_packets
from commsim.packets.run_packets import RunOptions, run_packets
from commsim.packets.transports.spraying import in_packets, over_path
from commsim.prediction.scenario import Scenario, Wish
from commsim.prediction.work_plan import Outcome, Work
from commsim.routing.routing import Routes, may_collide
from commsim.traffic.host_messages import plan_messages
from commsim.traffic.patterns import HostMessages, is_file, messages_of
from commsim.traffic.slowdown import alone, alone_on_path, busiest_host, busiest_port

Floats = NDArray[np.float64]
__all__ = ["CarriedMessages", "TrafficPlan", "TrafficWork"]


@dataclass(frozen=True, slots=True, eq=False)
class CarriedMessages:
    """How messages were carried.

    Parameters
    ----------
    messages : HostMessages
        Who sent what to whom, and when; of a message that waits for another one, when that was complete.
    received, finished : float64[n_messages], s
        Time from a message's start to its last byte at the receiver, and to the last acknowledgement at the sender;
        the same in the flow engine.
    slowdown : float64[n_messages]
        Time until its last byte over the least that it could take by itself.
    bound : float, s
        Bytes of the busiest port of a host, with headers, over its rate: no run is shorter.
    even : float, s
        Bytes of the busiest host or machine, over the rate of all its ports; 0 where each host has one.
    lost : dict of str to float, s
        What flaps cost: ``last_s`` of the last message, and ``mean_s`` of all; empty without flaps.
    run : PacketRun or None
        State at the end, of the packet engine.
    """

    messages: HostMessages
    received: Floats
    finished: Floats
    slowdown: Floats
    bound: float
    even: float
    lost: dict[str, float]
    run: PacketRun | None


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """A pattern of messages on a network.

    Parameters
    ----------
    network : Network
        Network that carries them.
    pattern : str or HostMessages
        Pattern or file, as :func:`commsim.traffic.patterns.messages_of` takes it, or the messages.
    routing, seed : str or None, int
        Routing of messages that keep to a path; seed of all that is drawn.
    """

    network: Network
    pattern: str | HostMessages
    routing: str | None
    seed: int

    @property
    def has_ports(self) -> bool:
        """Whether a host of the pattern has several links, or is a part of a machine."""
        network, hosts = self.network, self.network.endpoints
        n_links = np.bincount(network.src, minlength=network.n_nodes)[hosts]
        return bool((n_links > 1).any() or (network.machine[hosts] >= 0).any())

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What a host of the pattern is, where that is not plain."""
        if not self.has_ports:
            return ()
        network, hosts = self.network, self.network.endpoints
        first, last = (network.nodes[i] for i in hosts[[0, -1]])
        inside = network.machine[hosts] >= 0
        port = "NIC, and inside machines over their links" if inside.any() else "link"
        text = f"hosts of the pattern are the {len(hosts)} {PLURALS[network.seat_kind]} {first} to {last}"
        return (Remark("pattern-hosts", text, details=f"numbered like ranks; a message goes by its route's {port}"),)

    @property
    def has_own_costs(self) -> bool:
        """Whether messages have the costs of a library's primitives: they have none."""
        return False

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Schedule of the messages."""
        return (self._plan(self.messages(1.0)).jobs[0].schedule,)

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes of a message that are asked for; messages of a file have their own.

        Raises
        ------
        InputError
            If one is no whole number of bytes.
        """
        if isinstance(self.pattern, HostMessages) or is_file(self.pattern):
            return [float(self.messages(1.0).nbytes.sum())], []
        for size in sizes:
            if size < 1 or size != int(size):
                raise InputError(f"size is a whole number of bytes, at least 1, got {size:g}")
        return list(sizes), []

    def at(self, size: float) -> TrafficPlan:  # noqa: ARG002
        """Return the plan of one size, the same for all."""
        return self

    def messages(self, size: float) -> HostMessages:
        """Return the messages of one size, in bytes.

        Raises
        ------
        InputError
            If a message names none of the hosts.
        """
        n_hosts = len(self.network.endpoints)
        if not isinstance(self.pattern, HostMessages):
            return messages_of(self.pattern, n_hosts, int(size), self.seed)
        ends = np.concatenate((self.pattern.src, self.pattern.dst))
        if ends.min(initial=0) < 0 or ends.max(initial=0) >= n_hosts or not len(ends):
            raise InputError(
                f"messages go between hosts 0..{n_hosts - 1} of {self.network.name}, got {ends.tolist()[:8]}"
            )
        return self.pattern

    def bound(self, size: float, wish: Wish) -> float:
        """Return the bytes of the busiest port, with the headers of an engine, over its rate, in seconds."""
        messages = self.messages(size)
        return _bound(self._plan(messages), messages, wish)

    def routes(self, size: float, routing: str | None = None) -> Routes:
        """Return the route of each message, by the plan's routing or another one."""
        plan = self if routing is None else dataclasses.replace(self, routing=routing)
        return plan._plan(self.messages(size)).routes

    def links_used(self, sizes: Collection[float], routing: str | None) -> NDArray[np.bool_]:
        """Return the links on the routes of all messages, bool[n_links]."""
        used = np.zeros(self.network.n_links, np.bool_)
        for size in sizes:
            used[self.routes(size, routing).link] = True
        return used

    def outcome(self, size: float, wish: Wish) -> Outcome:
        """Predict one size.

        Raises
        ------
        InputError
            If the engine knows no contention between messages, or cannot carry them.
        """
        if wish.engine not in ("flow", "packet"):
            raise InputError(f"messages share a network in the flow or the packet engine, got engine {wish.engine}")
        messages = self.messages(size)
        plan = self._plan(messages, wish.hash_seed)
        found, begun, received, finished, run = _played(plan, messages, wish)
        lost = {}
        if wish.model.flaps is not None:
            _, earlier, _, whole, _ = _played(plan, messages, wish.but(flaps=None))
            last, before = float((begun + finished).max()), float((earlier + whole).max())
            lost = {"last_s": last - before, "mean_s": float(finished.mean() - whole.mean())}
        framing = _framing(wish)
        least = alone_on_path(plan, messages, framing) if run is None else alone(run.layout, messages, framing)
        bound = _bound(plan, messages, wish)
        even = busiest_host(plan, messages, framing) if self.has_ports else 0.0
        messages = dataclasses.replace(messages, start=begun)
        details = CarriedMessages(messages, received, finished, received / least, bound, even, lost, run)
        n_hosts = len(np.unique((messages.src, messages.dst)))  # each message has two participants of its own
        return Outcome((dataclasses.replace(found, n_ranks=n_hosts),), details=details)

    def remarks(
        self,
        results: Sequence[Result],  # noqa: ARG002
        *,
        has_framing: bool = False,  # noqa: ARG002
        verbose: bool = False,  # noqa: ARG002
    ) -> list[Remark]:
        """Return nothing: what the times are is said beside the table."""
        return []

    @property
    def may_collide(self) -> bool:
        """Whether routes are drawn by hashing where there are several."""
        return may_collide(self.network, self.routing)

    def _plan(self, messages: HostMessages, hash_seed: int | None = None) -> FlowPlan:
        name = "messages" if isinstance(self.pattern, HostMessages) else self.pattern
        seed = self.seed if hash_seed is None else hash_seed
        return plan_messages(self.network, messages, name=name, routing=self.routing, seed=seed)


def _bound(plan: FlowPlan, messages: HostMessages, wish: Wish) -> float:
    """Return the bytes of the busiest port over its rate, which what is behind it bounds where packets are sprayed."""
    network = plan.network
    if wish.engine == "packet" and not (wish.model.transport or over_path()).on_path:
        plan, network, *_ = find_ports(plan, np.ones(len(plan.ends), np.bool_))
    return busiest_port(plan, network, messages, _framing(wish))


def _framing(wish: Wish) -> Framing:
    """Return the packets that messages are cut into; whole messages in the flow engine, unless it is told."""
    if wish.engine != "packet":
        return wish.framing or Framing()
    how = in_packets(wish.model.transport or over_path(), wish.framing)
    return Framing(how.payload, how.header)


def _played(
    plan: FlowPlan, messages: HostMessages, wish: Wish
) -> tuple[Result, Floats, Floats, Floats, PacketRun | None]:
    """Simulate all messages; return when each began, how long it took to its receiver, and until its sender knew."""
    total, starts = float(messages.nbytes.sum()), np.repeat(messages.start, 2)
    if wish.engine == "packet":
        expect_packets(plan, total, wish.model.transport)
        options: RunOptions = {
            "starts": starts,
            "seed": wish.seed,
            "framing": wish.framing,
            "trace": wish.trace,
            "flaps": wish.model.flaps,
        }
        run = run_packets(plan, total, wish.model.transport, **options)
        begun = _begin_times(messages, run.times.done)
        waited = begun - messages.start
        return run.results[0], begun, run.received - waited, run.finished - waited, run
    flowed: dict[str, Any] = {} if wish.model.flaps is None else {"flaps": wish.model.flaps}
    (result,) = simulate_flows(plan, total, starts=starts, framing=wish.framing, trace=True, **flowed)
    assert result.trace is not None
    begun = _begin_times(messages, result.trace.done)
    took = result.trace.done - begun
    return (result if wish.trace else dataclasses.replace(result, trace=None)), begun, took, took, None


def _begin_times(messages: HostMessages, done: Floats) -> Floats:
    """Return when each message began: not before the one that it waits for was complete, in seconds."""
    if messages.after is None:
        return messages.start
    return np.maximum(messages.start, np.where(messages.after >= 0, done[messages.after], 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class TrafficWork(Work):
    """Messages between hosts.

    Parameters
    ----------
    pattern : str or HostMessages
        Pattern or file, as :func:`commsim.traffic.patterns.messages_of` takes it, or the messages.
    """

    NAME: ClassVar[str] = "traffic"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES - {"placement", "assume_programmable"} | {"flaps", "trace"}
    REFUSAL: ClassVar[str] = "{} is not modelled for traffic, whose messages go between all hosts"

    pattern: str | HostMessages

    def plan(self, scenario: Scenario) -> TrafficPlan:
        """Plan the messages."""
        return TrafficPlan(scenario.network, self.pattern, scenario.routing, scenario.seed)
