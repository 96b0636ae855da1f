"""Packets while links flap: what a link that is down carries is lost, and switches send later packets another way.

At a change the kernels stop; the tables of links and ways are changed, and they go on. A way that changes gets new rows
in the table of routes, so that packets that are under way stay on the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.placement import joined
from commsim.engine.flow_plan import FlowPlan
from commsim.routing.flaps import Flaps
from commsim.routing.pinned import find_routes_around, turned_round

from .packet_run import Tables
from .packet_state import PS, ROUTE_ROW, on_lines
from .wheel_kernel import schedule


class Stop(Protocol):
    """What is done at times at which the kernels stop."""

    @property
    def next(self) -> float:
        """When it is due, in seconds; infinity for never again."""

    def begin(self, tables: Tables) -> None:
        """Prepare, before the first event."""

    def make(self, tables: Tables) -> Tables:
        """Do what is due."""


class Stops:
    """All that the kernels stop for; one event serves them all.

    Parameters
    ----------
    stops : sequence of Stop
        What is due at the same time is done in this order.
    """

    def __init__(self, stops: Sequence[Stop]) -> None:
        self.stops = stops

    def begin(self, tables: Tables) -> None:
        """Prepare all, and set the first event."""
        for stop in self.stops:
            stop.begin(tables)
        self._set(tables)

    def make(self, tables: Tables) -> Tables:
        """Do all that is due, and set the next event."""
        now = min(stop.next for stop in self.stops)
        for stop in self.stops:
            if stop.next <= now:
                tables = stop.make(tables)
        self._set(tables)
        return tables

    def _set(self, tables: Tables) -> None:
        when = min((stop.next for stop in self.stops), default=np.inf)
        if np.isfinite(when):
            schedule(tables.links.events, int(tables.links.state["change_event"]), round(when * PS))


class LinkChanges:
    """Changes of links and ways that are still to come.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    flaps : Flaps
        Links that go down, when, and when switches know.
    """

    def __init__(self, plan: FlowPlan, flaps: Flaps) -> None:
        self.plan, self.flaps = plan, flaps
        self.changes = flaps.changes()
        self.avoided = np.zeros(plan.network.n_links, np.bool_)
        self.was_rerouted = np.zeros(len(plan.ends), np.bool_)
        self.loss: NDArray[np.void] = np.zeros(0, np.void)  # of links that are up
        self.hop_stream = np.zeros(0, np.int64)  # of each row in the table of routes

    @property
    def next(self) -> float:
        """When the next change is due."""
        return self.changes[0] if self.changes else np.inf

    def begin(self, tables: Tables) -> None:
        """Note what the links lose when they are up."""
        stream = tables.links.stream
        self.loss = tables.links.link[["loss", "loss_bad"]].copy()
        self.hop_stream = np.repeat(np.arange(len(stream)), stream["end"] - stream["begin"])

    def make(self, tables: Tables) -> Tables:
        """Make the change that is due."""
        now = self.changes.pop(0)
        link = tables.links.link
        down = np.zeros(len(link), np.bool_)
        down[: self.plan.network.n_links] = self.flaps.down(self.plan.network, now)
        for name in ("loss", "loss_bad"):
            link[name] = np.where(down, 1.0, self.loss[name])
        link["lossy"] = (link["loss"] > 0) | (link["to_bad"] > 0)
        avoided = self.flaps.avoided(self.plan.network, now)
        if (avoided != self.avoided).any():
            self.avoided = avoided
            tables = self._reroute(tables)
        return tables

    def _reroute(self, tables: Tables) -> Tables:
        """Give new rows in the table of routes to what takes another way from now on, data and acknowledgements."""
        links, plan = tables.links, self.plan
        placement = joined([job.placement for job in plan.jobs])
        number = len(links.stream) - 2 * len(plan.ends)  # streams of jobs that aggregate come before
        ways: list[NDArray[np.int32]] = []
        n_rows = len(links.route)
        for placed, ends in ((placement, plan.ends), (turned_round(plan.network, placement), plan.ends[:, ::-1])):
            found = find_routes_around(
                plan.network, placed, ends, plan.channel, self.avoided, routing=plan.routing, seed=plan.seed,
                hashed_channel=plan.hashed_channel,
            )  # fmt: skip
            for wire in range(len(ends)):
                stream, way = links.stream[number], found.link[found.first[wire] : found.first[wire + 1]]
                if not np.array_equal(links.route["link"][stream["begin"] : stream["end"]], way):
                    stream["begin"], stream["end"] = n_rows, n_rows + len(way)
                    n_rows += len(way)
                    ways.append(way)
                    self.hop_stream = np.append(self.hop_stream, np.full(len(way), number))
                    self.was_rerouted[wire] = True
                number += 1
        if not ways:
            return tables
        route = np.zeros(n_rows, ROUTE_ROW)
        route[: len(links.route)] = links.route
        route["link"][len(links.route) :] = np.concatenate(ways)
        route["last"][links.stream["end"][links.stream["end"] > links.stream["begin"]] - 1] = True
        return tables._replace(links=links._replace(route=on_lines(route)))
