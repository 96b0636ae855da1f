"""A fabric of hosts and switches in plain Python, with a heap of events: the slow oracle of the kernels.

Senders send all they have at line rate over paths of the same hash; receivers acknowledge every packet at once. Links
serve answers before data, one packet at a time, and nothing is trimmed or marked.
"""

import heapq
from collections import defaultdict, deque

import numpy as np

PS = 1e12


def round_half_up(x):
    """Whole picoseconds, as the kernels round."""
    return int(x + 0.5)


class PlainFabric:
    def __init__(self, network, ways, messages, payload, header, path):
        self.network, self.ways, self.messages = network, ways, messages
        self.payload, self.header, self.path = payload, header, path
        self.queue, self.events = defaultdict(lambda: (deque(), deque())), []
        self.busy, self.order = set(), 0
        self.left = [-(-int(n) // payload) for n in messages.nbytes]
        self.count, self.unacked = list(self.left), list(self.left)
        self.ready = defaultdict(deque)
        self.received, self.finished = {}, {}

    def at(self, when, what, *args):
        heapq.heappush(self.events, (when, self.order, what, args))
        self.order += 1

    def run(self):
        for f, start in enumerate(self.messages.start):
            self.at(round(start * PS), self.begin, f)
        while self.events:
            self.now, _, what, args = heapq.heappop(self.events)
            what(*args)
        n = len(self.left)
        return np.array([self.received[f] for f in range(n)]), np.array([self.finished[f] for f in range(n)])

    def begin(self, f):
        self.ready[int(self.messages.src[f])].append(f)
        self.start(int(self.messages.src[f]))

    def next_of(self, link):
        data, answers = self.queue[link]
        if answers:
            return answers.popleft()
        if data:
            return data.popleft()
        turn = self.ready[link] if link < len(self.ways.hosts) else ()
        if not turn:
            return None
        f = turn.popleft()
        self.left[f] -= 1
        last = self.left[f] == 0
        size = int(self.messages.nbytes[f]) - (self.count[f] - 1) * self.payload if last else self.payload
        if not last:
            turn.append(f)
        return (f, size + self.header, int(self.messages.dst[f]), True)

    def start(self, link):
        if link in self.busy:
            return
        packet = self.next_of(link)
        if packet is None:
            return
        self.busy.add(link)
        took = round_half_up(packet[1] * (PS / self.network.bandwidth[self.ways.links[link]]))
        self.at(self.now + took, self.leave, link, packet)

    def leave(self, link, packet):
        self.busy.discard(link)
        self.at(self.now + round(self.network.latency[self.ways.links[link]] * PS), self.arrive, link, packet)
        self.start(link)

    def arrive(self, link, packet):
        f, _, target, is_data = packet
        to = int(self.ways.to[link])
        if to >= len(self.ways.hosts):
            out = self.path(to - len(self.ways.hosts), f, target)
            self.queue[out][0 if is_data else 1].append(packet)
            self.start(out)
        elif is_data:
            self.unacked[f] -= 1
            if self.unacked[f] == 0:
                self.received[f] = self.now
            self.queue[to][1].append((f, self.header, int(self.messages.src[f]), False))
            self.start(to)
        else:
            self.finished[f] = self.now  # the last one stays
