"""What a timeline shows of a run, whatever it is written as: tracks with lanes, slices with names, counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import REDUCE
from commsim.report.link_bins import LinkBins, link_bins
from commsim.report.played_run import PlayedRun

from .shown import Counter, Slice, Track
from .tracks import Slices, chosen, on_links, receives, sends

N_BINS, MOST_COUNTERS = 200, 512
AT_ONCE = 16_384
TRACKS = ("ranks", "links")
ARROWS = ("all", "critical", "none")


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run, or a window of it.

    Parameters
    ----------
    run : PlayedRun
        Which.
    transfers : int64[n]
        Those shown.
    tracks : tuple of Track
        Where.
    processes : mapping of int to str
        Names of ranks, and of nodes that have links.
    bins : LinkBins or None
        For the counters.
    arrows : str
        One of ``ARROWS``.
    provenance : mapping of str to str
        Where it comes from.
    """

    run: PlayedRun
    transfers: NDArray[np.int64]
    tracks: tuple[Track, ...]
    processes: Mapping[int, str]
    bins: LinkBins | None
    arrows: str
    provenance: Mapping[str, str]

    def has_arrow(self, one: Slice) -> bool:
        """Whether an arrow goes from the sender's slice to the receiver's."""
        return self.arrows == "all" or (self.arrows == "critical" and one.critical)

    def slices(self, track: Track) -> Iterator[Slice]:
        """Go through the slices of a track, some thousands at a time."""
        transfers = self.run.prepared.schedule.expand()
        critical = self.run.is_critical
        for low in range(0, len(track.slices), AT_ONCE):
            part = slice(low, low + AT_ONCE)
            which = track.slices.transfer[part]
            rows = transfers[which]
            lanes = track.lane[part].tolist()
            start, end = track.slices.start[part].tolist(), track.slices.end[part].tolist()
            columns = (rows[name].tolist() for name in ("src", "dst", "src_chunk", "count", "op", "hop"))
            more = zip(self.run.n_bytes[which].tolist(), which.tolist(), critical[which].tolist(), strict=True)
            for lane, a, b, words, (n_bytes, transfer, on_path) in zip(
                lanes, start, end, zip(*columns, strict=True), more, strict=True
            ):
                yield Slice(track.lanes[lane][1], lane, a, b, _name(*words[:5]), n_bytes, words[5], transfer, on_path)

    def counters(self) -> Iterator[Counter]:
        """Load of every link that has a counter."""
        if self.bins is None:
            return
        network, first = self.run.prepared.network, 1 + self.run.prepared.schedule.n_participants
        for i, link in enumerate(self.bins.link.tolist()):
            pid = first + int(network.src[link])
            yield Counter(network.link_name(link), pid, self.bins.edges, self.bins.load[i])


def make_timeline(
    run: PlayedRun,
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
    run : PlayedRun
        Of which run.
    window : (float, float), s
        Only transfers that touch it.
    limit : int
        Transfers at most; those on the critical path come first.
    show : tuple of str
        Some of ``TRACKS``.
    arrows : str
        For which messages: one of ``ARROWS``.
    provenance : mapping of str to str
        Written into the file.
    """
    transfers = chosen(run, window, limit)
    schedule, network = run.prepared.schedule, run.prepared.network
    tracks: list[Track] = []
    if "ranks" in show:
        for kind, slices in (("send", sends(run, transfers)), ("receive", receives(run, transfers))):
            tracks.append(_track(kind, slices, _n_lanes(tracks), _of_rank(kind)))
    bins = None
    if "links" in show:
        after = 1 + schedule.n_participants
        tracks.append(
            _track("link", on_links(run, transfers), _n_lanes(tracks),
                   lambda link: (network.link_name(link), after + int(network.src[link])))
        )  # fmt: skip
        bins = link_bins(run, N_BINS, MOST_COUNTERS, window)
    return Timeline(run, transfers, tuple(tracks), _processes(run, tracks, bins), bins, arrows, provenance or {})


def _track(kind: str, slices: Slices, first: int, describe: Callable[[int], tuple[str, int]]) -> Track:
    lanes, of_slice = slices.lanes()
    named = {}
    for i, (track, lane) in enumerate(lanes.tolist()):
        name, pid = describe(track)
        named[first + i] = (name if lane == 0 else f"{name} ({lane + 1})", pid)
    return Track(kind, slices, of_slice + first, named)


def _of_rank(kind: str) -> Callable[[int], tuple[str, int]]:
    return lambda who: (f"{kind}s", 1 + who)


def _n_lanes(tracks: list[Track]) -> int:
    return 1 + sum(len(track.lanes) for track in tracks)


def _processes(run: PlayedRun, tracks: list[Track], bins: LinkBins | None) -> dict[int, str]:
    """Name every process that has a lane or a counter."""
    schedule, network = run.prepared.schedule, run.prepared.network
    used = {pid for track in tracks for _, pid in track.lanes.values()}
    after = 1 + schedule.n_participants
    if bins is not None:
        used |= {after + int(node) for node in network.src[bins.link]}
    who = run.participants()
    return {pid: who[pid - 1] if pid < after else f"links of {network.nodes[pid - after]}" for pid in sorted(used)}


def _name(src: int, dst: int, chunk: int, count: int, op: int) -> str:
    what = f"chunk {chunk}" if count == 1 else f"chunks {chunk}-{chunk + count - 1}"
    return f"{what} {src}->{dst}" + (" +" if op == REDUCE else "")
