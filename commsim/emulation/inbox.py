"""Messages that have come to a rank before their time is known, and which of its receives gets which.

Messages of one rank do not overtake each other, and receives are served in the order in which they were posted. So
which message a receive of one source gets depends on no time; from any source it does, and the coordinator says it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from .rank_calls import ANY, PendingCall, Receive

__all__ = ["CameMessage", "Inbox"]


@dataclass(slots=True, eq=False)
class CameMessage:
    """A message that has come.

    Parameters
    ----------
    number : int
        Number of its send, of all calls of its sender.
    tag, n_bytes, data
        As in :class:`commsim.emulation.rank_calls.Send`.
    """

    number: int
    tag: int
    n_bytes: float
    data: Any


@dataclass(slots=True)
class Inbox:
    """Messages and receives of one rank.

    Parameters
    ----------
    read : callable
        Function of a rank that waits for its next message, and calls :meth:`came`.
    """

    read: Callable[[int], None]
    _n_any: int = 0  # receives from any source that are open
    _waiting: dict[tuple[int, Hashable], list[PendingCall]] = field(default_factory=dict)
    _came: dict[tuple[int, Hashable], list[CameMessage]] = field(default_factory=dict)
    _matched: dict[int, tuple[PendingCall, CameMessage]] = field(default_factory=dict)  # by the number of the receive

    def expect(self, operation: PendingCall) -> None:
        """Take a receive."""
        call: Receive = operation.call
        if call.source == ANY:
            self._n_any += 1
            return
        key = call.source, call.context
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [operation]
        else:
            waiting.append(operation)

    def came(self, source: int, context: Hashable, message: CameMessage) -> None:
        """Take a message."""
        key = source, context
        came = self._came.get(key)
        if came is None:
            self._came[key] = [message]
        else:
            came.append(message)

    def knows(self, call: Receive) -> bool:
        """Whether it is known without times which message a receive gets."""
        return not self._n_any and call.source != ANY and not call.keep

    def message_of(self, operation: PendingCall) -> CameMessage:
        """Return the message that a receive gets, which is known without times, when it has come."""
        call: Receive = operation.call
        key = call.source, call.context
        while True:
            self._match(key)
            matched = self._matched.pop(operation.number, None)
            if matched is not None:
                return matched[1]
            self.read(call.source)

    def message(self, operation: PendingCall, source: int, number: int) -> CameMessage:
        """Return the message of which the coordinator says that a receive gets it, when it has come."""
        call: Receive = operation.call
        key = source, call.context
        matched = self._given_up(operation)
        if matched is not None:
            return matched
        while True:
            came = self._came.get(key, [])
            for place, message in enumerate(came):
                if message.number == number:
                    del came[place]
                    return message
            self.read(source)

    def cancel(self, operation: PendingCall) -> None:
        """Give up a receive; the message that it would have got goes to another, and so may those of later receives."""
        message = self._given_up(operation)
        if message is None:
            return
        call: Receive = operation.call
        key = call.source, call.context
        others = [pair for pair in self._matched.values() if (pair[0].call.source, pair[0].call.context) == key]
        for receive, _ in others:
            del self._matched[receive.number]
        came, waiting = self._came[key], self._waiting[key]
        came += [message, *(its for _, its in others)]
        waiting += [receive for receive, _ in others]
        came.sort(key=lambda one: one.number)
        waiting.sort(key=lambda one: one.number)

    def _given_up(self, operation: PendingCall) -> CameMessage | None:
        """Forget a receive, and return its message if it has one."""
        call: Receive = operation.call
        if call.source == ANY:
            self._n_any -= 1
            return None
        matched = self._matched.pop(operation.number, None)
        if matched is None:
            self._waiting[call.source, call.context].remove(operation)
            return None
        return matched[1]

    def _match(self, key: tuple[int, Hashable]) -> None:
        """Give each message to the first receive that it fits: no later message or receive changes that."""
        waiting, came = self._waiting.get(key), self._came.get(key)
        if not waiting or not came:
            return
        left = []
        for message in came:
            for place, operation in enumerate(waiting):
                if operation.call.tag in (message.tag, ANY):
                    self._matched[operation.number] = operation, message
                    del waiting[place]
                    break
            else:
                left.append(message)
        came[:] = left
