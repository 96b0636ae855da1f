"""Slices of a timeline on lanes of their tracks, in whole picoseconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import give_back_memory

PICOSECOND = 1e-12
# Longest timeline, s: its picoseconds are counted in 63 bits.
MAX_TIME = 9e6
Numbers = NDArray[np.int64]
Ints = NDArray[np.int32]


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
    transfer : int32[n]
        Transfer of each slice.
    """

    track: Numbers
    lane: Ints
    start: Numbers
    end: Numbers
    transfer: Ints

    def __len__(self) -> int:
        return len(self.track)

    def lanes(self) -> tuple[Numbers, Ints]:
        """Track and lane of every lane that has a slice, and of every slice which of them it is on."""
        begins = np.ones(len(self), bool)
        begins[1:] = (self.track[1:] != self.track[:-1]) | (self.lane[1:] != self.lane[:-1])
        of_slice = np.cumsum(begins, dtype=np.int32) - np.int32(1)
        return np.stack((self.track[begins], self.lane[begins]), axis=1), of_slice


def in_lanes(track: Numbers, start: NDArray[np.float64], end: NDArray[np.float64], transfer: Numbers | Ints) -> Slices:
    """Put intervals on lanes of their tracks, so that none overlap.

    Parameters
    ----------
    track, transfer : int64[n]
        Track of each interval, and its number, below 2^31.
    start, end : float64[n], s
        When each begins and ends.
    """
    from commsim.pages.interval_kernel import fill_lanes

    if len(end) and not end.max() <= MAX_TIME:
        raise InputError(f"a timeline is at most {MAX_TIME:.0f} s long, got {end.max():.3g} s")
    # of millions of messages a column is tens of megabytes: each goes before the next comes
    begins = _in_picoseconds(start)
    del start
    ends = _in_picoseconds(end)
    del end
    numbers = transfer.astype(np.int32)
    del transfer
    give_back_memory()
    order = np.lexsort((numbers, ends, begins, track))
    track = track[order]
    begins = begins[order]
    ends = ends[order]
    numbers = numbers[order]
    del order
    give_back_memory()
    lane = np.zeros(len(track), np.int32)
    fill_lanes(track, begins, ends, lane, np.zeros(int(np.bincount(track).max()) if len(track) else 0, np.int64))
    if not lane.any():
        return Slices(track, lane, begins, ends, numbers)
    order = np.argsort(track * (int(lane.max()) + 1) + lane, kind="stable")
    track = track[order]
    lane = lane[order]
    begins = begins[order]
    ends = ends[order]
    return Slices(track, lane, begins, ends, numbers[order])


def _in_picoseconds(times: NDArray[np.float64]) -> Numbers:
    """Return times in whole picoseconds."""
    scaled = times / PICOSECOND
    return np.rint(scaled, out=scaled).astype(np.int64)
