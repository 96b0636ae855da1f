"""Lossless in-network aggregation by a max-plus recurrence: the event engine's times, to the picosecond, and faster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result

from .fabric import PS, Fabric, link_tables
from .packet_job import AggregationJob
from .packet_plan import reverse_links
from .recurrence_kernel import EDGE_ROW


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
        Where.
    job : AggregationJob
        Of a system with reserved slots and a fixed window.
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
    from .recurrence_kernel import sweep

    if reason := why_not(network, job, fabric):
        raise InputError(f"{job.system.name} has no recurrence here: {reason}; use the event engine")
    job.check(network)
    link, _ = link_tables(network, fabric or Fabric())
    draft = _unfold(network, job, link)
    edge = np.array(draft.edge, EDGE_ROW)
    serial = _serialisation(draft, job, link)
    n, window = len(job.workers), job.window
    come = np.zeros(draft.n_nodes, np.int64)
    begin, done = job.starts_ps(), np.zeros((window, n), np.int64)
    began, first = time.process_time(), 0
    for count in job.messages().tolist():
        sweep(first, count, window, begin, done, edge, serial, come)
        first += count
        begin = done.max(axis=0)
    cpu = time.process_time() - began
    return _result(network, job, draft, begin, first, cpu)


@dataclass(slots=True)
class _Draft:
    n_nodes: int
    edge: list[tuple[int, int, int, int]] = field(default_factory=list)
    link: list[int] = field(default_factory=list)  # of each edge; -1 for an aggregation unit
    n_up: int = 0

    def path(self, links: Any, start: int, end: int, table: Any) -> None:
        """Add a hop per link from one node to another, with new nodes between."""
        here = start
        for i, number in enumerate(links):
            last = i == len(links) - 1
            there = end if last else self.n_nodes
            self.n_nodes += not last
            self.edge.append((here, there, 0, int(table["latency"][number])))
            self.link.append(number)
            here = there


def _unfold(network: Network, job: AggregationJob, link: Any) -> _Draft:
    """Nodes: workers, then aggregators with what they have gathered, then what they send; at the end workers again."""
    tree, n, m = job.trees[0], len(job.workers), len(job.trees[0].nodes)
    reverse = reverse_links(network)
    draft = _Draft(n + 2 * m)
    for a in reversed(range(m)):
        for i in np.flatnonzero(np.asarray(tree.leaf) == a).tolist():
            draft.path(tree.worker_up[i], i, n + a, link)
        for child in np.flatnonzero(np.asarray(tree.parent) == a).tolist():
            draft.path(tree.up[child], n + m + child, n + a, link)
        draft.edge.append((n + a, n + m + a, 0, round(job.system.switch_latency * PS)))
        draft.link.append(-1)
    draft.n_up = len(draft.edge)
    below = [n + m] + [0] * (m - 1)  # where each aggregator's result comes in: the root's is its own sum
    for a in range(1, m):
        below[a] = draft.n_nodes
        draft.n_nodes += 1
    receivers = draft.n_nodes  # moved to the end below
    draft.n_nodes += n
    for a in range(m):
        for child in np.flatnonzero(np.asarray(tree.parent) == a).tolist():
            draft.path([reverse[i] for i in reversed(tree.up[child])], below[a], below[child], link)
        for i in np.flatnonzero(np.asarray(tree.leaf) == a).tolist():
            draft.path([reverse[k] for k in reversed(tree.worker_up[i])], below[a], receivers + i, link)
    _move_to_end(draft, receivers, n)
    return draft


def _move_to_end(draft: _Draft, first: int, count: int) -> None:
    """Renumber the nodes first..first+count-1 to be the last ones."""
    behind = draft.n_nodes - first - count

    def moved(node: int) -> int:
        if node < first:
            return node
        return node + behind if node < first + count else node - count

    draft.edge = [(moved(a), moved(b), free, latency) for a, b, free, latency in draft.edge]


def _serialisation(draft: _Draft, job: AggregationJob, link: Any) -> NDArray[np.int64]:
    """Time of the packet at each position on each hop, rounded as the event engine rounds."""
    system = job.system
    at = np.asarray(draft.link)
    is_unit, first = at < 0, np.zeros(len(at), np.bool_)
    first[: draft.n_up] = np.isin([e[0] for e in draft.edge[: draft.n_up]], range(len(job.workers)))
    rows = []
    for position in range(system.packets_per_message):
        time_ = (system.packet_bytes(position) * link["ps_per_byte"][at] + 0.5).astype(np.int64)
        time_ += np.where(first & (position == 0), link["first_time"][at], 0)
        rows.append(np.where(is_unit, round(system.segment_time * PS), time_))
    return np.array(rows)


def _result(
    network: Network,
    job: AggregationJob,
    draft: _Draft,
    finished: NDArray[np.int64],
    n_messages: int,
    cpu: float,
) -> Result:
    n_elements = sum(job.n_elements)
    crossings = np.bincount([k for k in draft.link if k >= 0], minlength=network.n_links)
    over = crossings.astype(np.float64) * n_messages
    seconds, from_last = job.elapsed(finished)
    has_units = bool(job.system.segment_time or job.system.switch_latency)
    over_units = len(job.trees[0].nodes) * has_units * n_messages
    hops = float(over.sum() + over_units) * job.system.packets_per_message
    counters = {
        "elements": n_elements,
        "elements_per_s": n_elements / seconds,
        "retransmissions": 0,
        "duplicates": 0,
        "drops": 0,
        "events": 2 * hops + len(job.workers),
        "packet_hops": hops,
        "cpu_s": cpu,
    }
    return Result(
        job.system.name,
        "all_reduce",
        "recurrence",
        len(job.workers),
        float(n_elements * job.system.element_bytes),
        seconds,
        from_last,
        over * job.system.message_bytes,
        float(over.sum()) * job.system.message_bytes,
        counters={k: float(v) for k, v in counters.items()},
    )
