"""What packets of a collective met with in the packet engine: queues, ways, losses, slowdowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.packets.link_samples import LinkSamples
from commsim.packets.links.queues import ROCE
from commsim.pages.figure import Figure, NothingToDraw
from commsim.pages.simulated_run import SimulatedRun

from . import figures_of_links as links
from .figures_of_messages import slowdown_figure

NONE = "only the packet engine has queues over time: engine packet, without start jitter"


def slowdown(run: SimulatedRun) -> Figure:
    """Which share of the messages has at most a slowdown against :func:`alone`."""
    if run.samples is None:
        raise NothingToDraw(NONE)
    plan = run.prepared.plan
    crosses = np.diff(plan.routes.first)[plan.connection_of] > 0
    if not crosses.any():
        raise NothingToDraw("no message crosses a link")
    took = run.trace.done - run.trace.start
    return slowdown_figure(took[crosses] / alone(run)[crosses], run.name)


def alone(run: SimulatedRun) -> NDArray[np.float64]:
    """Least time that each message can take until its receiver has it: its bytes at the slowest link of its path.

    Its first packet is stored and forwarded at every other link.

    Returns
    -------
    float64[n_transfers], s
    """
    plan, network = run.prepared.plan, run.prepared.network
    wire = np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first))
    per_byte = 1.0 / network.bandwidth[plan.routes.link]
    slowest, on_all = np.zeros(len(plan.ends)), np.bincount(wire, per_byte, len(plan.ends))
    np.maximum.at(slowest, wire, per_byte)
    sender = run.prepared.placement.nodes[plan.ends[:, 0]]
    before = network.overhead[sender] + plan.routes.latency
    of = plan.connection_of
    first = np.minimum(run.n_bytes, ROCE.payload + ROCE.header)
    return np.asarray(before[of] + run.n_bytes * slowest[of] + first * (on_all - slowest)[of])


def _samples(run: SimulatedRun) -> LinkSamples:
    if run.samples is None:
        raise NothingToDraw(NONE)
    return run.samples


OF_PACKETS: Mapping[str, Callable[[SimulatedRun], Figure]] = {
    "slowdown": slowdown,
    "queues": lambda run: links.queues(run.prepared.network, _samples(run), run.name),
    "packets": lambda run: links.packet_counts(_samples(run), run.name),
    "fullest": lambda run: links.fullest(run.prepared.network, _samples(run), run.name),
    "ways": lambda run: links.ways(run.prepared.network, _samples(run), run.name),
}
