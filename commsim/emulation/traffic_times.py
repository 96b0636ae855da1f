"""What one simulation of an emulation's traffic says, and the simulations of what only messages begin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes, link_bytes

from .clock import Ticks

# When something ends, in ticks after the beginning; whether it is a message (1) or a collective (0); its number; and
# the rank that leaves a collective, or whether a message has left (0) or arrived (1).
Event = tuple[Ticks, int, int, int]
__all__ = ["Event", "MessageTimes", "TrafficTimes"]


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
        By source, destination, bytes, ticks after the beginning, and chain of the next message: those with it.
    """

    times: TrafficTimes | None = None
    then: dict[tuple[int, int, float, Ticks, int], MessageTimes] = field(default_factory=dict)
