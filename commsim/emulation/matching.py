"""Which receive gets which message: MPI's rule, that messages between two ranks do not overtake each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from .clock import Ticks
from .rank_calls import ANY, PendingCall, Receive, Send

__all__ = ["Envelope", "Mailboxes"]


@dataclass(slots=True, eq=False)
class Envelope:
    """A message that was sent.

    Parameters
    ----------
    send : PendingCall
        The send.
    has_come : bool
        Whether its receiver can see it: it has arrived, or waits at its sender for a receive.
    is_eager : bool
        Whether it is sent without waiting for its receive.
    queue : deque of Envelope
        What was sent between the same ranks and has not come, in order: that of :meth:`Mailboxes.queue`.
    receive : PendingCall, optional
        The receive that gets it.
    """

    send: PendingCall
    has_come: bool
    is_eager: bool
    queue: deque[Envelope]
    receive: PendingCall | None = None


@dataclass(slots=True)
class Mailboxes:
    """What was sent and not received, and what waits for messages, of all ranks.

    Parameters
    ----------
    match : callable
        Function of an envelope with its receive, and the time, that lets them go on.
    """

    match: Callable[[Envelope, Ticks], None]
    _coming: dict[tuple[int, int, Hashable], deque[Envelope]] = field(default_factory=dict)
    _come: dict[tuple[int, Hashable], list[Envelope]] = field(default_factory=dict)
    _waiting: dict[tuple[int, Hashable], list[PendingCall]] = field(default_factory=dict)

    def queue(self, rank: int, call: Send) -> deque[Envelope]:
        """Return what was sent between the same ranks and has not come."""
        key = rank, call.to, call.context
        found = self._coming.get(key)
        if found is None:
            found = self._coming[key] = deque()
        return found

    def add(self, envelope: Envelope, at: Ticks) -> None:
        """Take a message that was sent just now."""
        envelope.queue.append(envelope)
        if envelope.has_come:
            self.come(envelope, at)

    def come(self, envelope: Envelope, at: Ticks) -> None:
        """Show the receiver what has come of the messages of one sender, in the order in which they were sent."""
        queue = envelope.queue
        while queue and queue[0].has_come:
            self._show(queue.popleft(), at)

    def receive(self, operation: PendingCall, at: Ticks) -> None:
        """Take a receive: it gets the first message that has come and fits, or waits."""
        call: Receive = operation.call
        key = operation.rank, call.context
        for number, envelope in enumerate(self._come.get(key, ())):
            if fits(call, envelope.send):
                envelope.receive = operation
                if not call.keep:
                    del self._come[key][number]
                self.match(envelope, at)
                return
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [operation]
        else:
            waiting.append(operation)

    def cancel(self, operation: PendingCall) -> bool:
        """Take back a receive that has no message; return whether it had none."""
        waiting = self._waiting.get((operation.rank, operation.call.context), [])
        if operation not in waiting:
            return False
        waiting.remove(operation)
        return True

    def _show(self, envelope: Envelope, at: Ticks) -> None:
        send: Send = envelope.send.call
        key = send.to, send.context
        waiting = self._waiting.get(key)
        number = 0
        while waiting and number < len(waiting):
            operation = waiting[number]
            if not fits(operation.call, envelope.send):
                number += 1
                continue
            del waiting[number]
            envelope.receive = operation
            self.match(envelope, at)
            if not operation.call.keep:
                return
        come = self._come.get(key)
        if come is None:
            self._come[key] = [envelope]
        else:
            come.append(envelope)


def fits(receive: Receive, send: PendingCall) -> bool:
    """Whether a receive takes this message."""
    source, tag = receive.source, receive.tag
    return (source == send.rank or source == ANY) and (tag == send.call.tag or tag == ANY)


@dataclass(slots=True)
class GroupOrder:
    """Calls that wait for the one before of their rank and group.

    A process group of torch has one queue: NCCL puts its collectives on one stream, so that two all-reduces which are
    started together follow each other on the same connections.
    """

    _last: dict[tuple[int, Hashable], PendingCall] = field(default_factory=dict)
    _next: dict[int, PendingCall] = field(default_factory=dict)  # by the id of the call before
    _released: set[int] = field(default_factory=set)  # ids of calls that have waited

    @property
    def waits(self) -> bool:
        """Whether any call waits for another."""
        return bool(self._next)

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
