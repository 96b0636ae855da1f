"""The virtual clock of all ranks: it stands while one computes, and goes on when all wait.

Each rank has a clock of its own, which its computing lets go on. What it asks begins at that time. When every rank
waits, the network goes on to the next moment at which something ends or begins, and at which a rank may be free; no
rank can ask for anything earlier than that. What happens at one moment is ordered by rank and number, never by which
thread or process came first, so a program without races of its own always takes the same time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from commsim.core.spec import with_parameter

from .clock import Ticks
from .collective_results import results_of
from .failures import deadlock, require_alike
from .matching import Envelope, GroupOrder, Mailboxes
from .rank_calls import Call, Collective, PendingCall, Receive, Send
from .rank_clock import RankClock
from .traffic.network_traffic import EmulatedTraffic
from .traffic.under_way import Flowing, PendingCollective, RankGroups

# Function of (operation, size, number of ranks, root, library asked for) to the collective that a library runs.
Choice = Callable[[str, float, int, int, str], str]
__all__ = ["Choice", "Coordinator"]


class Coordinator:
    """All ranks of one emulation.

    Parameters
    ----------
    traffic : EmulatedTraffic
        The network.
    choose : callable
        Function of (operation, size, number of ranks, root) to a collective.
    eager : float, bytes
        Largest message that is sent before its receive is there.
    finished : callable, optional
        Function of each operation that is complete and the collective that it ran, for the report.
    """

    def __init__(
        self,
        traffic: EmulatedTraffic,
        choose: Choice,
        eager: float,
        finished: Callable[[PendingCall, str], None] | None = None,
    ) -> None:
        self.traffic, self.choose, self.eager, self.finished = traffic, choose, eager, finished
        self.now: Ticks = 0
        self.clocks = [RankClock() for _ in traffic.nodes]
        self._pending: list[tuple[Ticks, int, int, PendingCall]] = []
        self._meetings: dict[tuple[tuple[int, Hashable], int], PendingCollective] = {}
        self._of_flowing: dict[Flowing, PendingCollective] = {}
        self._groups = RankGroups()
        self._touched: set[int] = set()  # ranks of which something has ended
        self._ahead: list[tuple[Ticks, int]] = []  # ranks that wait, with times later than now
        self._polling: set[int] = set()
        self._mail = Mailboxes(self._match)
        self._order = GroupOrder()

    def post(self, rank: int, call: Call) -> PendingCall:
        """Let a rank ask for something at its time."""
        clock = self.clocks[rank]
        clock.n_calls += 1
        if not (isinstance(call, Receive) and call.keep):
            clock.idle_polls = 0
        operation = PendingCall(rank, clock.n_calls, call, clock.now)
        heapq.heappush(self._pending, (clock.now, rank, clock.n_calls, operation))
        return operation

    def compute(self, rank: int, ticks: Ticks) -> None:
        """Let the clock of a rank go on."""
        clock = self.clocks[rank]
        clock.now += ticks
        clock.computed += ticks

    def sleep(self, rank: int, ticks: Ticks) -> None:
        """Let the clock of a rank go on without computing: what it asks for next is not asked in vain again."""
        clock = self.clocks[rank]
        clock.now += ticks
        clock.idle_polls = 0

    def end_step(self, rank: int) -> None:
        """Let a rank end a step of its optimiser."""
        self.clocks[rank].end_step()

    def wait(self, rank: int, operations: Sequence[PendingCall], *, every: bool = True, polls: bool = False) -> bool:
        """Let a rank wait; return whether what it waits for is there already, so that it need not."""
        clock = self.clocks[rank]
        clock.waits, clock.every, clock.polls = operations, every, polls
        is_satisfied = clock.satisfied
        is_there = is_satisfied and (every or clock.now <= self.now)
        if is_there and all(op.end is None or op.end <= clock.now for op in operations):
            self._free(rank)
            return True
        if clock.now > self.now:
            heapq.heappush(self._ahead, (clock.now, rank))
        if is_satisfied:  # else the rank is looked at when one of them ends
            self._touched.add(rank)
        if polls:
            self._polling.add(rank)
        return False

    def cancel(self, operation: PendingCall) -> None:
        """Take back a receive that has no message yet."""
        for number, pending in enumerate(self._pending):
            if pending[3] is operation:
                del self._pending[number]
                heapq.heapify(self._pending)
                break
        else:
            if not self._mail.cancel(operation):
                return
        operation.cancelled, operation.end = True, self.clocks[operation.rank].now

    def end(self, rank: int) -> None:
        """Let a rank end its program."""
        self.clocks[rank].has_ended = True

    def advance(self) -> list[tuple[int, bool]]:
        """Go on to the next moment that frees ranks; all wait.

        Returns
        -------
        list of (int, bool)
            Ranks that go on, and whether what each waits for is there: one that only asks may hear that it is not.

        Raises
        ------
        ProgramError
            If no rank will ever be free, with what each waits for.
        """
        touched, ahead = self._touched, self._ahead
        while True:
            end = self._take(self.now)
            while ahead and ahead[0][0] <= self.now:
                touched.add(heapq.heappop(ahead)[1])
            if touched:
                freed = [
                    (rank, True) for rank in (sorted(touched) if len(touched) > 1 else touched) if self._goes_on(rank)
                ]
                touched.clear()
                if freed:
                    return freed
            if self._polling and (asked := self._told_no()):
                return asked
            self.now = self._next_moment(end)

    def _goes_on(self, rank: int) -> bool:
        """Let a rank go on if what it waits for is there; return whether it does."""
        clock = self.clocks[rank]
        if clock.waits is None or clock.now > self.now or not clock.satisfied:
            return False
        self._free(rank)
        return True

    def _told_no(self) -> list[tuple[int, bool]]:
        """Let those go on that only ask, and hear that what they ask for is not there."""
        asked = [rank for rank in sorted(self._polling) if self._hears_no(self.clocks[rank])]
        for clock in (self.clocks[rank] for rank in asked):
            clock.pass_until(self.now)
            clock.waits = None
            clock.idle_polls += 1
        self._polling.difference_update(asked)
        return [(rank, False) for rank in asked]

    def _hears_no(self, clock: RankClock) -> bool:
        """Whether a rank that only asks is told no: at once, and if it asks again, when something has happened."""
        if clock.waits is None or not clock.polls or clock.now > self.now:
            return False
        return not clock.idle_polls or clock.now < self.now

    def _free(self, rank: int) -> None:
        clock = self.clocks[rank]
        self._polling.discard(rank)
        clock.leave()
        clock.idle_polls = 0 if clock.waits else clock.idle_polls  # to wait for nothing is to do nothing
        clock.waits = None

    def _next_moment(self, end: Ticks | None) -> Ticks:
        """Return when something begins, ends (at `end` on the network), or a rank is there that is ahead."""
        for queue in (self._ahead, self._pending):
            if queue and (end is None or queue[0][0] < end):
                end = queue[0][0]
        if end is None:
            raise deadlock(self.clocks)
        return end if end > self.now else self.now

    def _take(self, until: Ticks) -> Ticks | None:
        """Let all happen that does until a moment: first what ends, then what begins, ordered by rank.

        Returns
        -------
        int or None, ticks
            When something ends next on the network.
        """
        traffic, pending = self.traffic, self._pending
        while True:
            end = traffic.next_end()
            if ends := end is not None and end <= until:
                self._take_ended(until)
            if pending and pending[0][0] <= until:
                at, _, _, operation = heapq.heappop(pending)
                kind = type(operation.call)
                if kind is Send:
                    self._send(operation, at)
                elif kind is Receive:
                    self._mail.receive(operation, at)
                else:
                    self._meet(operation, at)
            elif not ends:
                return end

    def _take_ended(self, until: Ticks) -> None:
        """Let all end that does until a moment."""
        for at, what, which in self.traffic.take_ended(until):
            if isinstance(what, Flowing):
                self._left(self._of_flowing[what], which, at)
            elif which:
                self._arrived(what.carries, at)
            else:
                self._complete(what.carries.send, at)

    def _meet(self, operation: PendingCall, at: Ticks) -> None:
        """Let a rank enter a collective."""
        call: Collective = operation.call
        of = self._groups.of(call.members)
        group = of.number, call.context
        if call.in_order and self._order.holds(operation, group):
            return
        met = self.clocks[operation.rank].n_met
        number = met[group] = met.get(group, 0) + 1
        meeting = self._meetings.get((group, number))
        if meeting is None:
            meeting = self._meetings[group, number] = PendingCollective(call, [None] * len(call.members))
        require_alike(meeting.call, call, operation.rank, meeting.operations)
        place = of.places[operation.rank]
        meeting.operations[place] = operation
        meeting.n_entered += 1
        operation.source = number
        if len(call.members) == 1:
            del self._meetings[group, number]
            self._finish(meeting, 0, at)
            return
        if meeting.flowing is None and (not call.needs_all or meeting.n_entered == len(call.members)):
            spec, size = self._chosen(meeting)
            meeting.spec = spec
            meeting.flowing = self.traffic.begin(call.members, spec, size, at)
            self._of_flowing[meeting.flowing] = meeting
            for other, entered in enumerate(meeting.operations):
                if entered is not None and entered is not operation:
                    self.traffic.enter(meeting.flowing, other, at)
        if meeting.flowing is not None:
            self.traffic.enter(meeting.flowing, place, at)

    def _chosen(self, meeting: PendingCollective) -> tuple[str, float]:
        """Return the collective that is run, and its size; one of unequal blocks counts them in whole parts."""
        call = meeting.call
        operation, n_ranks = call.operation, len(call.members)
        rows = [op.call.counts for op in meeting.operations if op is not None]
        if not call.counts or not any(map(any, rows)):  # without any bytes all blocks are equal
            operation = operation.removesuffix("_v")
        spec = call.algorithm or self.choose(operation, call.n_bytes, n_ranks, call.root, call.library)
        if not operation.endswith("_v"):
            return spec, call.n_bytes
        counts = np.array(rows if operation == "all_to_all_v" else [call.counts])
        part = int(np.gcd.reduce(counts, axis=None))
        counts //= part
        blocks = max(counts.sum(axis=0).max(), counts.sum(axis=1).max())
        return with_parameter(spec, f"counts={'x'.join(map(str, counts.ravel().tolist()))}"), float(blocks * part)

    def _left(self, meeting: PendingCollective, place: int, at: Ticks) -> None:
        """Let a rank leave a collective."""
        self._finish(meeting, place, at)
        meeting.n_left += 1
        if meeting.flowing is not None and meeting.n_left == len(meeting.operations):
            call = meeting.call
            operation = meeting.operations[place]
            assert operation is not None
            del self._meetings[(self._groups.of(call.members).number, call.context), operation.source]
            del self._of_flowing[meeting.flowing]

    def _finish(self, meeting: PendingCollective, place: int, at: Ticks) -> None:
        """Give a rank its result."""
        if meeting.n_results < meeting.n_entered:
            flowing = meeting.flowing
            schedule = flowing.plan.at(flowing.n_bytes).schedule if flowing is not None else None
            meeting.results = results_of(meeting.operations, schedule)
            meeting.n_results = meeting.n_entered
        operation = meeting.operations[place]
        assert operation is not None
        operation.result = meeting.results[place]
        self._complete(operation, at, meeting.spec)

    def _send(self, operation: PendingCall, at: Ticks) -> None:
        call: Send = operation.call
        is_eager = call.n_bytes <= self.eager and not call.synchronous
        envelope = Envelope(operation, not is_eager, is_eager, self._mail.queue(operation.rank, call))
        if is_eager:
            self._begin(envelope, at)
        self._mail.add(envelope, at)

    def _begin(self, envelope: Envelope, at: Ticks) -> None:
        """Let a message begin; one to the rank itself uses no link."""
        operation = envelope.send
        call: Send = operation.call
        if call.to == operation.rank:
            self._complete(operation, at)
            envelope.has_come = True
            if envelope.receive is not None:
                self._received(envelope, at)
            return
        self.traffic.send(operation.rank, call.to, call.n_bytes, at).carries = envelope

    def _match(self, envelope: Envelope, at: Ticks) -> None:
        """Go on with a message that has found its receive: it begins now, or has arrived."""
        assert envelope.receive is not None
        if envelope.receive.call.keep or envelope.is_eager:
            self._received(envelope, at)
        else:
            self._begin(envelope, at)

    def _arrived(self, envelope: Envelope, at: Ticks) -> None:
        if envelope.is_eager:
            envelope.has_come = True
            self._mail.come(envelope, at)
        else:
            self._received(envelope, at)

    def _received(self, envelope: Envelope, at: Ticks) -> None:
        receive = envelope.receive
        assert receive is not None
        receive.result, receive.source = envelope.send.call, envelope.send.rank
        self._complete(receive, at)

    def _complete(self, operation: PendingCall, at: Ticks, spec: str = "") -> None:
        operation.end = at if at > operation.start else operation.start
        self._touched.add(operation.rank)
        if self._order.waits and (following := self._order.after(operation)) is not None:
            heapq.heappush(self._pending, (at, following.rank, following.number, following))
        if type(operation.call) is not Send and operation.call.deliver is not None:
            operation.call.deliver(operation.result)
        if self.finished is not None:
            self.finished(operation, spec)
