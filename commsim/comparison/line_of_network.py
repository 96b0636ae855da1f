"""The line rate of a prediction: the link that is loaded the most, what it carries, and how many a host has of it."""

from __future__ import annotations

import numpy as np

from commsim.core.locality import units
from commsim.core.network import SWITCH
from commsim.core.result import Result
from commsim.run import Prepared

from .above_line_rate import Line


def line_of_prediction(ready: Prepared, result: Result) -> Line | None:
    """Find the busiest link of a prediction.

    Parameters
    ----------
    ready : Prepared
        What was predicted.
    result : Result
        The prediction of the flow engine, which counts the bytes of every link.

    Returns
    -------
    Line or None
        None where nothing crosses a link.
    """
    network = ready.network
    if not result.link_bytes.any() or not result.time:
        return None
    busiest = int((result.link_bytes / network.bandwidth).argmax())
    n_ranks = ready.schedule.n_ranks
    nodes = ready.placement.nodes[:n_ranks]
    n_hosts = len(np.unique(units(network)[nodes]))
    outside = network.machine[network.src[busiest]] != network.machine[network.dst[busiest]]
    leaving = network.machine[network.src] != network.machine[network.dst]
    first = network.machine[nodes[0]]
    per_host = int(np.count_nonzero(leaving & (network.machine[network.src] == first))) if first >= 0 else None
    return Line(
        rate=float(network.bandwidth[busiest]),
        source=f"link {network.link_name(busiest)}, the busiest of our prediction",
        load=float(result.link_bytes[busiest] / result.time),
        links_per_host=per_host if outside else None,
        ranks_per_host=n_ranks // n_hosts,
        n_hosts=n_hosts,
        switch_adds=bool((network.aggregates & (network.kind == SWITCH)).any()),
    )
