"""What the kernel counts at the ports of a testbed: bytes, packets, and how often a packet had to wait for its turn.

What the processors did during a run: for us, for others, and nothing.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

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


FOREIGN = 0.25
"""Others may use this part of the machine; interrupts of the network's own are in it, 5 to 15 % of two cores."""
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Load:
    """Use of the processors between two moments.

    Parameters
    ----------
    wall : float, s
        Time between them.
    busy : float, s
        Processor time of everybody, interrupts too.
    ours : float, s
        Processor time of the testbed's processes and of this one.
    cores : int
        Processors that there are.
    """

    wall: float
    busy: float
    ours: float
    cores: int

    @property
    def foreign(self) -> float:
        """Part of the machine that others used, and the network's own work in interrupts."""
        return max(0.0, self.busy - self.ours) / (self.wall * self.cores)

    @property
    def disturbed(self) -> str:
        """Say that others have used so much that times mean little; or nothing."""
        return f"others used {self.foreign:.0%} of the processors" if self.foreign > FOREIGN else ""

    @property
    def idle(self) -> float:
        """Part of the machine that nobody used."""
        return max(0.0, 1 - self.busy / (self.wall * self.cores))


class LoadMeter:
    """Measures from its making to `read`.

    Parameters
    ----------
    place : Place
        The testbed, whose processes are ours; those that have ended are, if this process has started them.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._began = time.monotonic(), _busy(), self._ours()

    def read(self) -> Load:
        """Return what has been since the beginning."""
        wall, busy, ours = time.monotonic(), _busy(), self._ours()
        return Load(max(wall - self._began[0], 1e-9), busy - self._began[1], ours - self._began[2], os.cpu_count() or 1)

    def _ours(self) -> float:
        return sum(_spent(pid) for pid in self._place.processes()) + sum(os.times()[:4])


def _busy() -> float:
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _wait, interrupt, softirq, stolen = (int(x) for x in fields[:8])
    return (user + nice + system + interrupt + softirq + stolen) / _TICK


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK
