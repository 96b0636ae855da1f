"""What flows that start together need that does not depend on their sizes: routes, and rates at first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.schedule import REDUCE

from ..flow_plan import Job
from .bundles import Bundles, bundle_flows
from .waitless import shares_a_wire, unrolled


@dataclass(frozen=True, slots=True, eq=False)
class TogetherPlan:
    """Transfers that wait for nothing, and their rates.

    Parameters
    ----------
    network : Network
        Where.
    job : Job
        What runs.
    src, dst, row : int32[n_transfers]
        Participants, and the row of the schedule's blocks put together that the transfer repeats.
    count : int64[n_rows]
        Chunks of each row's messages.
    crosses : int32[n_flows]
        Transfers that use links, by source, so that those which share a link are near to each other.
    bundles : Bundles
        Their routes.
    rate : float64[n_flows], bytes/s
        Max-min fair while all of them are under way.
    overhead : float, s
        Until all ports are through with the overheads of all messages.
    """

    network: Network
    job: Job
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    row: NDArray[np.int32]
    count: NDArray[np.int64]
    crosses: NDArray[np.int32]
    bundles: Bundles
    rate: NDArray[np.float64]
    overhead: float


def plan_together(network: Network, job: Job, *, routing: str | None = None, seed: int = 0) -> TogetherPlan | None:
    """Lay out a schedule whose transfers all start together.

    Parameters
    ----------
    network : Network
        Where.
    job : Job
        What runs.
    routing, seed : str, int
        As in :func:`commsim.routing.routing.find_routes`.

    Returns
    -------
    TogetherPlan or None
        None if some transfer waits for another, shares its wire, or has a cost of its own to receive or to reduce; or
        if ports are not through with their overheads at the same time.
    """
    schedule = job.schedule
    job.placement.check(network, schedule.n_ranks, schedule.n_helpers)
    found = unrolled(schedule)
    if found is None:
        return None
    from commsim.core.dependencies_kernel import counting_order

    from .levels_kernel import levels_of_flows

    src, dst, row = found
    body = np.concatenate([block.body for block in schedule.blocks])
    channel = body["channel"].astype(np.int64)[row]
    nodes = job.placement.nodes.astype(np.int64)
    where = nodes[src], nodes[dst]
    reduces = (body["op"] == REDUCE).any() and (network.gamma[nodes] > 0).any()
    if reduces or (network.recv_overhead[nodes] > 0).any() or shares_a_wire(schedule, src, dst, channel):
        return None
    crosses = np.flatnonzero(where[0] != where[1]).astype(np.int32)
    crosses = np.take(crosses, counting_order(where[0][crosses].astype(np.int32), network.n_nodes))
    bundles = bundle_flows(network, where[0][crosses], where[1][crosses], channel[crosses], routing=routing, seed=seed)
    overhead = _overhead(network, where[0][crosses], bundles)
    if overhead is None:
        return None
    rate = levels_of_flows(
        bundles.capacity, (bundles.first, bundles.link, bundles.share), bundles.bundle, bundles.head, job.rate_cap
    )
    return TogetherPlan(network, job, src, dst, row, body["count"].astype(np.int64), crosses, bundles, rate, overhead)


def _overhead(network: Network, src: NDArray[np.int64], bundles: Bundles) -> float | None:
    """Time after which every port has spent the overheads of its messages, if all ports are done together.

    Messages that begin together at one port share it equally, so all n of them have spent theirs after n times o.
    """
    if not len(src) or not network.overhead[src].any():
        return 0.0
    port = bundles.ports()
    if port is None:
        return None
    times = np.bincount(port, minlength=len(bundles.capacity))[port] * network.overhead[src]
    return float(times[0]) if (times == times[0]).all() else None
