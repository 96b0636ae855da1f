"""Replay a work in ns.py, packet by packet: ``python ns_py_replay.py WORK_FILE``, with any Python that has ns.py.

Every link is a port and a wire of ns.py. A message is cut into packets of 4,096 bytes and 82 of headers, which queue at
their sender's port all at once and follow the work's routes; nothing acknowledges them.
"""

from __future__ import annotations

import json
import math
import sys
import time
from array import array
from importlib.metadata import version
from typing import Any, BinaryIO

import simpy
from ns.packet.packet import Packet
from ns.port.port import Port
from ns.port.wire import Wire

PAYLOAD, HEADERS = 4096, 82


class Replay:
    """Hosts, links and messages, as ``work_file.py`` writes them."""

    def __init__(self, file: BinaryIO) -> None:
        sizes = column(file, "i", 8)
        n_hosts, _, self.n_rounds, fetched, n_links, n_routes, n_entries, n_messages = sizes
        if fetched:
            raise SystemExit("ns_py_replay: works that receivers fetch are not for packets")
        bandwidth, latency, _, self.link_dst = (column(file, kind, n_links) for kind in "ddii")
        self.src, self.dst = column(file, "i", n_routes), column(file, "i", n_routes)
        first, link = column(file, "i", n_routes + 1), column(file, "i", n_entries)
        self.path = [link[first[r] : first[r + 1]] for r in range(n_routes)]
        self.n_bytes, self.route, self.round = (column(file, kind, n_messages) for kind in "dii")
        self.env = simpy.Environment()
        self.port = [self.make_link(bandwidth[i], latency[i]) for i in range(n_links)]
        self.place, self.n_left, self.last = [-1] * n_hosts, n_messages, 0.0
        self.missing = [[0] * self.n_rounds for _ in range(n_hosts)]
        self.sends: list[list[list[int]]] = [[[] for _ in range(self.n_rounds)] for _ in range(n_hosts)]
        for m, r in enumerate(self.route):
            self.sends[self.src[r]][self.round[m]].append(m)
            for host in (self.src[r], self.dst[r]):
                self.missing[host][self.round[m]] += 1

    def make_link(self, bandwidth: float, latency: float) -> Any:
        """Return a port, and behind it a wire that leads back here."""
        port, wire = Port(self.env, 8 * bandwidth), Wire(self.env, lambda: latency)
        port.out, wire.out = wire, self
        return port

    def run(self) -> float:
        """Play everything; return when the last message was complete, in seconds."""
        for host in range(len(self.place)):
            self.begin(host)
        self.env.run()
        if self.n_left:
            raise SystemExit(f"ns_py_replay: {self.n_left} messages did not arrive")
        return self.last

    def begin(self, host: int) -> None:
        """Begin the next rounds of a host, as long as nothing is missing in the one before."""
        while self.place[host] < 0 or not self.missing[host][self.place[host]]:
            self.place[host] += 1
            if self.place[host] == self.n_rounds:
                return
            for message in self.sends[host][self.place[host]]:
                self.send(message)

    def send(self, message: int) -> None:
        """Put all packets of a message into the port of its first link."""
        n_packets = math.ceil(self.n_bytes[message] / PAYLOAD)
        path = self.path[self.route[message]]
        for i in range(n_packets):
            size = min(PAYLOAD, self.n_bytes[message] - i * PAYLOAD) + HEADERS
            self.port[path[0]].put(Packet(self.env.now, size, i, flow_id=message, payload=[1, i == n_packets - 1]))

    def put(self, packet: Any) -> None:
        """Take a packet from a wire: on to its next link, or it has arrived."""
        message, path = packet.flow_id, self.path[self.route[packet.flow_id]]
        if packet.payload[0] < len(path):
            packet.payload[0] += 1
            self.port[path[packet.payload[0] - 1]].put(packet)
        elif packet.payload[1]:  # one path, first in first out: the last packet is the last to arrive
            self.n_left, self.last = self.n_left - 1, self.env.now
            for host in (self.src[self.route[message]], self.dst[self.route[message]]):
                self.missing[host][self.round[message]] -= 1
                if self.place[host] < self.n_rounds:
                    self.begin(host)


def column(file: BinaryIO, kind: str, length: int) -> Any:
    """Read one column."""
    values = array(kind)
    values.fromfile(file, length)
    return values


def main() -> int:
    """Print what it took as one line of JSON."""
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123 - nothing of commsim, whatever Python this is
        replay = Replay(file)
    begin = time.process_time()
    last = replay.run()
    run = time.process_time() - begin
    with open("/proc/self/status") as status:  # noqa: PTH123
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6
    print(json.dumps({"version": version("ns.py"), "time_s": last, "run_cpu_s": run, "peak_MB": peak}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
