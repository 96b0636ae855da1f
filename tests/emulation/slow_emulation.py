"""Emulation without short cuts: the oracle of the quick one. All that is under way is listed anew for each question."""

import heapq

from commsim.emulation.coordinator import Coordinator
from commsim.emulation.failures import deadlock
from commsim.emulation.matching import fits
from commsim.emulation.rank_calls import Receive, Send
from commsim.emulation.traffic.network_traffic import EmulatedTraffic
from commsim.emulation.traffic.under_way import Flowing
from commsim.routing.routing import find_routes


class SlowTraffic(EmulatedTraffic):
    """Traffic that is simulated again whenever anything is asked, and keeps no result."""

    def next_end(self):
        self._is_known = False
        for part in self._parts:
            part.events = None
        return super().next_end()

    def take_ended(self, until):
        for part in self._parts:
            part.events = None
        return super().take_ended(until)

    def _listed(self, part):
        """List what will end: nothing before all ranks of a collective have entered, where these leave together."""
        full = [one for one in part.running if one.n_entered == len(one.starts)]
        part.events, part.next = [], 0
        if part.n_open and (part.messages or full or not self.leaves_together):
            part.found = self._simulated(part)
            part.events = [event for event in part.found.events() if part.is_open(event)]
        return part.events

    def _simulated(self, part):
        alone = part.running[0] if len(part.running) == 1 and not part.messages else None
        plain = alone is not None and len(set(alone.starts)) == 1 and self.leaves_together
        return self._alone(alone, part.begin) if plain else self._together(part)

    def _links(self, message):
        """Return the links of a message, and its nodes."""
        scenario, nodes = self.scenario, self.nodes[[message.src, message.dst]]
        routes = find_routes(
            self.network, nodes[:1], nodes[1:], message.chain % 1000 + 30_000, routing=scenario.routing,
            seed=scenario.seed, used=self.nodes,
        )  # fmt: skip
        pays = self.network.overhead.any() or self.network.recv_overhead.any()
        return {*routes.link.tolist(), *((nodes + self.network.n_links).tolist() if pays else ())}

    def _sharing(self, shared, at):  # noqa: ARG002
        """Return the part with a message that has a link in common with the newest."""
        mine = self._links(max(self._last.values(), key=lambda message: message.number))
        found = [part for part in self._parts if any(mine & self._links(one) for one in part.messages)]
        return self._joined(found, at)


class JointTraffic(EmulatedTraffic):
    """Traffic of which all that is under way is simulated together."""

    def _sharing(self, shared, at):  # noqa: ARG002
        return self._parts[0] if self._parts else self._joined([], at)


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
