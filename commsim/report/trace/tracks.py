"""What happens on ranks and links as slices of time on lanes, none of which overlaps another on its lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.report.played_run import PlayedRun

PICOSECOND = 1e-12
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Slices in the order of tracks, lanes and time.

    Parameters
    ----------
    track : int64[n]
        Participant or link.
    lane : int32[n]
        Counted from 0 within a track.
    start, end : int64[n], ps
        Whole picoseconds, so that the end of one and the start of the next are comparable exactly.
    transfer : int64[n]
        Which transfer.
    """

    track: Numbers
    lane: NDArray[np.int32]
    start: Numbers
    end: Numbers
    transfer: Numbers

    def __len__(self) -> int:
        return len(self.track)

    def lanes(self) -> tuple[Numbers, Numbers]:
        """Track and lane of every lane that has a slice, and of every slice which of them it is on."""
        number = self.track * (int(self.lane.max(initial=0)) + 1) + self.lane
        _, first, of_slice = np.unique(number, return_index=True, return_inverse=True)
        return np.stack((self.track[first], self.lane[first]), axis=1), of_slice.reshape(-1)


def sends(run: PlayedRun, transfers: Numbers) -> Slices:
    """Every transfer on its sender, from its start until its last byte has left."""
    who = run.prepared.plan.ends[run.prepared.plan.wire_of[transfers], 0].astype(np.int64)
    return _in_lanes(who, run.trace.start[transfers], run.trace.sent[transfers], transfers)


def receives(run: PlayedRun, transfers: Numbers) -> Slices:
    """Every transfer on its receiver, from the arrival of its first byte until it is complete, added if need be."""
    wire = run.prepared.plan.wire_of[transfers]
    who = run.prepared.plan.ends[wire, 1].astype(np.int64)
    done = run.trace.done[transfers]
    begin = np.minimum(run.trace.start[transfers] + run.prepared.plan.routes.latency[wire], done)
    return _in_lanes(who, begin, done, transfers)


def on_links(run: PlayedRun, transfers: Numbers, links: Numbers | None = None) -> Slices:
    """Every transfer on every link of its path, or on some of them, while its bytes leave the sender."""
    wanted = np.ones(run.prepared.network.n_links, bool)
    if links is not None:
        wanted[:] = False
        wanted[links] = True
    parts = [(transfer[wanted[link]], link[wanted[link]]) for transfer, link, _ in run.on_links(transfers)]
    transfer = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.int64)
    link = np.concatenate([part[1] for part in parts]).astype(np.int64) if parts else np.empty(0, np.int64)
    return _in_lanes(link, run.trace.start[transfer], run.trace.sent[transfer], transfer)


def chosen(run: PlayedRun, window: tuple[float, float] | None = None, limit: int | None = None) -> Numbers:
    """Transfers that touch a window of time; of more than `limit`, those on the critical path and evenly drawn others.

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
    found = np.flatnonzero(mask)
    if limit is None or len(found) <= limit:
        return found
    if limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}")
    critical = run.is_critical[found]
    first, others = found[critical][:limit], found[~critical]
    n = limit - len(first)
    spread = others[np.linspace(0, len(others) - 1, n).astype(np.int64)] if n and len(others) else others[:0]
    return np.unique(np.concatenate((first, spread)))


def _in_lanes(track: Numbers, start: NDArray[np.float64], end: NDArray[np.float64], transfer: Numbers) -> Slices:
    from commsim.report.interval_kernel import fill_lanes

    begins, ends = (np.rint(t / PICOSECOND).astype(np.int64) for t in (start, end))
    order = np.lexsort((transfer, ends, begins, track))
    track, begins, ends, transfer = track[order], begins[order], ends[order], transfer[order]
    lane = np.zeros(len(track), np.int32)
    fill_lanes(track, begins, ends, lane, np.zeros(int(np.bincount(track).max()) if len(track) else 0, np.int64))
    order = np.lexsort((ends, begins, lane, track))
    return Slices(track[order], lane[order], begins[order], ends[order], transfer[order])
