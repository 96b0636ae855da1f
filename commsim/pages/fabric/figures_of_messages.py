"""Completion times of single messages (FCT) and their slowdowns, as a table and as distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from commsim.core.units import format_time
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import Column, FigureTable, number_column

Reals = NDArray[np.float64]
SHARES = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
MAX_POINTS = 5_000


def times_table(received: Reals, finished: Reals, slowdown: Reals) -> FigureTable:
    """Make a table of completion times: the mean, and what given shares of the messages do not exceed.

    Parameters
    ----------
    received, finished : float64[n], s
        Time until a message's last byte is at the receiver, and its last acknowledgement at the sender.
    slowdown : float64[n]
        Time over the least time that the message could take by itself.
    """
    columns = {"received_s": received, "finished_s": finished, "slowdown": slowdown}
    words = ("mean", "least", *(f"{100 * share:g} %" for share in SHARES[1:-1]), "most")

    def numbers(values: Reals) -> Reals:
        return np.asarray(np.r_[values.mean(), np.quantile(values, SHARES, method="inverted_cdf")])

    return FigureTable.of((
        Column("messages", np.arange(len(words)), "", words),
        *(number_column(name, numbers(values)) for name, values in columns.items()),
    ))  # fmt: skip


def times_figure(received: Reals, finished: Reals) -> Figure:
    """Which share of the messages is complete within a time.

    Parameters
    ----------
    received, finished
        Same as in :func:`times_table`.
    """
    names = ("last byte at the receiver", "last acknowledgement at the sender")
    columns = [_thinned(values) for values in (received, finished)]
    table = FigureTable.of((
        Column("until", np.repeat(np.arange(2), [len(values) for values in columns]), "", names),
        number_column("completion_time_s", np.concatenate(columns)),
    ))  # fmt: skip
    caption = (
        "Which share of the messages is complete within a time after its start; "
        f"{quantiles_text(received, format_time)}."
    )
    words = {"x": "from start to completion", "y": "share of messages"}
    return Figure("times", "cdf", "Message completion times (FCT)", caption, table,
                  {"x": "completion_time_s", "by": "until"}, words)  # fmt: skip


def slowdown_figure(slowdown: Reals, of_run: str = "") -> Figure:
    """Which share of the messages has at most a slowdown.

    Parameters
    ----------
    slowdown
        Same as in :func:`times_table`.
    of_run : str
        Name of the run, where a page has several.
    """
    table = FigureTable.of((number_column("slowdown", _thinned(slowdown)),))
    caption = (
        "Time until the receiver has a message over the least that it could take with the network to itself; "
        f"{quantiles_text(slowdown, '{:.3g}'.format)}."
    )
    words = {"x": "slowdown", "y": "share of messages"}
    return Figure("slowdown", "cdf", "Slowdown of messages", caption, table, {"x": "slowdown"}, words, of_run=of_run)


def quantiles_text(values: Reals, write: Callable[[float], str]) -> str:
    """Describe how many messages there are, and what half of them, 99 % and all do not exceed.

    Parameters
    ----------
    values : float64[n]
        Value of each message.
    write : callable
        Function from a value to text.
    """
    half, most, all_of_them = (write(float(v)) for v in np.quantile(values, (0.5, 0.99, 1.0), method="inverted_cdf"))
    return f"{len(values)} messages: median {half}, 99 % {most}, most {all_of_them}"


def _thinned(values: Reals) -> Reals:
    """Evenly spaced ones of many values in ascending order, with the first and the last."""
    keep = np.unique(np.linspace(0, len(values) - 1, min(MAX_POINTS, len(values))).astype(np.int64))
    return np.asarray(np.sort(values)[keep])
