"""Cables that go down while packets are under way, and come up again.

What waits before a cable that goes down, and what is on it, is lost, as is all that is sent over it until the switches
know; senders find out by their timers, and those that choose paths by what comes back leave it sooner. Then switches
send later packets another way: those that keep to a path get new rows in the table of routes, so that packets that are
under way stay on the old one. A host goes on sending into its own cable, as does a switch that pauses others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import Records
from commsim.core.network import Network
from commsim.core.placement import joined
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.event_rows import ROUTE_ROW, on_lines
from commsim.packets.links.equal_cost_links import EqualCostWays, ways_around
from commsim.packets.packet_rows import RunState
from commsim.routing.flaps import Flap, Flaps
from commsim.routing.pinned import find_routes_around, turned_round

LOSSES = ("loss", "loss_bad")
LISTS = ("low_head", "high_head", "pipe_head")
# A sender repeats what it loses until a cable is up again: a run ends when it lost so many more packets than it has.
MOST_LOST = 1_000_000
FIRST_LOOK = 0.01  # s after a cable goes down; then at twice the time, and so on
ENDS = ("serving", "low_head", "low_tail", "high_head", "high_tail", "pipe_head", "pipe_tail")


class Flapping:
    """Makes the changes of one run.

    Parameters
    ----------
    network : Network
        Network of the run.
    ways : EqualCostWays
        Numbers of its links, and its equal-cost sets with all links up.
    flaps : Flaps
        What goes down when.
    plan : FlowPlan, optional
        What runs where, if its packets keep to paths.

    Raises
    ------
    InputError
        If packets are sprayed, and a cable flaps that is not between switches.
    """

    def __init__(self, network: Network, ways: EqualCostWays, flaps: Flaps, plan: FlowPlan | None = None) -> None:
        between = np.isin(network.src, ways.switches) & np.isin(network.dst, ways.switches)
        for flap in flaps.flaps if plan is None else ():
            if not between[list(flap.links)].all():
                raise InputError(
                    f"{flap.name} is no link between switches, and a sprayed message keeps to the ports of its hosts; "
                    "flap a link between switches"
                )
        self._network, self._ways, self._plan, self.flaps = network, ways, plan, flaps
        self._looks = {look: flap for flap in flaps.flaps for look in _looks(flap)}
        self._times = sorted({*flaps.changes(), *self._looks})
        self._loss: Records = np.zeros(0, np.void)  # of links that are up
        self._down = np.zeros(network.n_links, np.bool_)
        self._avoided = np.zeros(network.n_links, np.bool_)
        self.was_rerouted = np.zeros(0 if plan is None else len(plan.ends), np.bool_)

    @property
    def next(self) -> float:
        """When the next change is due."""
        return self._times[0] if self._times else np.inf

    def begin(self, fabric: RunState) -> None:
        """Note what the links lose when they are up."""
        self._loss = fabric.link[list(LOSSES)].copy()

    def make(self, fabric: RunState) -> RunState:
        """Make the change that is due.

        Raises
        ------
        InputError
            If a cable is down for so long that most of the run would be packets that are sent again and lost.
        """
        now = self._times.pop(0)
        if now in self._looks:
            _refuse_endless(fabric, self._looks[now], now)
        down, avoided = self.flaps.down(self._network, now), self.flaps.avoided(self._network, now)
        for row in np.flatnonzero((down & ~self._down)[self._ways.links]):
            if not fabric.link[row]["evented"]:  # else it goes on sending, and all is lost
                _empty(fabric, int(row))
        n = len(self._ways.links)  # of the network; aggregation units come after them
        for name in LOSSES:
            fabric.link[name][:n] = np.where(down[self._ways.links], 1.0, self._loss[name][:n])
        fabric.link["lossy"] = (fabric.link["loss"] > 0) | (fabric.link["to_bad"] > 0)
        if (avoided != self._avoided).any():
            fabric = self._rerouted(fabric, avoided)
        self._down, self._avoided = down, avoided
        return fabric

    def _rerouted(self, fabric: RunState, avoided: NDArray[np.bool_]) -> RunState:
        """Let switches send what comes later another way."""
        if self._plan is not None:
            return _with_paths(fabric, self._ways, self._plan, avoided, self.was_rerouted)
        way, ways = ways_around(self._network, self._ways, avoided)
        fabric.flowlet["link"] = -1
        return fabric._replace(way=way, ways=ways)


def _looks(flap: Flap) -> list[float]:
    """Return when to look whether senders still repeat what they lose, at doubled times while cables are down, s."""
    if flap.length <= FIRST_LOOK:
        return []
    return [flap.at + FIRST_LOOK * 2**k for k in range(math.ceil(math.log2(flap.length / FIRST_LOOK)))]


def _refuse_endless(fabric: RunState, flap: Flap, now: float) -> None:
    lost = int(fabric.state["drops_loss"])
    if lost > MOST_LOST + int(fabric.flow["n_packets"].sum(dtype=np.int64)):
        raise InputError(
            f"flap {flap.name}: {lost} packets are lost after {now - flap.at:.4g} of {flap.length:g} s, since senders "
            "repeat them; use the flow engine, or a shorter flap, or --fail for a cable that stays down"
        )


def _with_paths(
    fabric: RunState, ways: EqualCostWays, plan: FlowPlan, avoided: NDArray[np.bool_], was_rerouted: NDArray[np.bool_]
) -> RunState:
    """Give new rows in the table of routes to what takes another path from now on, packets of flows and answers."""
    placement = joined([job.placement for job in plan.jobs])
    number, more, n_rows, place = 0, list[NDArray[np.int32]](), len(fabric.route), ways.place
    for placed, ends in ((placement, plan.ends), (turned_round(plan.network, placement), plan.ends[:, ::-1])):
        routes = find_routes_around(
            plan.network, placed, ends, plan.channel, avoided, routing=plan.routing, seed=plan.seed,
            hashed_channel=plan.hashed_channel,
        )  # fmt: skip
        for wire in range(len(ends)):
            stream, path = fabric.stream[number], place[routes.link[routes.first[wire] : routes.first[wire + 1]]]
            if not np.array_equal(fabric.route["link"][stream["begin"] : stream["end"]], path):
                stream["begin"], stream["end"] = n_rows, n_rows + len(path)
                n_rows += len(path)
                more.append(path)
                was_rerouted[wire] = True
            number += 1
    if not more:
        return fabric
    route = np.zeros(n_rows, ROUTE_ROW)
    route[: len(fabric.route)] = fabric.route
    route["link"][len(fabric.route) :] = np.concatenate(more)
    route["last"][fabric.stream["end"][fabric.stream["end"] > fabric.stream["begin"]] - 1] = True
    return fabric._replace(route=on_lines(route))


def _empty(fabric: RunState, row: int) -> None:
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
