"""Lower bounds on the time of any operation on any network, whatever the algorithm.

What is bounded is time in commsim's own model: messages between participants that each take one path or several,
costs ``o`` at the sender's port, shares links, and arrives ``L`` after it was sent. A participant may send to many at
once. Two kinds of schedules are told apart (:class:`commsim.prediction.bounds.demand.UsableLinks`): those in which
ranks alone store, add and send on, and those in which every host and every switch may.
"""

from __future__ import annotations

from .bound import LowerBound, lower_bound

__all__ = ["LowerBound", "lower_bound"]
