"""Works as files that peers read: columns of 32-bit integers and of doubles, after the lengths of the columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import HOST
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes

from .works import Messages, Work


def write_work(work: Work, path: Path) -> None:
    """Write the network, a route for every pair that talks, and the messages; ``work_file.hpp`` reads it.

    Raises
    ------
    InputError
        If the network's hosts do not come first, or the messages are not those of the schedule.
    """
    network, messages = load_network(work.network), work.messages()
    n_hosts = len(network.hosts)
    if (network.kind[:n_hosts] != HOST).any():
        raise InputError(f"{work.what}: peers take networks whose hosts come first, got {work.network}")
    require_same(work, messages)
    pair, route = np.unique(messages.src * n_hosts + messages.dst, return_inverse=True)
    src, dst = np.divmod(pair, n_hosts)
    routes = find_routes(network, src, dst, routing=work.routing)
    if (routes.share != 1).any():
        raise InputError(f"{work.what}: peers take one path for a message, got routing {work.routing}")
    n_rounds = int(messages.round.max()) + 1
    lengths = [n_hosts, network.n_nodes, n_rounds, messages.fetched, network.n_links, len(src), len(routes.link)]
    with path.open("wb") as file:
        for column in (
            [*lengths, len(route)], network.bandwidth, network.latency, network.src, network.dst,
            src, dst, routes.first, routes.link, messages.n_bytes, route, messages.round,
        ):  # fmt: skip
            values = np.asarray(column)
            file.write(values.astype(np.float64 if values.dtype == np.float64 else np.int32).tobytes())


def require_same(work: Work, messages: Messages) -> None:
    """Raise unless the messages are the schedule's, whatever their order.

    Raises
    ------
    InputError
        If they differ.
    """
    schedule = work.schedule()
    transfers = schedule.expand()
    transfers = transfers[transfers["src"] != transfers["dst"]]  # what a rank keeps is no message
    n_bytes = transfers["count"] * (work.size / schedule.n_chunks)
    ours = np.array([transfers["src"], transfers["dst"], n_bytes])
    theirs = np.array([messages.src, messages.dst, messages.n_bytes])
    ours, theirs = (columns[:, np.lexsort(columns)] for columns in (ours, theirs))
    if not np.array_equal(ours, theirs):
        raise InputError(f"{work.what}: the messages of the schedule and those of the peers are not the same")
