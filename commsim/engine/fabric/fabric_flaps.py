"""Cables between switches that go down while packets are sprayed, and come up again.

What waits before a cable that goes down, and what is on it, is lost, as is all that is sent over it until the switches
know; senders find out by their timers, and those that choose paths by what comes back leave it sooner. Changes are made
where a span of the simulation begins: at most the least latency of a link late.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.routing.flaps import Flaps

from .fabric_state import Fabric
from .ways import Ways, ways_around

LOSSES = ("loss", "loss_bad")
LISTS = ("low_head", "high_head", "pipe_head")
ENDS = ("serving", "low_head", "low_tail", "high_head", "high_tail", "pipe_head", "pipe_tail")
__all__ = ["FabricFlaps"]


class FabricFlaps:
    """Makes the changes of one run.

    Parameters
    ----------
    network : Network
        Network of the run.
    ways : Ways
        Equal-cost sets of the network with all links up.
    flaps : Flaps
        What goes down when; its `rto` is the transport's own here.

    Raises
    ------
    InputError
        If a cable of a host flaps, or senders are given another timeout.
    """

    def __init__(self, network: Network, ways: Ways, flaps: Flaps) -> None:
        if flaps.rto:
            raise InputError("sprayed transports have timers of their own; leave out --rto")
        ours = {int(link) for link in ways.links[: 2 * len(ways.hosts)]}
        for flap in flaps.flaps:
            if ours & set(flap.links):
                raise InputError(f"{flap.name} is the only link of a host; flap a link between switches")
        self._network, self._ways, self.flaps = network, ways, flaps
        self._times = flaps.changes()
        self._loss: NDArray[np.void] = np.zeros(0, np.void)  # of links that are up
        self._down = np.zeros(network.n_links, np.bool_)
        self._avoided = np.zeros(network.n_links, np.bool_)

    @property
    def next(self) -> float:
        """When the next change is due."""
        return self._times[0] if self._times else np.inf

    def begin(self, fabric: Fabric) -> None:
        """Note what the links lose when they are up."""
        self._loss = fabric.link[list(LOSSES)].copy()

    def make(self, fabric: Fabric) -> Fabric:
        """Make the change that is due."""
        now = self._times.pop(0)
        down, avoided = self.flaps.down(self._network, now), self.flaps.avoided(self._network, now)
        for row in np.flatnonzero((down & ~self._down)[self._ways.links]):
            _empty(fabric, int(row))
        n = len(self._ways.links)  # of the network; aggregation units come after them
        for name in LOSSES:
            fabric.link[name][:n] = np.where(down[self._ways.links], 1.0, self._loss[name][:n])
        fabric.link["lossy"] = (fabric.link["loss"] > 0) | (fabric.link["to_bad"] > 0)
        if (avoided != self._avoided).any():
            way, ways = ways_around(self._network, self._ways, avoided)
            fabric = fabric._replace(way=way, ways=ways)
            fabric.flowlet["link"] = -1
        self._down, self._avoided = down, avoided
        return fabric


def _empty(fabric: Fabric, row: int) -> None:
    """Drop what is queued before a link, being sent and on it."""
    link, state, packet = fabric.link[row], fabric.state, fabric.packet
    lost = _listed(packet["next"], [int(link[name]) for name in LISTS])
    if link["serving"] >= 0:
        lost.append(int(link["serving"]))
    for p in lost:
        packet["next"][p] = state["first_free"]
        state["first_free"] = p
    state["n_free"] += len(lost)
    state["drops_loss"] += len(lost)
    link["n_dropped"] += len(lost)
    link["low"] = link["high"] = 0
    for name in ENDS:
        link[name] = -1


def _listed(after: NDArray[np.int32], heads: list[int]) -> list[int]:
    """Return the packets of some lists."""
    found = []
    for p in heads:
        while p >= 0:
            found.append(p)
            p = int(after[p])
    return found
