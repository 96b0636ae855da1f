"""Cables of a testbed that go down during a run and come up again, and what a collective loses by it.

A cable is cut by rules that drop what arrives at either end, so that nobody is notified: the routers' tables change
only when the network would have noticed, as :class:`commsim.routing.flaps.Flaps` says. What was lost on the way TCP
sends again by its own timers; that is what the engines' `rto` models.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.placement import Placement
from commsim.prediction.plans.dense import Plan
from commsim.routing.flaps import Flaps
from commsim.routing.pinned import turned_away, without_routes_over
from switch_model.bpf.commands import output_of

from .build import opened, receive_window, set_route
from .cable_shape import FRAME
from .forwarding import NextHops, next_hops
from .launch import Ranks
from .layout import TestbedLayout
from .measure import LoadMeter, ProcessorLoad
from .pinned import PRIORITY, pinned
from .places import NamesOfTestbed, has_nftables

TABLE = "netdev cut"
# Linux's least retransmission timeout, tcp_rto_min_us, s; RFC 6298 has 1 s.
LEAST_RTO = 0.2
__all__ = ["FlappedRun", "kernel_rto", "measure_flaps"]


@dataclass(frozen=True, slots=True, eq=False)
class FlappedRun:
    """A collective with and without flaps.

    Parameters
    ----------
    collective : str
        Its name.
    size : float, bytes
        Size as nccl-tests counts it.
    whole, flapped : float64[n_runs], s
        Measured times without and with the flaps.
    predicted_whole, predicted_lost : float, s
        Times predicted by the flow engine.
    wrong : float
        Wrong elements of the runs with flaps.
    load : ProcessorLoad
        Load of the processors during these runs.
    """

    collective: str
    size: float
    whole: NDArray[np.float64]
    flapped: NDArray[np.float64]
    predicted_whole: float
    predicted_lost: float
    wrong: float
    load: ProcessorLoad

    @property
    def lost(self) -> float:
        """Measured loss: the difference of the medians, s."""
        return float(np.median(self.flapped) - np.median(self.whole))

    @property
    def error(self) -> float:
        """Relative error of the predicted loss; infinite where nothing was lost."""
        return self.predicted_lost / self.lost - 1 if self.lost else float("inf")


def kernel_rto(layout: TestbedLayout) -> float:
    """Return how long TCP pauses after a loss in a testbed, s.

    That is Linux's least timeout above a round trip (RFC 6298), a receive window at the rate of the slowest link. Then
    the window that was lost is sent again. Receivers answer at once: a gap longer than their own timeout puts them into
    quick acknowledgement (tcp_event_data_recv).
    """
    return LEAST_RTO + 2 * receive_window(layout) / float(layout.network.bandwidth.min())


def measure_flaps(ranks: Ranks, prepared: Plan, size: int, flaps: Flaps, *, iterations: int = 3) -> FlappedRun:
    """Run a collective without and with flaps, and predict both.

    Parameters
    ----------
    ranks : Ranks
        Ranks in their namespaces, where `prepared` has placed them.
    prepared : Plan
        A schedule on the testbed's network.
    size : int, bytes
        Size as nccl-tests counts it.
    flaps : Flaps
        Their times begin with each run.
    iterations : int
        Runs of each kind.

    Raises
    ------
    BackendError
        If the ranks do not answer, or the kernel has no nftables.
    InputError
        If a flap outlives the predicted run.
    """
    if not has_nftables():
        raise BackendError("cables are cut by nftables, which this kernel does not have; without --flap nothing is cut")
    place, layout, schedule = ranks.place, ranks.layout, prepared.schedule
    predicted = prepared.predict(size, framing=FRAME.framing, flaps=flaps)
    with pinned(place, layout, prepared.placement):
        whole = ranks.run(schedule, size, warmup=1, iterations=iterations)
    meter, samples, wrong = LoadMeter(place), [], 0.0
    for _ in range(iterations):
        # no warm-up: it would run into the flap; connections are open already
        ranks.prepare(schedule, size, warmup=0, iterations=1)
        with _Cables(place, layout, prepared.placement, flaps) as cables:
            ranks.begin()
            cables.flap()
            answer = ranks.finish()
        samples += answer["samples"]
        wrong = max(wrong, answer["wrong"])
    lost = predicted.counters["flap_lost_s"]
    return FlappedRun(schedule.name, answer["size"], np.array(whole["samples"]), np.array(samples),
                   predicted.time - lost, lost, wrong, meter.read())  # fmt: skip


class _Cables:
    """Cuts cables and moves routes; all is as before when the `with` ends."""

    def __init__(self, place: NamesOfTestbed, layout: TestbedLayout, placement: Placement, flaps: Flaps) -> None:
        self._place, self._layout, self._placement, self._flaps = place, layout, placement, flaps
        self._port = {port.link: port for port in layout.ports}
        self._hops = {now: self._hops_at(now) for now in (-1.0, *flaps.changes())}
        self._pins = contextlib.ExitStack()
        self._avoided: NDArray[np.bool_] = flaps.avoided(layout.network, -1.0)
        self._turn = 0

    def __enter__(self) -> _Cables:
        self._doors = contextlib.ExitStack()
        self._door: dict[int, Any] = {}
        if not self._layout.bridged:
            for node in range(self._layout.network.n_nodes):
                self._door[node] = self._doors.enter_context(opened(self._place.namespace(node)))
        self._now_hops = self._hops[-1.0]
        self._pin(-1.0)
        return self

    def flap(self) -> None:
        """Change cables and routes at their times from now on; return after the last one."""
        began = time.monotonic()
        for now in self._flaps.changes():
            time.sleep(max(0.0, began + now - time.monotonic()))
            self._cut(now)
            self._route(now)
            self._pin(now)

    def __exit__(self, *_: object) -> None:
        try:
            self._cut(-1.0)
            self._route(-1.0)
        finally:
            self._pins.close()
            self._doors.close()

    def _hops_at(self, now: float) -> NextHops:
        if self._layout.bridged:
            return {}
        network = self._layout.network
        return next_hops(turned_away(network, self._flaps.avoided(network, now)), network.routing)

    def _cut(self, now: float) -> None:
        """Drop what arrives over the cables that are down, and nothing else."""
        network = self._layout.network
        down, ever = self._flaps.down(network, now), {link for flap in self._flaps.flaps for link in flap.links}
        for node in {self._port[link].node for link in ever}:
            ports = [port.device for port in self._layout.ports_of(node) if down[port.link]]
            chains = "".join(
                f'chain {device} {{ type filter hook ingress device "{device}" priority -10; policy drop; }}\n'
                for device in ports
            )
            # made, so that it can be deleted whether it was there or not
            rules = f"table {TABLE} {{ }}\ndelete table {TABLE}\n" + (f"table {TABLE} {{\n{chains}}}\n" * bool(ports))
            output_of(["nsenter", f"--net=/run/netns/{self._place.namespace(node)}", "nft", "-f", "-"], rules)

    def _route(self, now: float) -> None:
        for key, links in self._hops[now].items():
            if self._now_hops.get(key) != links:
                node, destination = key
                set_route(self._layout, self._door[node], destination, [self._port[link] for link in links])
        self._now_hops = self._hops[now]

    def _pin(self, now: float) -> None:
        """Pin the routes that avoid nothing, before those of the time before are given up."""
        avoided = self._flaps.avoided(self._layout.network, now)
        if now >= 0 and np.array_equal(avoided, self._avoided):
            return
        self._avoided, self._turn = avoided, 1 - self._turn
        new = contextlib.ExitStack()
        left = without_routes_over(self._placement, avoided)
        new.enter_context(pinned(self._place, self._layout, left, PRIORITY + self._turn))
        self._pins.close()
        self._pins = new
