"""The packet engine's ideal window in plain Python: one heap, one event for everything, lists instead of tables.

Shares only the routes, the values and the meaning with commsim; data order, wires, queues and time are its own.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slow_flow import waits

from commsim.core.network import Network
from commsim.routing.routing import find_routes

LEAVES, ARRIVES, LOOKS = 0, 1, 2  # in this order at equal times
PS = 1e12


@dataclass(eq=False)
class Message:
    """A transfer."""

    ready: int
    n_bytes: float
    after_done: set[int]
    after_sent: set[int]
    packets: list[int] = field(default_factory=list)  # sizes
    start: int | None = None
    sent: int | None = None
    done: int | None = None


@dataclass(eq=False)
class Packet:
    """Data, or an acknowledgement, on its path."""

    flow: "Flow"
    path: list[int]
    size: int
    number: int
    overhead: int = 0
    is_ack: bool = False


@dataclass(eq=False)
class Flow:
    """A wire."""

    number: int
    path: list[int]
    back: list[int]
    messages: list[Message]
    n_started: int = 0
    n_sent: int = 0  # packets
    n_acknowledged: int = 0
    n_received: int = 0
    n_unanswered: int = 0
    in_queue: bool = False
    looking: bool = False

    def ends(self) -> list[int]:
        """Packets up to the end of each message."""
        total, out = 0, []
        for message in self.messages:
            total += len(message.packets)
            out.append(total)
        return out


class Simulation:
    """All of it; `window` and `ack_every` are in packets, `ack_size`, `payload` and `header` in bytes."""

    def __init__(self, network: Network, window: int, ack_every: int, ack_size: int, payload: int, header: int) -> None:
        self.network, self.window, self.ack_every, self.ack_size = network, window, ack_every, ack_size
        self.payload, self.header = payload, header
        self.now, self.count = 0, 0
        self.heap: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self.queues: list[deque[Packet]] = [deque() for _ in range(network.n_links)]
        self.messages: list[Message] = []
        self.flows: list[Flow] = []

    def at(self, when: int, kind: int, number: int, what: Callable[[], None]) -> None:
        """Do something later."""
        self.count += 1
        heapq.heappush(self.heap, (when, kind, number, self.count, what))

    def enqueue(self, packet: Packet) -> None:
        """Queue a packet at the first link of its path."""
        link = packet.path[0]
        self.queues[link].append(packet)
        if len(self.queues[link]) == 1:
            self.serve(link)

    def serve(self, link: int) -> None:
        """Start to send the first packet of a queue."""
        packet = self.queues[link][0]
        took = int(packet.size * (PS / float(self.network.bandwidth[link])) + 0.5) + packet.overhead
        self.at(self.now + took, LEAVES, link, lambda: self.leave(link))

    def leave(self, link: int) -> None:
        """Let the first packet of a queue go on its way."""
        packet = self.queues[link].popleft()
        packet.path, packet.overhead = packet.path[1:], 0
        self.at(self.now + round(float(self.network.latency[link]) * PS), ARRIVES, link, lambda: self.arrive(packet))
        if self.queues[link]:
            self.serve(link)
        flow = packet.flow
        if not packet.is_ack and len(packet.path) == len(flow.path) - 1:
            flow.in_queue = False
            if packet.number + 1 in flow.ends():
                flow.messages[flow.ends().index(packet.number + 1)].sent = self.now
                self.look_for_starts()
            self.transmit(flow)

    def arrive(self, packet: Packet) -> None:
        """Take a packet off a link."""
        flow = packet.flow
        if packet.path:
            self.enqueue(packet)
        elif packet.is_ack:
            flow.n_acknowledged = packet.number
            self.transmit(flow)
        else:
            flow.n_received += 1
            flow.n_unanswered += 1
            ended = flow.n_received in flow.ends()
            if ended:
                flow.messages[flow.ends().index(flow.n_received)].done = self.now
                self.look_for_starts()
            if ended or flow.n_unanswered == self.ack_every:
                flow.n_unanswered = 0
                self.enqueue(Packet(flow, list(flow.back), self.ack_size, flow.n_received, is_ack=True))

    def look_for_starts(self) -> None:
        """Start every message that may start now; its flow looks at its turn."""
        for flow in self.flows:
            while flow.n_started < len(flow.messages):
                message = flow.messages[flow.n_started]
                before = flow.messages[: flow.n_started]
                if (
                    self.now < message.ready
                    or any(m.sent is None for m in before)
                    or any(self.messages[i].done is None for i in message.after_done)
                    or any(self.messages[i].sent is None for i in message.after_sent)
                ):
                    break
                message.start = self.now
                flow.n_started += 1
                if not flow.looking:
                    flow.looking = True
                    self.at(self.now, LOOKS, flow.number, lambda flow=flow: self.look(flow))  # type: ignore[misc]

    def look(self, flow: Flow) -> None:
        """Let a flow look whether it may send, or deliver what stays on one node."""
        flow.looking = False
        if flow.path:
            self.transmit(flow)
        else:
            for message in flow.messages[: flow.n_started]:
                if message.sent is None:
                    message.sent = message.done = self.now
            self.look_for_starts()

    def transmit(self, flow: Flow) -> None:
        """Send the next packet, if one may go and none waits in the host."""
        sizes = [(size, k == 0) for m in flow.messages[: flow.n_started] for k, size in enumerate(m.packets)]
        if flow.in_queue or flow.n_sent == len(sizes) or flow.n_sent - flow.n_acknowledged >= self.window:
            return
        size, first = sizes[flow.n_sent]
        overhead = round(float(self.network.overhead[self.network.src[flow.path[0]]]) * PS) if first else 0
        flow.in_queue = True
        self.enqueue(Packet(flow, list(flow.path), size, flow.n_sent, overhead))
        flow.n_sent += 1

    def add(self, jobs: Sequence[Any], sizes: Sequence[float], starts: Sequence[float], **routing: Any) -> None:
        """Lay out messages and flows, which are numbered by job, sender, receiver and channel."""
        flows: dict[tuple[int, int, int, int], Flow] = {}
        hops: dict[tuple[int, int, int, int], int] = {}
        first = 0
        for number, (job, size) in enumerate(zip(jobs, sizes, strict=True)):
            offset = len(self.messages)
            for t, (done, sent) in zip(job.schedule.expand(), waits(job.schedule), strict=True):
                ready = max(round(starts[first + t[end]] * PS) for end in ("src", "dst"))
                n_bytes = float(t["count"]) * size / job.schedule.n_chunks
                message = Message(ready, n_bytes, {offset + i for i in done}, {offset + i for i in sent})
                n_packets = max(1, math.ceil(n_bytes / self.payload))
                last = n_bytes - (n_packets - 1) * self.payload
                message.packets = [self.payload + self.header] * (n_packets - 1) + [math.ceil(last) + self.header]
                self.messages.append(message)
                key = (number, int(t["src"]), int(t["dst"]), int(t["channel"]))
                if key not in flows:
                    ends = [int(job.placement.nodes[t[end]]) for end in ("src", "dst")]
                    there, back = (
                        find_routes(self.network, [a], [b], key[3] + 1000 * number, **routing).link.tolist()
                        for a, b in (ends, ends[::-1])
                    )
                    flows[key] = Flow(0, there, back, [])
                    hops[key] = int(t["hop"])
                flows[key].messages.append(message)
            first += job.schedule.n_participants
        # what begins at one time begins in the order of its job's steps
        self.flows = [flows[key] for key in sorted(flows, key=lambda key: (key[0], hops[key], *key))]
        for i, flow in enumerate(self.flows):
            flow.number = i
            self.at(flow.messages[0].ready, LOOKS, i, self.look_for_starts)

    def play(self) -> list[tuple[int, int, int]]:
        """Start, sent and done of every message, in picoseconds."""
        while self.heap:
            self.now, _, _, _, what = heapq.heappop(self.heap)
            what()
        return [(m.start, m.sent, m.done) for m in self.messages]  # type: ignore[misc]
