"""Lossless in-network aggregation by a max-plus recurrence: the event engine's times, to the picosecond, and faster."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.aggregated.packet_plan import reverse_links
from commsim.packets.aggregated.tree_times_kernel import EDGE_ROW, sweep
from commsim.packets.event_rows import LAST_TIME, PS, Rows
from commsim.packets.links.link_tables import check_times, link_tables
from commsim.packets.links.queues import Fabric


def why_not(network: Network, job: AggregationJob, fabric: Fabric | None = None) -> str:
    """Return why a job's times are no recurrence, or an empty text when they are."""
    system, fabric = job.system, fabric or Fabric()
    if system.shared or system.server:
        return f"{system.name} shares its slots with other jobs"
    if system.hosts:
        return f"{system.name} aggregates on hosts, whose links its streams share"
    if system.ecn_window or system.n_trees > 1:
        return f"{system.name} adapts its window or has several trees"
    loss = network.loss if fabric.loss is None else fabric.loss
    if np.any(loss):
        return "links lose packets"
    if not np.isinf(network.buffer).all() or np.isfinite(fabric.shared_buffer) or fabric.pause_at:
        return "queues are finite"
    used = [link for tree in job.trees for path in (*tree.up, *tree.worker_up) for link in path]
    if len(used) != len(set(used)):
        return "two streams share a link"
    if job.without:
        return "a rule is left out"
    return ""


def simulate_recurrence(network: Network, job: AggregationJob, *, fabric: Fabric | None = None) -> Result:
    """Predict one job that has its links to itself.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : AggregationJob
        Job of a system with reserved slots and a fixed window.
    fabric : Fabric, optional
        Must leave queues infinite and links lossless.

    Returns
    -------
    Result
        As the event engine's, but nothing is said of values: it has no counter `exact`.

    Raises
    ------
    InputError
        If the times are no recurrence; the message says why.
    """
    if reason := why_not(network, job, fabric):
        raise InputError(f"{job.system.name} has no recurrence here: {reason}; use the event engine")
    job.check(network)
    link, _ = link_tables(network, fabric or Fabric())
    draft = _unfold(network, job, link)
    edge = np.array(draft.edge, EDGE_ROW)
    check_times(network, job.n_bytes)
    serialisation = _serialisation(draft, job, link)
    if float(job.messages().sum()) * (float(edge["latency"].sum()) + float(serialisation.sum())) > LAST_TIME:
        raise InputError(f"{network.name}: packets are simulated for up to {LAST_TIME / PS / 86400:.0f} days: "
                         "use the flow engine, or shorter latencies")  # fmt: skip
    n, window = len(job.workers), job.window
    arrival = np.zeros(draft.n_nodes, np.int64)
    begin, done = job.starts_ps(), np.zeros((window, n), np.int64)
    began, first = time.process_time(), 0
    for count in job.messages().tolist():
        sweep(first, count, window, begin, done, edge, serialisation, arrival)
        first += count
        begin = done.max(axis=0)
    cpu = time.process_time() - began
    return _result(network, job, draft, begin, first, cpu)


@dataclass(slots=True)
class _HopTable:
    """Hops between nodes: workers that send, workers that receive, then places where packets are on their way."""

    n_nodes: int
    edge: list[tuple[int, int, int, int]] = field(default_factory=list)
    link: list[int] = field(default_factory=list)  # of each edge; -1 for an aggregation unit
    n_up: int = 0

    def new_nodes(self, count: int) -> int:
        """Add nodes; return the first."""
        self.n_nodes += count
        return self.n_nodes - count

    def path(self, links: Sequence[int], start: int, end: int, table: Rows) -> None:
        """Add a hop per link from one node to another, with new nodes between."""
        between = self.new_nodes(len(links) - 1)
        nodes = [start, *range(between, self.n_nodes), end]
        for here, there, number in zip(nodes[:-1], nodes[1:], links, strict=True):
            self.edge.append((here, there, 0, int(table["latency"][number])))
            self.link.append(number)


def _unfold(network: Network, job: AggregationJob, link: Rows) -> _HopTable:
    tree, n, m = job.trees[0], len(job.workers), len(job.trees[0].nodes)
    reverse = reverse_links(network)
    draft = _HopTable(2 * n)
    sums = draft.new_nodes(m)  # where each aggregator's sum is complete,
    sent = draft.new_nodes(m)  # and where it has gone through the aggregation unit
    children = [[c for c in range(1, m) if tree.parent[c] == a] for a in range(m)]
    workers = [[i for i in range(n) if tree.leaf[i] == a] for a in range(m)]
    for a in reversed(range(m)):
        for i in workers[a]:
            draft.path(tree.worker_up[i], i, sums + a, link)
        for child in children[a]:
            draft.path(tree.up[child], sent + child, sums + a, link)
        draft.edge.append((sums + a, sent + a, 0, round(job.system.switch_latency * PS)))
        draft.link.append(-1)
    draft.n_up = len(draft.edge)
    results = [sent, *range(draft.new_nodes(m - 1), draft.n_nodes)]  # where each aggregator's result comes in
    for a in range(m):
        for child in children[a]:
            draft.path([reverse[k] for k in reversed(tree.up[child])], results[a], results[child], link)
        for i in workers[a]:
            draft.path([reverse[k] for k in reversed(tree.worker_up[i])], results[a], n + i, link)
    return draft


def _serialisation(draft: _HopTable, job: AggregationJob, link: Rows) -> NDArray[np.int64]:
    """Time of the packet at each position on each hop, rounded as the event engine rounds."""
    system = job.system
    at = np.asarray(draft.link)
    occupied = np.zeros(len(at))
    occupied[at < 0] = [system.unit_time(fan_in) for fan_in in reversed(job.trees[0].fan_in)]  # as they were unfolded
    rows = []
    for position in range(system.packets_per_message):
        time_ = (system.packet_bytes(position) * link["ps_per_byte"][at] + 0.5).astype(np.int64)
        rows.append(np.where(at < 0, np.rint(occupied * PS).astype(np.int64), time_))
    return np.array(rows)


def _result(
    network: Network, job: AggregationJob, draft: _HopTable, finished: NDArray[np.int64], n_messages: int, cpu: float
) -> Result:
    crossings = np.bincount([k for k in draft.link if k >= 0], minlength=network.n_links)
    over = crossings.astype(np.float64) * n_messages
    has_units = bool(job.system.unit_time(1) or job.system.switch_latency)
    over_units = len(job.trees[0].nodes) * has_units * n_messages
    hops = float(over.sum() + over_units) * job.system.packets_per_message
    counters = {
        "retransmissions": 0,
        "duplicates": 0,
        "drops": 0,
        "events": 2 * hops + len(job.workers),
        "packet_hops": hops,
        "cpu_s": cpu,
    }
    return job.result("recurrence", finished, over * job.system.message_bytes, counters)
