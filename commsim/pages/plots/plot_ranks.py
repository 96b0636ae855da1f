"""What each rank sends over time, drawn on axes of matplotlib for notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from commsim.pages.pictures.paint import require_matplotlib

# Ranks of which all are shown; of more, the fastest, the median and the slowest.
MAX_RANKS = 64
# Inches of a figure: its width, a rank, and what is around the ranks. Points of a rank's name.
WIDTH, LANE, AROUND, LETTERS = 6.4, 0.15, 1.1, 8.0


def plotter_of_ranks() -> Callable[..., Any]:
    """Return :func:`plot_ranks`.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    require_matplotlib("plots need", "")
    return plot_ranks


def plot_ranks(name: str, transfers: Any, start: Any, sent: Any, n_ranks: int, ax: Any = None) -> Any:
    """Draw a bar for each message while it leaves its sender.

    Parameters
    ----------
    name : str
        Title.
    transfers : TRANSFER[n]
        Messages in program order.
    start, sent : float64[n], s
        Time at which each began, and had left its sender.
    n_ranks : int
        Number of ranks.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ranks, title = _ranks_and_title(transfers["src"], sent, n_ranks)
    every = 1 if ax is None else max(1, math.ceil(LANE * len(ranks) * ax.figure.dpi / ax.get_window_extent().height))
    if ax is None:
        from matplotlib import pyplot

        size = (WIDTH, AROUND + max(2.0, LANE * len(ranks)))  # as high as the names of all ranks need
        ax = pyplot.subplots(layout="constrained", figsize=size)[1]
    for row, rank in enumerate(ranks):
        own = transfers["src"] == rank
        bars = list(zip(start[own] * 1e6, (sent - start)[own] * 1e6, strict=True))
        ax.broken_barh(bars, (row - 0.4, 0.8), edgecolor="white", linewidth=0.3)
    ax.set(xlabel="time (µs)", ylabel="sender", title=f"{name}{title}")
    named = range(0, len(ranks), every)
    ax.set_yticks(named, [f"rank {ranks[row]}" for row in named], fontsize=LETTERS)
    ax.margins(y=0.01)
    ax.invert_yaxis()
    return ax


def _ranks_and_title(senders: Any, sent: Any, n_ranks: int) -> tuple[Sequence[int], str]:
    """Return the ranks that a picture shows, and what its title says of them."""
    if n_ranks <= MAX_RANKS:
        return range(n_ranks), ""
    last = np.zeros(max(n_ranks, int(senders.max(initial=0)) + 1))
    np.maximum.at(last, senders, sent)
    order = np.argsort(last[:n_ranks], kind="stable").tolist()
    return [order[0], order[len(order) // 2], order[-1]], f": fastest, median and slowest of {n_ranks} ranks"
