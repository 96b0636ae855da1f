"""What each link carried in each of many equal parts of a run's time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .played_run import PlayedRun

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkBins:
    """Bytes of some links over time.

    Parameters
    ----------
    link : int64[n]
        The links, those with the most load first.
    edges : float64[n_bins + 1], s
        Where bins begin and end.
    n_bytes : float64[n, n_bins], bytes
        What each carried in each bin.
    load : float64[n, n_bins]
        That over what it could have carried.
    """

    link: NDArray[np.int64]
    edges: Reals
    n_bytes: Reals
    load: Reals


def link_bins(run: PlayedRun, n_bins: int, most: int, window: tuple[float, float] | None = None) -> LinkBins:
    """Spread the bytes of every transfer evenly over the time in which it was sent.

    Inside that time an engine may change the rate; what a link carried in all is exactly the engine's. What carried no
    message, but acknowledgements of the packet engine, is taken to be equally busy all the time.

    Parameters
    ----------
    run : PlayedRun
        Whose links.
    n_bins : int
        Parts of the time.
    most : int
        Links at most: those that carried most in relation to their capacity.
    window : (float, float), s
        Part of the run; all of it unless given.
    """
    from .interval_kernel import add_to_bins

    network, trace = run.prepared.network, run.trace
    carried = run.result.link_bytes
    order = np.argsort(-carried / network.bandwidth, kind="stable")
    link = order[carried[order] > 0][:most]
    row = np.full(network.n_links, -1, np.int64)
    row[link] = np.arange(len(link))
    begin, until = window or (0.0, float(trace.done.max(initial=0.0)))
    edges = np.linspace(begin, max(until, np.nextafter(begin, np.inf)), n_bins + 1)
    width = float(edges[1] - edges[0])
    bins, total = np.zeros((len(link), n_bins)), np.zeros(network.n_links)
    for transfer, at, n_bytes in run.on_links(np.arange(len(run.n_bytes))):
        add_to_bins(row[at], trace.start[transfer] - begin, trace.sent[transfer] - begin, n_bytes, width, bins)
        total += np.bincount(at, weights=n_bytes, minlength=network.n_links)
    sent = total[link] > 0
    bins *= (carried[link] / np.where(sent, total[link], 1.0))[:, np.newaxis]  # the packet engine adds its headers
    whole = float(trace.done.max(initial=0.0))
    if whole and not sent.all():  # these carried nothing but acknowledgements
        part = np.clip(edges[1:], 0, whole) - np.clip(edges[:-1], 0, whole)
        bins[~sent] = carried[link][~sent][:, np.newaxis] * part / whole
    return LinkBins(link, edges, bins, bins / (network.bandwidth[link][:, np.newaxis] * width))
