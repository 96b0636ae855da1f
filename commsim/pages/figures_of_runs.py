"""One run: its network coloured by load, links over time, timelines of ranks and links, times of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.schedule import REDUCE
from commsim.core.units import format_time
from commsim.pages.fabric.figures_of_messages import quantiles_text
from commsim.pages.fabric.figures_of_tiers import between_tiers, require_bytes
from commsim.pages.figure_tables import Column, FigureTable, number_column, word_column
from commsim.pages.lanes import PICOSECOND, Slices
from commsim.pages.pictures.boxes import link_loads
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.simulated_run import SimulatedRun, group_bins
from commsim.pages.timeline import on_links, sends

from .figure import Figure, NothingToDraw

N_BINS, MAX_LINKS = 120, 48
MAX_SLICES, MAX_LANES, MAX_POINTS = 12_000, 64, 5_000


def network(run: SimulatedRun) -> Figure:
    """Draw the network by tier, coloured by the load of the links over the whole run."""
    return loads(run.prepared.network, run.result, run.name, run.whole)


def loads(net: Network, result: Result, name: str, whole: Network | None = None) -> Figure:
    """Draw a network by tier, coloured by the load of its links; with the whole network, its faults are marked."""
    picture, _ = draw_network(net, result, whole=whole)  # what was drawn as one box is said in the picture
    links = np.arange(net.n_links)
    table = FigureTable.of((
        _names("link", links, [net.link_name(i) for i in range(net.n_links)]),
        number_column("capacity_Bps", net.bandwidth),
        number_column("carried_B", result.link_bytes),
        number_column("load", link_loads(net, result.link_bytes, result.time), ""),
    ))  # fmt: skip
    caption = "Load of each link, as a share of its capacity over the whole run."
    return Figure("network", "picture", "The network and its loads", caption, table,
                  {"x": "link", "y": "load"}, picture=picture, of_run=name)  # fmt: skip


def links(run: SimulatedRun) -> Figure:
    """Load of links over time: of all that carried anything, or of some in each tier, from busiest to idlest."""
    require_bytes(run)
    net, carried = run.prepared.network, run.result.link_bytes
    order = np.argsort(-carried / net.bandwidth, kind="stable")
    order = order[carried[order] > 0]
    shown, note = order, "all links that carried anything"
    if len(order) > MAX_LINKS:
        tier = between_tiers(net)[0][order]
        each = [order[tier == t] for t in np.unique(tier)]
        most = MAX_LINKS // len(each)
        shown = np.concatenate([one[_spread(len(one), most)] for one in each])
        note = f"{len(shown)} of {len(order)} links, at equal distances from the busiest to the idlest of each tier,"
    row = np.full(net.n_links, -1, np.int64)
    row[shown] = np.arange(len(shown))
    bins = group_bins(run, N_BINS, row)
    table = FigureTable.of((
        _names("link", np.repeat(np.arange(len(shown)), N_BINS), [net.link_name(i) for i in shown.tolist()]),
        number_column("time_s", np.tile(bins.edges[:-1], len(shown))),
        number_column("load", bins.load.ravel(), ""),
    ))  # fmt: skip
    caption = f"Load of {note} in {N_BINS} equal parts of the time; each message at its mean rate.{_rerouted(run)}"
    roles = {"x": "time_s", "y": "link", "value": "load"}
    return Figure("links", "heat", "Links over time", caption, table, roles,
                  {"x": "time", "value": "load"}, of_run=run.name)  # fmt: skip


def _rerouted(run: SimulatedRun) -> str:
    """Describe that messages are shown on the ways that they were planned to take, where flaps changed some."""
    n = int(run.result.counters.get("rerouted", 0))
    return f" Messages of the {n} connections that were rerouted are shown on their first way." if n else ""


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """Numbers of at most so many of n things, at equal distances, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, max(2, min(n, most))).astype(np.int64))


def timeline(run: SimulatedRun) -> Figure:
    """Show what each rank sends when, with the critical path."""
    sender = run.prepared.plan.ends[run.prepared.plan.connection_of, 0].astype(np.int64)
    load = _Load(run.prepared.schedule.n_participants)
    load.add(run, np.arange(len(sender)), sender)
    known = _known_ranks(run)
    shown = load.chosen(list(known), only=bool(run.shown_ranks))
    slices = sends(run, np.flatnonzero(np.isin(sender, shown)))
    names = run.participants()
    which = "asked for and those " if run.shown_ranks else ""
    more = "" if run.shown_ranks else " Then come those with most of the critical path."
    note = load.note(shown, "ranks", f"{which}that are done first, in the middle and last")
    if note:
        note += more
        for rank, words in known.items():
            names[rank] += f" ({words})" if words else ""
    return _spans(run, slices, names, "timeline", "Timeline of ranks", note)


def _known_ranks(run: SimulatedRun) -> dict[int, str]:
    """Return the ranks asked for, and those that are done first, in the middle and last, with what they are."""
    plan, n = run.prepared.plan, run.prepared.schedule.n_ranks
    done = np.zeros(run.prepared.schedule.n_participants)
    for end in (0, 1):
        np.maximum.at(done, plan.ends[plan.connection_of, end], run.trace.done)
    order = np.argsort(np.rint(done[:n] / PICOSECOND), kind="stable")
    known = dict.fromkeys(run.shown_ranks, "")
    for place, word in ((0, "done first"), ((n - 1) // 2, "median"), (n - 1, "done last")):
        rank = int(order[place])
        known[rank] = known.get(rank) or f"{word}, {format_time(float(done[rank]))}"
    return known


def link_timeline(run: SimulatedRun) -> Figure:
    """Show which message is on which link when, with the critical path."""
    net, everything = run.prepared.network, np.arange(len(run.n_bytes))
    load = _Load(net.n_links)
    for transfer, link, _ in run.on_links(everything):
        load.add(run, transfer, link.astype(np.int64))
    shown = load.chosen()
    slices = on_links(run, everything, shown)
    names = [net.link_name(i) for i in range(net.n_links)]
    return _spans(run, slices, names, "link-timeline", "Timeline of links",
                  load.note(shown, "links") + _rerouted(run))  # fmt: skip


def messages(run: SimulatedRun) -> Figure:
    """Which share of the messages took at most a time from start to completion."""
    crosses = np.diff(run.prepared.plan.routes.first)[run.prepared.plan.connection_of] > 0
    if not crosses.any():
        raise NothingToDraw("no message crosses a link")
    took = np.rint((run.trace.done - run.trace.start)[crosses] / PICOSECOND) * PICOSECOND  # no noise of the last bits
    keep = np.unique(np.linspace(0, len(took) - 1, MAX_POINTS).astype(np.int64))
    order = np.argsort(took, kind="stable")[keep]
    added = run.prepared.plan.op[crosses][order] == REDUCE
    table = FigureTable.of((
        word_column("message", ["added on arrival" if a else "copied" for a in added.tolist()]),
        number_column("message_time_s", took[order]),
    ))  # fmt: skip
    words = {"x": "from start to completion", "y": "share of messages"}
    caption = (
        f"Which share of the messages is complete within a time after its start; {quantiles_text(took, format_time)}."
    )
    return Figure("messages", "cdf", "Message completion times", caption, table,
                  {"x": "message_time_s", "by": "message"}, words, frozenset("x"), of_run=run.name)  # fmt: skip


class _Load:
    """Number of slices and busy time of each track; time on the critical path has the largest weight."""

    def __init__(self, n: int) -> None:
        self._slices, self._time = np.zeros(n, np.int64), np.zeros(n)

    def add(self, run: SimulatedRun, transfer: NDArray[np.int64], track: NDArray[np.int64]) -> None:
        took = run.trace.sent[transfer] - run.trace.start[transfer]
        took = took * np.where(run.is_critical[transfer], 100.0, 1.0)
        self._slices += np.bincount(track, minlength=len(self._slices))
        self._time += np.bincount(track, weights=took, minlength=len(self._time))

    def chosen(self, first: Sequence[int] = (), *, only: bool = False) -> NDArray[np.int64]:
        """Return as many tracks as can be shown whole; at least one.

        Parameters
        ----------
        first : sequence of int
            These before others; the ones with most of the time come first.
        only : bool
            No others.
        """
        order = np.argsort(-self._time, kind="stable")
        at_once = self._slices.sum() <= MAX_SLICES and np.count_nonzero(self._slices) <= MAX_LANES
        if only or not at_once:
            others = order[~np.isin(order, first)]
            order = np.concatenate((np.array(first, np.int64), others[:0] if only else others))
        order = order[self._slices[order] > 0][:MAX_LANES]
        fits = np.cumsum(self._slices[order]) <= MAX_SLICES
        return np.asarray(np.sort(order[: max(1, int(fits.sum()))]))

    def note(self, shown: NDArray[np.int64], what: str, which: str = "with most of the critical path") -> str:
        """Describe how many of the tracks are shown, and which; nothing where all are."""
        n = int(np.count_nonzero(self._slices))
        if len(shown) == n:
            return ""
        return f" Of {n} {what} that sent, {len(shown)} are shown: those {which}."


def _spans(run: SimulatedRun, slices: Slices, names: list[str], name: str, title: str, note: str) -> Figure:
    if not len(slices):
        raise NothingToDraw("nothing was sent")
    tracks, lane = np.unique(slices.track, return_inverse=True)
    which, on_path = slices.transfer, run.is_critical
    rows = run.prepared.schedule.expand()[which]
    table = FigureTable.of((
        _names("lane", lane, [names[i] for i in tracks.tolist()]),
        number_column("level", slices.lane, ""),
        number_column("start_s", slices.start * PICOSECOND),
        number_column("end_s", slices.end * PICOSECOND),
        word_column("effect", ["added on arrival" if op == REDUCE else "copied" for op in rows["op"].tolist()]),
        number_column("from_rank", rows["src"], ""),
        number_column("to_rank", rows["dst"], ""),
        number_column("first_chunk", rows["src_chunk"], ""),
        number_column("chunks", rows["count"], ""),
        number_column("message_B", run.n_bytes[which]),
        number_column("critical", on_path[which], ""),
    ))  # fmt: skip
    path = "" if run.critical is None else " What is on the critical path is outlined."
    caption = f"A bar is a message while its bytes leave the sender.{path}{note}"
    roles = {"y": "lane", "level": "level", "x": "start_s", "end": "end_s", "by": "effect", "mark": "critical"}
    return Figure(name, "spans", title, caption, table, roles, {"x": "time"}, of_run=run.name)


def _names(name: str, codes: NDArray[np.int64], labels: list[str]) -> Column:
    return Column(name, np.asarray(codes, np.int64), "", tuple(labels))


OF_RUNS: Mapping[str, Callable[[SimulatedRun], Figure]] = {
    "network": network, "links": links, "timeline": timeline, "link-timeline": link_timeline, "messages": messages,
}  # fmt: skip
