"""What one simulation of an emulation's traffic says, and the simulations of what only messages begin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.emulation.clock import Ticks
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes, link_bytes

from .under_way import Flowing, PendingMessage

# When something ends, in ticks after the beginning; whether it is a message (1) or a collective (0); its number; and
# the rank that leaves a collective, or whether a message has left (0) or arrived (1).
Event = tuple[Ticks, int, int, int]
__all__ = ["Event", "MessageTimes", "TrafficPart", "TrafficTimes"]


@dataclass(slots=True, eq=False)
class TrafficTimes:
    """What one simulation says, in ticks after the beginning: infinite things are None.

    Parameters
    ----------
    ends : list of list of int or None, ticks
        When each rank leaves each collective.
    sent, done : list of int or None, ticks
        When each message has left, and has arrived.
    carried : float64[n_links] or (FlowPlan, FlowTimes)
        Bytes that each link carried, or what says it.
    """

    ends: list[list[Ticks | None]]
    sent: list[Ticks | None]
    done: list[Ticks | None]
    carried: NDArray[np.float64] | tuple[FlowPlan, FlowTimes]
    _events: list[Event] | None = None

    def link_bytes(self) -> NDArray[np.float64]:
        """Bytes that each link carried."""
        if isinstance(self.carried, tuple):
            self.carried = link_bytes(*self.carried)
        return self.carried

    def events(self) -> list[Event]:
        """Return all that ends, in order."""
        if self._events is None:
            events = [(at, 0, j, k) for j, ends in enumerate(self.ends) for k, at in enumerate(ends) if at is not None]
            for which, times in enumerate((self.sent, self.done)):
                events += [(at, 1, i, which) for i, at in enumerate(times) if at is not None]
            self._events = sorted(events)
        return self._events


@dataclass(slots=True, eq=False)
class MessageTimes:
    """Times of the messages that have begun since the network was idle, and what each one more leads to.

    Parameters
    ----------
    times : TrafficTimes, optional
        Their times; None before they are simulated.
    then : dict
        By source, destination, bytes, ticks after the beginning, chain and path of the next message: those with it.
    """

    times: TrafficTimes | None = None
    then: dict[tuple[int, int, float, Ticks, int, int], MessageTimes] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class TrafficPart:
    """What is under way and shares links, from when the first of it began.

    Parameters
    ----------
    begin : int, ticks
        When the first began.
    place : MessageTimes, optional
        What has begun, where that is only messages.
    running, messages : list
        Collectives and messages, also those that are over, in the order in which they began.
    shared : set of int
        Links and nodes that messages use.
    first_chains : dict
        Chain of the first message by source and destination.
    n_open, n_taken : int
        What has begun and not ended; and events that were taken.
    events, next : list of Event, int
        What will end, in order, and which of it is next; None: to be listed.
    found : TrafficTimes, optional
        The latest simulation.
    """

    begin: Ticks
    place: MessageTimes | None = None
    running: list[Flowing] = field(default_factory=list)
    messages: list[PendingMessage] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)
    first_chains: dict[tuple[int, int], int] = field(default_factory=dict)
    n_open: int = 0
    n_taken: int = 0
    events: list[Event] | None = None
    next: int = 0
    found: TrafficTimes | None = None

    def add(self, part: TrafficPart) -> None:
        """Take over what another part has."""
        if part.place is None:
            self.place = None
        self.running += part.running
        self.messages += part.messages
        self.shared |= part.shared
        self.n_open += part.n_open
        self.n_taken += part.n_taken

    def is_open(self, event: Event) -> bool:
        """Whether something that ends has not ended before."""
        _, is_message, number, which = event
        if not is_message:
            return self.running[number].ends[which] is None
        message = self.messages[number]
        return message.done is None and (bool(which) or message.sent is None)

    def take(self, until: Ticks, ended: list[tuple[Ticks, int, int, int, Flowing | PendingMessage]]) -> None:
        """Take what ends until a moment: when, whether it is a message, its number in all traffic, phase, and what."""
        events, begin, before = self.events or [], self.begin, len(ended)
        while self.next < len(events) and begin + events[self.next][0] <= until:
            after, is_message, number, which = events[self.next]
            self.next += 1
            at = begin + after
            if is_message:
                message = self.messages[number]
                if which:
                    message.done = at
                    self.n_open -= 1
                else:
                    message.sent = at
                ended.append((at, 1, message.number, which, message))
            else:
                flowing = self.running[number]
                flowing.ends[which] = at
                flowing.n_left += 1
                self.n_open -= flowing.n_left == len(flowing.ends)
                ended.append((at, 0, number, which, flowing))
        self.n_taken += len(ended) - before
