"""One run in detail: its network, its schedule, the times of every transfer, the critical path, links over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result, Trace
from commsim.core.units import microseconds
from commsim.engine.critical_path import CriticalPath, critical_path, part_of_marks
from commsim.engine.flow import payload
from commsim.packets.link_samples import LinkSamples, LinkWatch
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import starts_of
from commsim.prediction.scenario import Wish
from commsim.prediction.work_plan import CollectivePlan

MAX_TRANSFERS = 4_000_000
# Transfers whose paths are expanded at one time.
AT_ONCE = 65_536
# Relative difference up to which two times are equal.
TOLERANCE = 1e-9
# At the links of a packet run; twice as many as parts of a figure, each showing the fullest queue.
LOOKS = 240
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRun:
    """A prepared collective, and what came out at one size.

    Parameters
    ----------
    name : str
        Name that the user gave the collective.
    prepared : Plan
        Network, schedule, placement and routes.
    result : Result
        Result with its trace.
    n_bytes : float64[n_transfers], bytes
        What each transfer put on the wire.
    critical : CriticalPath or None
        None when ranks started late.
    samples : LinkSamples or None
        Samples of the links in the packet engine.
    shown_ranks : tuple of int
        Those whose timelines are wanted.
    note : str
        What the times assume of the software; empty where they are those of the simulation.
    whole : Network, optional
        The network without faults, where it has some.
    """

    name: str
    prepared: Plan
    result: Result
    n_bytes: Reals
    critical: CriticalPath | None
    samples: LinkSamples | None = None
    shown_ranks: tuple[int, ...] = ()
    note: str = ""
    whole: Network | None = None

    @property
    def trace(self) -> Trace:
        """When each transfer started, left and was complete."""
        if self.result.trace is None:
            raise InputError(f"{self.name}: the engine {self.result.engine} keeps no times of single transfers")
        return self.result.trace

    @property
    def is_critical(self) -> NDArray[np.bool_]:
        """Whether each transfer is on the critical path."""
        on_path = np.zeros(len(self.n_bytes), bool)
        if self.critical is not None:
            on_path[list(self.critical.transfers)] = True
        return on_path

    def participants(self) -> list[str]:
        """Name every rank and helper, with the node that it sits on."""
        network, n = self.prepared.network, self.prepared.schedule.n_ranks
        nodes = self.prepared.placement.nodes.tolist()
        names = [f"rank {i}" if i < n else f"helper {i - n}" for i in range(len(nodes))]
        return [f"{name} on {network.nodes[node]}" for name, node in zip(names, nodes, strict=True)]

    def on_links(self, transfers: Numbers) -> Iterator[tuple[Numbers, NDArray[np.int32], Reals]]:
        """Go through the links that transfers take, some thousands of transfers at a time.

        Yields
        ------
        int64[m], int32[m], float64[m]
            Transfer, one of its links, and the bytes that it puts on that link.
        """
        plan = self.prepared.plan
        for low in range(0, len(transfers), AT_ONCE):
            part = transfers[low : low + AT_ONCE]
            wire = plan.connection_of[part]
            first, n = plan.routes.first[wire], np.diff(plan.routes.first)[wire]
            which = np.repeat(np.arange(len(part)), n)
            entry = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + first[which]
            yield part[which], plan.routes.link[entry], self.n_bytes[part[which]] * plan.routes.share[entry]


def simulate_run(
    name: str, prepared: CollectivePlan, size: float, wish: Wish | None = None, known_time: float | None = None
) -> SimulatedRun:
    """Repeat a collective's simulation, with the times of all transfers.

    Parameters
    ----------
    name : str
        What to call it.
    prepared : CollectivePlan
        What runs where.
    size : float, bytes
        Size of the operation.
    wish : Wish, optional
        Engine and its options. Default: the flow engine.
    known_time : float, s, optional
        Time that an earlier run took: another one is refused. Links of the packet engine are looked at in that time.

    Raises
    ------
    InputError
        If there are too many transfers, the engine keeps no times of transfers, or the time is not the known one.
    """
    wish = wish or Wish()
    require_timeline(name, prepared, wish)
    sized = prepared.shown(size).hashed_by(wish.hash_seed)
    watch = None
    if known_time is not None and wish.engine == "packet" and not wish.start_jitter:
        watch = LinkWatch(known_time - sized.before, LOOKS)
    result = prepared.run(size, wish.but(trace=True, watch=watch))
    if known_time is not None:
        if abs(result.time - known_time) > TOLERANCE * max(known_time, result.time):
            raise InputError(
                f"repeated, it takes {result.time:.9g} s, not {known_time:.9g} s: another version, or a file that it "
                "names has changed"
            )
        result = dataclasses.replace(result, time=known_time)
    samples = None if watch is None else watch.samples(sized.network.n_links)
    return run_of(name, sized, result, wish, samples)


def require_timeline(name: str, prepared: CollectivePlan, wish: Wish) -> None:
    """Refuse, before anything is simulated, work that has no timeline.

    Raises
    ------
    InputError
        If there are too many transfers, or the engine is a closed form.
    """
    n = prepared.schedule.n_transfers
    if n > MAX_TRANSFERS:
        raise InputError(f"{name}: has {n} transfers; timelines are made of at most {MAX_TRANSFERS}")
    if wish.engine == "closed-form":
        raise InputError(f"{name}: a closed form has no single transfers; use engine flow")


def run_of(name: str, sized: Plan, result: Result, wish: Wish, samples: LinkSamples | None = None) -> SimulatedRun:
    """Return the run of a result that has the times of all transfers, on the clock of the result.

    Parameters
    ----------
    name : str
        What to call it.
    sized : Plan
        Plan of the result's size.
    result : Result
        Result with its trace.
    wish : Wish
        Engine and its options.
    samples : LinkSamples, optional
        Samples of the links in the packet engine.

    Raises
    ------
    InputError
        If the result has no trace.
    """
    if result.trace is None:
        raise InputError(f"{name}: the engine {result.engine} keeps no times of single transfers")
    framing = wish.framing or sized.framing or Framing()
    n_bytes = framing.on_wire(payload(sized.plan, result.size if sized.sent is None else sized.sent))
    is_packets = result.engine == "packet"
    critical = None if wish.start_jitter else critical_path(sized.plan, result.trace, n_bytes, in_packets=is_packets)
    on_path = wish.model.transport is None or wish.model.transport.on_path
    if critical is not None and on_path and result.counters.get("marks"):
        critical = part_of_marks(critical, sized.plan, result.trace, n_bytes)
    trace, note = _on_clock(result, result.trace, sized, wish)
    return SimulatedRun(name, sized, dataclasses.replace(result, trace=trace), n_bytes, critical, samples, note=note)


def _on_clock(result: Result, trace: Trace, sized: Plan, wish: Wish) -> tuple[Trace, str]:
    """Return a trace whose first rank starts at 0 and whose end is the result's time, and what that assumes.

    A launch and other time outside of messages comes first. What software takes beyond the messages, which no message
    shows, is spread over them.
    """
    starts = starts_of(sized.schedule, result, wish)
    last = float(trace.done.max(initial=0.0))
    begin, end, outside = float(starts.min()), max(last, float(starts.max())), max(sized.before, 0.0)
    if end <= begin or (begin, end) == (0.0, result.time):
        return trace, ""
    factor = (result.time - outside) / (end - begin)
    if abs(factor - 1) < TOLERANCE:
        factor = 1.0
    start, sent, done = (
        np.minimum((each - begin) * factor + outside, result.time) for each in (trace.start, trace.sent, trace.done)
    )
    if last == end:
        done[trace.done == last] = result.time
    lines = [f"{microseconds(outside)} us outside of messages come before the first"] if outside else []
    if factor != 1.0:
        lines.append(f"times of messages are {factor:.4g} times those simulated, for what software adds to them")
    return Trace(start, sent, done), "; ".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class LinkBins:
    """Bytes of some links over time.

    Parameters
    ----------
    link : int64[n]
        The links, those with the most load first; or groups of links.
    edges : float64[n_bins + 1], s
        Edges of the bins.
    n_bytes : float64[n, n_bins], bytes
        What each carried in each bin.
    load : float64[n, n_bins]
        Bytes over what the link could have carried.
    """

    link: NDArray[np.int64]
    edges: Reals
    n_bytes: Reals
    load: Reals


def link_bins(run: SimulatedRun, n_bins: int, most: int, window: tuple[float, float] | None = None) -> LinkBins:
    """Spread the bytes of every transfer evenly over the time in which it was sent.

    Inside that time an engine may change the rate; what a link carried in all is exactly the engine's. What carried no
    message, but acknowledgements of the packet engine, is taken to be equally busy all the time.

    Parameters
    ----------
    run : SimulatedRun
        Run with the links.
    n_bins : int
        Parts of the time.
    most : int
        Links at most: those that carried most in relation to their capacity.
    window : (float, float), s
        Part of the run; by default all of it.
    """
    carried = run.result.link_bytes
    order = np.argsort(-carried / run.prepared.network.bandwidth, kind="stable")
    link = order[carried[order] > 0][:most]
    row = np.full(len(carried), -1, np.int64)
    row[link] = np.arange(len(link))
    return dataclasses.replace(group_bins(run, n_bins, row, window), link=link)


def group_bins(
    run: SimulatedRun, n_bins: int, group: NDArray[np.int64], window: tuple[float, float] | None = None
) -> LinkBins:
    """Add up what the links of each group carried over time, as :func:`link_bins` does for single ones.

    Parameters
    ----------
    run, n_bins, window
        Same as in :func:`link_bins`.
    group : int64[n_links]
        Group of each link, from 0; -1 for links that are in none.

    Returns
    -------
    LinkBins
        Its `link` is the group, its load the mean of the group's links, weighted by their capacity.
    """
    from .interval_kernel import add_to_bins

    network, trace = run.prepared.network, run.trace
    inside = group >= 0
    n = int(group.max(initial=-1)) + 1
    carried, capacity = (
        np.bincount(group[inside], values[inside], n) for values in (run.result.link_bytes, network.bandwidth)
    )
    begin, until = window or (0.0, float(trace.done.max(initial=0.0)))
    edges = np.linspace(begin, max(until, np.nextafter(begin, np.inf)), n_bins + 1)
    width = float(edges[1] - edges[0])
    bins, total = np.zeros((n, n_bins)), np.zeros(n)
    for transfer, at, n_bytes in run.on_links(np.arange(len(run.n_bytes))):
        row = group[at]
        add_to_bins(row, trace.start[transfer] - begin, trace.sent[transfer] - begin, n_bytes, width, bins)
        total += np.bincount(row[row >= 0], n_bytes[row >= 0], n)
    sent = total > 0
    bins *= (carried / np.where(sent, total, 1.0))[:, np.newaxis]  # the packet engine adds its headers
    whole = float(trace.done.max(initial=0.0))
    if whole and not sent.all():  # these carried nothing but acknowledgements
        part = np.clip(edges[1:], 0, whole) - np.clip(edges[:-1], 0, whole)
        bins[~sent] = carried[~sent][:, np.newaxis] * part / whole
    return LinkBins(np.arange(n), edges, bins, bins / (capacity[:, np.newaxis] * width))
