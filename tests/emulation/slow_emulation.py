"""Emulation without short cuts: the oracle of the quick one. All that is under way is listed anew for each question."""

import heapq

from commsim.emulation.coordinator import Coordinator
from commsim.emulation.failures import deadlock
from commsim.emulation.matching import fits
from commsim.emulation.network_traffic import EmulatedTraffic
from commsim.emulation.rank_calls import Receive, Send
from commsim.emulation.under_way import Flowing, PendingMessage


class SlowTraffic(EmulatedTraffic):
    """Traffic that is simulated again whenever anything is asked, and keeps no result."""

    def send(self, src, dst, n_bytes, at):
        if not self._running and not self._messages:
            self._begin = at
        before = [one for one in self._messages if (one.src, one.dst) == (src, dst)]
        chain = before[-1].chain + (before[-1].sent is not None) if before else 0
        message = PendingMessage(src, dst, n_bytes, at, chain)
        self._messages.append(message)
        self._n_open += 1
        return message

    def _to_end(self):
        """List all that will end: when, what, and rank or phase, in the order in which it is taken."""
        full = [one for one in self._running if one.n_entered == len(one.starts)]
        if not self._n_open or not (self._messages or full or not self.leaves_together):
            return []
        alone = self._running[0] if len(self._running) == 1 and not self._messages else None
        plain = alone is not None and len(set(alone.starts)) == 1 and self.leaves_together
        self._found = self._alone(alone) if plain else self._together()
        events = []
        for number, (flowing, ends) in enumerate(zip(self._running, self._found.ends, strict=True)):
            for rank, end in enumerate(ends):
                if end is not None and flowing.ends[rank] is None:
                    events.append((self._begin + end, 0, number, rank))
        for number, message in enumerate(self._messages):
            sent, done = self._found.sent[number], self._found.done[number]
            if message.sent is None and sent is not None:
                events.append((self._begin + sent, 1, number, 0))
            if message.done is None and done is not None:
                events.append((self._begin + done, 1, number, 1))
        return sorted(events)

    def next_end(self):
        events = self._to_end()
        return events[0][0] if events else None

    def take_ended(self, until):
        ended = []
        for at, is_message, number, which in self._to_end():
            if at > until:
                break
            what = self._messages[number] if is_message else self._running[number]
            ended.append((at, what, which))
            if not is_message:
                what.ends[which], what.n_left = at, what.n_left + 1
                self._n_open -= what.n_left == len(what.ends)
            elif which:
                what.done = at
                self._n_open -= 1
            else:
                what.sent = at
        if not self._n_open and (self._running or self._messages):
            self._close()
        return ended


class SlowCoordinator(Coordinator):
    """A coordinator that looks at all ranks, and asks for the next end again after each step."""

    def advance(self):
        while True:
            self._take(self.now)
            while self._ahead and self._ahead[0][0] <= self.now:
                heapq.heappop(self._ahead)
            self._touched.clear()
            free = [
                rank for rank, clock in enumerate(self.clocks)
                if clock.waits is not None and clock.now <= self.now
                and (any if clock.waits and not clock.every else all)(one.end is not None for one in clock.waits)
            ]  # fmt: skip
            if free:
                for rank in free:
                    self._free(rank)
                return [(rank, True) for rank in free]
            if self._polling and (asked := self._told_no()):
                return asked
            moments = [queue[0][0] for queue in (self._ahead, self._pending) if queue]
            end = self.traffic.next_end()
            moments += [end] if end is not None else []
            if not moments:
                raise deadlock(self.clocks)
            self.now = max(self.now, min(moments))

    def _take(self, until):
        while True:
            end = self.traffic.next_end()
            if ends := end is not None and end <= until:
                for at, what, which in self.traffic.take_ended(until):
                    if isinstance(what, Flowing):
                        self._left(self._of_flowing[what], which, at)
                    elif which:
                        self._arrived(what.carries, at)
                    else:
                        self._complete(what.carries.send, at)
            if self._pending and self._pending[0][0] <= until:
                at, _, _, operation = heapq.heappop(self._pending)
                if isinstance(operation.call, Send):
                    self._send(operation, at)
                elif isinstance(operation.call, Receive):
                    self._receive(operation, at)
                else:
                    self._meet(operation, at)
            elif not ends:
                return

    def _receive(self, operation, at):
        """Give a receive the first message that has come and fits."""
        mail, key = self._mail, (operation.rank, operation.call.context)
        fitting = [one for one in mail._come.get(key, []) if fits(operation.call, one.send)]
        if not fitting:
            mail._waiting.setdefault(key, []).append(operation)
            return
        fitting[0].receive = operation
        if not operation.call.keep:
            mail._come[key].remove(fitting[0])
        self._match(fitting[0], at)
