"""What the kernel counts at the ports of a testbed: bytes, packets, and how often a packet had to wait for its turn."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switch_model.bpf.commands import output_of

from .layout import Layout
from .places import Place


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counters of every directed link, at the port where it begins.

    Parameters
    ----------
    n_bytes, packets : float64[n_links]
        Sent, with Ethernet headers.
    waited : float64[n_links]
        How often the token bucket made a packet wait.
    dropped : float64[n_links]
        Packets that found the queue full.
    """

    n_bytes: NDArray[np.float64]
    packets: NDArray[np.float64]
    waited: NDArray[np.float64]
    dropped: NDArray[np.float64]

    def __sub__(self, earlier: Counts) -> Counts:
        return Counts(self.n_bytes - earlier.n_bytes, self.packets - earlier.packets, self.waited - earlier.waited,
                      self.dropped - earlier.dropped)  # fmt: skip

    @property
    def waiting(self) -> NDArray[np.float64]:
        """Part of each link's packets that waited: near 1 where the link, and not its sender, set the pace."""
        return self.waited / np.maximum(self.packets, 1.0)


def read_counts(place: Place, layout: Layout) -> Counts:
    """Read the counters of all ports.

    Raises
    ------
    BackendError
        If a namespace is gone.
    """
    rows = np.zeros((4, layout.network.n_links))
    for node in sorted({port.node for port in layout.ports}):
        queues = json.loads(output_of(["tc", "-s", "-j", "-n", place.namespace(node), "qdisc", "show"]) or "[]")
        buckets = {queue["dev"]: queue for queue in queues if queue.get("kind") == "tbf"}
        for port in layout.ports_of(node):
            found = buckets[port.device]
            rows[:, port.link] = found["bytes"], found["packets"], found["overlimits"], found["drops"]
    return Counts(*rows)
