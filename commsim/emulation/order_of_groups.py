"""Order of the collectives of a group: a rank enters the next one when its own part of the one before is complete."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from .rank_calls import PendingCall


@dataclass(slots=True)
class GroupOrder:
    """Calls that wait for the one before of their rank and group.

    A process group of torch has one queue: NCCL puts its collectives on one stream, so that two all-reduces which are
    started together follow each other on the same connections.
    """

    _last: dict[tuple[int, Hashable], PendingCall] = field(default_factory=dict)
    _next: dict[int, PendingCall] = field(default_factory=dict)  # by the id of the call before
    _released: set[int] = field(default_factory=set)  # ids of calls that have waited

    def holds(self, operation: PendingCall, group: Hashable) -> bool:
        """Return whether a call has to wait; if so, :meth:`after` returns it when the one before is complete."""
        if id(operation) in self._released:
            self._released.remove(id(operation))
            return False
        key = operation.rank, group
        before = self._last.get(key)
        self._last[key] = operation
        if before is None or before.end is not None:
            return False
        self._next[id(before)] = operation
        return True

    def after(self, operation: PendingCall) -> PendingCall | None:
        """Return the call that waited for this one, once."""
        following = self._next.pop(id(operation), None)
        if following is not None:
            self._released.add(id(following))
        return following
