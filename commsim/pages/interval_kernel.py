"""Kernels over intervals of time: lanes in which they do not overlap, and their sums in equal parts of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@kernel
def fill_lanes(track: Ints, start: Ints, end: Ints, lane: NDArray[np.int32], until: Ints) -> None:
    """Give each interval the lowest lane of its track that is free when it starts.

    Parameters
    ----------
    track : int64[n]
        Tracks in ascending order.
    start, end : int64[n]
        Intervals in ascending order of `start` within a track.
    lane : int32[n]
        Written.
    until : int64[m]
        Scratch, as long as the longest track: when each lane is free again.
    """
    n_lanes = 0
    for i in range(len(track)):
        if i == 0 or track[i] != track[i - 1]:
            n_lanes = 0
        at = 0
        while at < n_lanes and until[at] > start[i]:
            at += 1
        n_lanes = max(n_lanes, at + 1)
        until[at] = end[i]
        lane[i] = at


@kernel
def add_to_bins(row: Ints, start: Reals, end: Reals, amount: Reals, width: float, bins: Reals) -> None:
    """Spread amounts evenly over their intervals, and add them up in bins of equal width.

    Parameters
    ----------
    row : int64[n]
        Row of each amount, below 0 for none.
    start, end : float64[n]
        Intervals between 0 and the last bin's end; what is beyond is left out. An interval of no length is in one bin.
    amount : float64[n]
        Amounts to add.
    width : float
        Width of a bin.
    bins : float64[n_rows, n_bins]
        Added to.
    """
    n_bins = bins.shape[1]
    for i in range(len(row)):
        if row[i] < 0:
            continue
        low, high = start[i] / width, end[i] / width
        if high <= low:
            if 0 <= low <= n_bins:
                bins[row[i], min(int(low), n_bins - 1)] += amount[i]
            continue
        for b in range(max(0, int(low)), min(n_bins, int(high) + 1)):
            inside = min(high, b + 1.0) - max(low, float(b))
            if inside > 0:
                bins[row[i], b] += amount[i] * (inside / (high - low))  # at most the amount, however short
