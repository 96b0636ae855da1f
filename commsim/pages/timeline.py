"""What a timeline shows of a run: tracks of ranks and links, lanes on which slices do not overlap, counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE
from commsim.pages.lanes import PICOSECOND, Ints, Numbers, Slices, in_lanes
from commsim.pages.simulated_run import LinkBins, SimulatedRun, link_bins, simulate_run

N_BINS, MAX_COUNTERS = 200, 512
AT_ONCE = 16_384
TRACKS = ("ranks", "links")


def sends(run: SimulatedRun, transfers: Numbers) -> Slices:
    """Every transfer on its sender, from its start until its last byte has left."""
    sender = run.prepared.plan.ends[run.prepared.plan.connection_of[transfers], 0].astype(np.int64)
    return in_lanes(sender, run.trace.start[transfers], run.trace.sent[transfers], transfers)


def receives(run: SimulatedRun, transfers: Numbers) -> Slices:
    """Every transfer on its receiver, from the arrival of its first byte to its completion, with its reduction."""
    wire = run.prepared.plan.connection_of[transfers]
    receiver = run.prepared.plan.ends[wire, 1].astype(np.int64)
    done = run.trace.done[transfers]
    begin = np.minimum(run.trace.start[transfers] + run.prepared.plan.routes.latency[wire], done)
    return in_lanes(receiver, begin, done, transfers)


def on_links(run: SimulatedRun, transfers: Numbers, links: Numbers | None = None) -> Slices:
    """Every transfer on every link of its path, while its bytes leave the sender.

    Parameters
    ----------
    run : SimulatedRun
        Run to show.
    transfers : int64[n]
        Numbers of the transfers.
    links : int64[m], optional
        Only these links.
    """
    wanted = np.zeros(run.prepared.network.n_links, bool)
    wanted[slice(None) if links is None else links] = True
    parts = ((t[wanted[link]].astype(np.int32), link[wanted[link]]) for t, link, _ in run.on_links(transfers))
    columns = zip((np.empty(0, np.int32), np.empty(0, np.int32)), *parts, strict=True)
    transfer, link = map(np.concatenate, columns)
    track = link.astype(np.int64)
    del columns, link
    return in_lanes(track, run.trace.start[transfer], run.trace.sent[transfer], transfer)


def compile_intervals(_folder: str) -> None:
    """Put a small run on lanes and in bins, without a page: the library that draws it takes longer than all kernels."""
    from commsim.prediction.build import prepare

    run = simulate_run("ring", prepare("ring_all_reduce", "star:n_hosts=4"), 2.0**20)
    sends(run, choose_transfers(run))
    link_bins(run, N_BINS, MAX_COUNTERS)


def choose_transfers(run: SimulatedRun, window: tuple[float, float] | None = None, limit: int | None = None) -> Numbers:
    """Choose the transfers of a timeline.

    Parameters
    ----------
    run : SimulatedRun
        Run to show.
    window : (float, float), s
        Only transfers that touch it.
    limit : int
        Largest number of transfers; of more, those on the critical path and evenly drawn others.

    Raises
    ------
    InputError
        If the window ends before it begins, or the limit is below 1.
    """
    mask = np.ones(len(run.n_bytes), bool)
    if window is not None:
        if not window[0] < window[1]:
            raise InputError(f"--to must be later than --from, got {window[0]:g} s and {window[1]:g} s")
        mask = (run.trace.start <= window[1]) & (run.trace.done >= window[0])
    inside = np.flatnonzero(mask)
    if limit is None or len(inside) <= limit:
        return inside
    if limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}")
    critical = run.is_critical[inside]
    first, others = inside[critical][:limit], inside[~critical]
    n = limit - len(first)
    spread = others[np.linspace(0, len(others) - 1, n).astype(np.int64)] if n and len(others) else others[:0]
    return np.unique(np.concatenate((first, spread)))


class Slice(NamedTuple):
    """One slice: process, lane, picoseconds, what it is."""

    pid: int
    lane: int
    start: int
    end: int
    name: str
    n_bytes: float
    hop: int
    transfer: int
    critical: bool


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Slices of one kind (send, receive or link), their lanes by number: name and process."""

    kind: str
    start: Numbers
    end: Numbers
    transfer: Ints
    lane: Ints
    lanes: Mapping[int, tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """Load of one link over time, in percent of its capacity, or the bytes that queue before it.

    Parameters
    ----------
    name, unit : str
        What it shows of which link; ``percent`` or ``bytes``.
    pid : int
        Process of the link.
    times : float64[n], s
        Times from which the values hold.
    values : float64[n]
        Values.
    """

    name: str
    unit: str
    pid: int
    times: NDArray[np.float64]
    values: NDArray[np.float64]

    def changes(self) -> Iterator[tuple[int, float]]:
        """When (ps) the value changes, and to what."""
        before = -1.0
        for time, value in zip(self.times.tolist(), self.values.tolist(), strict=True):
            if value != before:
                yield round(time / PICOSECOND), value
            before = value


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run, or a window of it.

    Parameters
    ----------
    run : SimulatedRun
        Run that is shown.
    transfers : int64[n]
        Those shown.
    tracks : tuple of Track
        Tracks of the slices.
    processes : mapping of int to str
        Names of ranks, and of nodes that have links.
    bins : LinkBins or None
        Bins for the counters.
    arrows : str
        ``all``, ``critical`` or ``none``.
    provenance : mapping of str to str
        Provenance of the run.
    """

    run: SimulatedRun
    transfers: NDArray[np.int64]
    tracks: tuple[Track, ...]
    processes: Mapping[int, str]
    bins: LinkBins | None
    arrows: str
    provenance: Mapping[str, str]

    def has_arrow(self, span: Slice) -> bool:
        """Whether an arrow goes from the sender's slice to the receiver's."""
        return self.arrows == "all" or (self.arrows == "critical" and span.critical)

    def slices(self, track: Track) -> Iterator[Slice]:
        """Go through the slices of a track, some thousands at a time."""
        transfers = self.run.prepared.schedule.expand()
        critical = self.run.is_critical
        for low in range(0, len(track.lane), AT_ONCE):
            part = slice(low, low + AT_ONCE)
            which = track.transfer[part]
            rows = transfers[which]
            lanes = track.lane[part].tolist()
            start, end = track.start[part].tolist(), track.end[part].tolist()
            columns = (rows[name].tolist() for name in ("src", "dst", "src_chunk", "count", "op", "hop"))
            more = zip(self.run.n_bytes[which].tolist(), which.tolist(), critical[which].tolist(), strict=True)
            for lane, a, b, words, (n_bytes, transfer, on_path) in zip(
                lanes, start, end, zip(*columns, strict=True), more, strict=True
            ):
                yield Slice(track.lanes[lane][1], lane, a, b, _name(*words[:5]), n_bytes, words[5], transfer, on_path)

    def counters(self) -> Iterator[Counter]:
        """Load of every link that has a counter, 0 at the end; then, of packets, its queue where there was one."""
        if self.bins is None:
            return
        network, first = self.run.prepared.network, 1 + self.run.prepared.schedule.n_participants
        pids = {link: first + int(network.src[link]) for link in self.bins.link.tolist()}
        for load, (link, pid) in zip(self.bins.load, pids.items(), strict=True):
            percent = np.append(100 * load, 0.0)
            yield Counter(f"load {network.link_name(link)}", "percent", pid, self.bins.edges, percent)
        if self.run.samples is None:
            return
        times, queued = self.run.samples.times + max(self.run.prepared.before, 0.0), self.run.samples.queued
        within = (times >= self.bins.edges[0]) & (times <= self.bins.edges[-1])
        for link, pid in pids.items():
            if queued[within, link].any():
                name = f"queue {network.link_name(link)}"
                yield Counter(name, "bytes", pid, times[within], queued[within, link].astype(np.float64))


def make_timeline(
    run: SimulatedRun,
    *,
    window: tuple[float, float] | None = None,
    limit: int | None = None,
    show: tuple[str, ...] = TRACKS,
    arrows: str = "all",
    provenance: Mapping[str, str] | None = None,
) -> Timeline:
    """Choose what a timeline shows.

    Parameters
    ----------
    run : SimulatedRun
        Run to show.
    window : (float, float), s
        Only transfers that touch it.
    limit : int
        Transfers at most; those on the critical path come first.
    show : tuple of str
        Some of ``TRACKS``.
    arrows : str
        Messages that get arrows: ``all``, ``critical`` or ``none``.
    provenance : mapping of str to str
        Written into the file.
    """
    transfers = choose_transfers(run, window, limit)
    schedule, network = run.prepared.schedule, run.prepared.network
    tracks: list[Track] = []
    if "ranks" in show:
        for kind, slices in (("send", sends(run, transfers)), ("receive", receives(run, transfers))):
            tracks.append(_track(kind, slices, _n_lanes(tracks)))
    bins = None
    if "links" in show:
        after = 1 + schedule.n_participants
        tracks.append(
            _track("link", on_links(run, transfers), _n_lanes(tracks),
                   lambda link: (network.link_name(link), after + int(network.src[link])))
        )  # fmt: skip
        bins = link_bins(run, N_BINS, MAX_COUNTERS, window)
    return Timeline(run, transfers, tuple(tracks), _processes(run, tracks, bins), bins, arrows, provenance or {})


def _track(kind: str, slices: Slices, first: int, describe: Callable[[int], tuple[str, int]] | None = None) -> Track:
    lanes, of_slice = slices.lanes()
    columns = {}
    for i, (track, lane) in enumerate(lanes.tolist()):
        name, pid = (f"{kind}s", 1 + track) if describe is None else describe(track)
        columns[first + i] = (name if lane == 0 else f"{name} ({lane + 1})", pid)
    return Track(kind, slices.start, slices.end, slices.transfer, of_slice + np.int32(first), columns)


def _n_lanes(tracks: list[Track]) -> int:
    return 1 + sum(len(track.lanes) for track in tracks)


def _processes(run: SimulatedRun, tracks: list[Track], bins: LinkBins | None) -> dict[int, str]:
    """Name every process that has a lane or a counter."""
    schedule, network = run.prepared.schedule, run.prepared.network
    used = {pid for track in tracks for _, pid in track.lanes.values()}
    after = 1 + schedule.n_participants
    if bins is not None:
        used |= {after + int(node) for node in network.src[bins.link]}
    ranks = run.participants()
    return {pid: ranks[pid - 1] if pid < after else f"links of {network.nodes[pid - after]}" for pid in sorted(used)}


def _name(src: int, dst: int, chunk: int, count: int, op: int) -> str:
    what = f"chunk {chunk}" if count == 1 else f"chunks {chunk}-{chunk + count - 1}"
    return f"{what} {src}->{dst}" + (" +" if op == REDUCE else "")
