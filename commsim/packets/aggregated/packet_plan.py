"""From jobs on a network to the tables of the packet kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import partners
from commsim.packets import codes
from commsim.packets import event_rows as s
from commsim.packets.aggregated import traffic_state as m
from commsim.packets.aggregated.packet_job import AggregationJob, BlockRounds
from commsim.packets.event_rows import PS
from commsim.packets.hosts.work import PacketLayout
from commsim.packets.links.link_tables import check_links, check_times, idle_links
from commsim.routing.aggregation_tree import AggregationTree
from switch_model.slot_kernel import SLOT_ROW
from switch_model.slot_sequence import LOG_ROW


@dataclass(slots=True)
class Draft:
    """Rows that are being collected; numbers are places in the lists.

    Parameters
    ----------
    n_links : int
        Number of links of the network.
    reverse : dict of int to int
        Link in the other direction of each link that has one.
    first_stream, first_hop : int
        Numbers of streams, and of places in the table of routes, that flows have.
    job_number, priority : int
        Number of the job whose streams are being added, among all, and its rank.
    """

    n_links: int
    reverse: dict[int, int]
    first_stream: int
    first_hop: int
    job_number: int = 0
    priority: int = 0
    route: list[int] = field(default_factory=list)
    stream: list[tuple[int, ...]] = field(default_factory=list)
    job: list[Any] = field(default_factory=list)
    tensor: list[tuple[int, ...]] = field(default_factory=list)
    worker: list[Any] = field(default_factory=list)
    aggregator: list[Any] = field(default_factory=list)
    server: list[Any] = field(default_factory=list)
    below: dict[int, list[int]] = field(default_factory=dict)  # workers below aggregators whose slots are shared
    served: list[int] = field(default_factory=list)  # workers of each server
    entry_slots: list[Any] = field(default_factory=list)
    units: list[tuple[int, int]] = field(default_factory=list)  # picoseconds per packet, and after it
    pools: dict[int, int] = field(default_factory=dict)  # first slot of each switch's shared pool
    n_entries: int = 0
    n_slots: int = 0
    n_order: int = 0
    n_fragments: int = 0
    n_registers: int = 0  # beyond those of the slots
    rounds: list[BlockRounds] = field(default_factory=list)

    def add_stream(self, links: Sequence[int], target: int, owner: int, child: int = 0) -> int:
        """Add a stream of packets over these links, and return its number."""
        begin = self.first_hop + len(self.route)
        self.stream.append((begin, begin + len(links), target, owner, child, self.priority, self.job_number))
        self.route += links
        return self.n_streams - 1

    @property
    def n_streams(self) -> int:
        """Streams so far, those of flows too."""
        return self.first_stream + len(self.stream)

    def add_link(self, packet_time: float = 0.0, latency: float = 0.0) -> list[int]:
        """Add a link from a node to itself that takes so many seconds per packet, and after it; return it as a path."""
        self.units.append((round(packet_time * PS), round(latency * PS)))
        return [self.n_links + len(self.units) - 1]

    def back(self, links: Sequence[int]) -> list[int]:
        """Return the path back."""
        if any(link not in self.reverse for link in links):
            raise InputError("an aggregation tree needs links in both directions")
        return [self.reverse[link] for link in reversed(links)]


class AggregationRows(NamedTuple):
    """Tables of jobs that switches aggregate.

    Parameters
    ----------
    jobs : Jobs
        What they know and do.
    stream, hops : STREAM_ROW[n_streams], int64[n_hops]
        Ways of their packets, behind those of flows; the links of each, by the network's numbers, then units.
    unit : LINK_ROW[n]
        Aggregation units, as links behind all others.
    """

    jobs: m.AggregationState
    stream: s.Rows
    hops: NDArray[np.int64]
    unit: s.Rows


def aggregation_rows(
    laid: PacketLayout, jobs: Sequence[AggregationJob] = (), ranks: Sequence[int] | NDArray[np.int64] = ()
) -> AggregationRows:
    """Lay out the tables of jobs that switches aggregate.

    Parameters
    ----------
    laid : PacketLayout
        Network that carries the packets, and what is sent beside them.
    jobs : sequence of AggregationJob
        Jobs; they share links, and the pools of switches whose slots are shared.
    ranks : int64[n_jobs]
        Ranks of the jobs' priorities (:func:`commsim.packets.aggregated.packet_job.priority_ranks`).

    Raises
    ------
    InputError
        If a job does not fit.
    """
    network, routes = laid.network, laid.work.routes
    first_stream, first_hop = len(routes) * len(laid.work.flow), sum(len(way.link) for way in routes)
    draft = Draft(network.n_links, {}, first_stream, first_hop)
    if jobs:
        check_links(network)
        check_times(network, sum(job.n_bytes for job in jobs))
        draft.reverse = reverse_links(network)
    for number, (job, rank) in enumerate(zip(jobs, ranks, strict=True)):
        job.check(network, laid.hows[0].fabric.loss)
        draft.job_number, draft.priority = laid.work.n_jobs + number, int(rank)
        _add_job(draft, number, job)
    return _tables(draft)


def reverse_links(network: Network) -> dict[int, int]:
    """Link in the other direction of each link that has one."""
    return {link: back for link, back in enumerate(partners(network).tolist()) if back != link}


def _add_job(draft: Draft, number: int, job: AggregationJob) -> None:
    system, n = job.system, len(job.workers)
    row = np.zeros((), m.JOB_ROW)
    row["worker"], row["n_workers"], row["window"] = len(draft.worker), n, job.window
    row["packets"], row["versions"], row["n_trees"] = system.packets_per_message, system.versions, system.n_trees
    row["tensor"], row["n_tensors"] = len(draft.tensor), len(job.n_elements)
    last = system.packets_per_message - 1
    row["bytes_first"], row["bytes_last"] = system.packet_bytes(0), system.packet_bytes(last)
    row["bytes_middle"], row["bytes_empty"] = system.payload + system.header, system.empty_bytes
    row["segment"] = system.window_growth / system.packet_bytes(0)
    row["max_window"], row["gain"] = min(system.window, system.max_window), system.gain
    row["rto"] = 0 if system.lossless else round(system.rto * PS)
    row["pool"], row["shared"], row["sliding"] = system.pool_size, system.shared, system.sliding
    row["ecn"] = system.ecn_window
    row["skips_seen_check"], row["restarts_slots"] = "seen_check" in job.without, "continued_slots" in job.without
    row["unclaimed"] = 1
    _add_rounds(draft, row, job.rounds)
    draft.job.append(row)
    _add_tensors(draft, job)
    up = _add_trees(draft, number, job)
    for i in range(n):
        worker = np.zeros((), m.WORKER_ROW)
        worker["job"], worker["number"], worker["up"] = number, i, up[i]
        worker["entry"] = draft.n_entries + i * job.window
        worker["tensor"], worker["head"], worker["tail"] = row["tensor"], -1, -1
        worker["congestion_window"] = min(system.window, system.max_window)
        worker["finished"] = -1
        draft.worker.append(worker)
    shared = system.shared_slots
    slots = np.zeros(job.window, np.int32) if shared is None else shared(number, job.window, system.pool_size)
    draft.entry_slots.append(np.tile(slots, n))
    draft.n_entries += n * job.window


def _add_rounds(draft: Draft, row: Any, rounds: BlockRounds | None) -> None:
    row["rounds"] = -1
    if rounds is None:
        return
    row["rounds"] = sum(len(r.first) for r in draft.rounds)
    row["owned"] = sum(r.occupancy.words.size for r in draft.rounds)
    row["owned_words"] = rounds.occupancy.words.shape[1]
    draft.rounds.append(rounds)


def _add_tensors(draft: Draft, job: AggregationJob) -> None:
    chunks, messages = job.chunks(), job.messages()
    first_chunk = np.cumsum([0, *chunks])
    first = np.cumsum([0, *messages])
    if first[-1] > np.iinfo(np.int32).max:
        raise InputError(f"{job.system.name}: {first[-1]} messages are more than 2^31 - 1; simulate a smaller tensor")
    for i, count in enumerate(messages):
        lead = int(count - -(-chunks[i] // job.system.packets_per_message))
        draft.tensor.append((int(first[i]), int(first[i + 1]), lead, int(first_chunk[i]), int(first_chunk[i + 1])))


def _add_trees(draft: Draft, number: int, job: AggregationJob) -> list[int]:
    """Add aggregators, the server, and all streams between them; return each worker's first stream."""
    system, n, base = job.system, len(job.workers), len(draft.worker)
    tree_aggregators = [_add_aggregators(draft, number, job, i) for i in range(system.n_trees)]
    up = [draft.n_streams + i * system.n_trees for i in range(n)]
    children: list[list[list[tuple[Any, int, int]]]] = [[[] for _ in tree.nodes] for tree in job.trees]
    for i in range(n):
        for k, tree in enumerate(job.trees):
            leaf = tree.leaf[i]
            child = len(children[k][leaf])
            to = tree_aggregators[k] + leaf
            draft.add_stream(tree.worker_up[i] or draft.add_link(), codes.TO_AGGREGATOR, to, child)
            down = draft.back(tree.worker_up[i]) or draft.add_link()
            children[k][leaf].append((down, codes.TO_WORKER, base + i))
    for k, tree in enumerate(job.trees):
        first = tree_aggregators[k]
        for a in range(1, len(tree.nodes)):
            parent = tree.parent[a]
            child = len(children[k][parent])
            draft.aggregator[first + a]["up"] = draft.add_stream(tree.up[a], codes.TO_AGGREGATOR, first + parent, child)
            children[k][parent].append((draft.back(tree.up[a]), codes.TO_AGGREGATOR, first + a))
        for a, below in enumerate(children[k]):
            row = draft.aggregator[first + a]
            row["down"], row["fan_in"] = draft.n_streams, len(below)
            for links, target, owner in below:
                draft.add_stream(links, target, owner)
            row["down_end"] = draft.n_streams
            if (occupied := system.unit_time(len(below))) or system.switch_latency:  # the aggregation unit
                unit = draft.add_link(occupied, system.switch_latency)
                row["unit"] = draft.add_stream(unit, codes.TO_UNIT, first + a)
        if system.server:
            _add_server(draft, number, job, first)
    return up


def _add_aggregators(draft: Draft, number: int, job: AggregationJob, k: int) -> int:
    tree, system = job.trees[k], job.system
    first = len(draft.aggregator)
    for a, node in enumerate(tree.nodes):
        row = np.zeros((), m.AGGREGATOR_ROW)
        row["job"], row["up"], row["unit"] = number, -1, -1
        if system.shared:
            draft.below[len(draft.aggregator)] = _workers_below(tree, a)
            if node not in draft.pools:
                draft.pools[node] = draft.n_slots
                draft.n_slots += system.pool_size
            row["slots"] = draft.pools[node]
        else:
            row["slots"] = draft.n_slots
            draft.n_slots += system.versions * system.window
            row["order"] = draft.n_order
            draft.n_order += (tree.fan_in[a] if system.packets_per_message > 1 else 0) * job.window
        draft.aggregator.append(row)
    return first


def _add_server(draft: Draft, number: int, job: AggregationJob, root: int) -> None:
    row = np.zeros((), m.SERVER_ROW)
    links = job.server_links
    owner = len(draft.server)
    draft.aggregator[root]["up"] = draft.add_stream(links, codes.TO_SERVER, owner)
    row["job"], row["down"] = number, draft.add_stream(draft.back(links), codes.TO_AGGREGATOR, root)
    row["fragments"], row["n_registers"] = draft.n_fragments, 2 * job.window
    row["register"] = draft.n_registers
    draft.n_fragments += int(job.messages().sum())
    draft.n_registers += 2 * job.window
    draft.server.append(row)
    draft.served.append(len(job.workers))


def _workers_below(tree: AggregationTree, aggregator: int) -> list[int]:
    """Workers whose way to the root leads over an aggregator."""
    workers = []
    for worker, leaf in enumerate(tree.leaf):
        node = leaf
        while node not in (aggregator, -1):
            node = tree.parent[node]
        if node == aggregator:
            workers.append(worker)
    return workers


def _tables(draft: Draft) -> AggregationRows:
    unit = idle_links(len(draft.units))
    unit["packet_time"], unit["latency"] = np.array(draft.units, np.int64).reshape(-1, 2).T
    entry = np.zeros(draft.n_entries, m.ENTRY_ROW)
    entry["message"], entry["slot"] = -1, np.concatenate([np.zeros(0, np.int32), *draft.entry_slots])
    server = np.array(draft.server, m.SERVER_ROW)
    server["register"] += draft.n_slots
    fragment = np.zeros(max(1, draft.n_fragments), m.FRAGMENT_ROW)
    fragment["slot"] = -1
    workers = _sets_of_workers(draft, len(fragment), server)
    rows = zip(draft.rounds, np.cumsum([0, *(len(r.block) for r in draft.rounds)]), strict=False)
    tables = {
        "job": np.array(draft.job, m.JOB_ROW),
        "tensor": np.array(draft.tensor, m.TENSOR_ROW),
        "worker": np.array(draft.worker, m.WORKER_ROW),
        "entry": entry,
        "aggregator": np.array(draft.aggregator, m.AGGREGATOR_ROW),
        "server": server,
        "fragment": fragment,
        "slot": np.zeros(max(1, draft.n_slots), SLOT_ROW),
        "order": np.zeros(max(1, draft.n_order), np.int16),
        "log": s.zeros_on_lines(m.LOG_RECORDS, LOG_ROW),
        "round_first": np.concatenate([np.zeros(0, np.int64), *(r.first + before for r, before in rows)]),
        "round_block": np.concatenate([np.zeros(0, np.int32), *(r.block for r in draft.rounds)]),
        "occupancy": np.concatenate([np.zeros(0, np.uint64), *(r.occupancy.words.ravel() for r in draft.rounds)]),
        "filled": np.zeros(draft.n_slots if draft.rounds else 0, np.bool_),
    }
    jobs = m.AggregationState(**{name: s.on_lines(table) for name, table in tables.items()}, workers=workers)
    return AggregationRows(jobs, np.array(draft.stream, s.STREAM_ROW), np.array(draft.route, np.int64), unit)


def _sets_of_workers(draft: Draft, n_fragments: int, server: Any) -> NDArray[np.uint64]:
    """Lay out whose values are in what, where slots are shared; no others ask."""
    if not draft.below:
        return np.zeros((0, 1), np.uint64)
    first = max(1, draft.n_slots) + n_fragments
    n_rows, n_words = first + len(draft.aggregator) + len(draft.server), -(-max(draft.served) // 64)
    bits = np.zeros((n_rows, 64 * n_words), np.bool_)
    for number, row in enumerate(draft.aggregator):
        row["all_workers"] = first + number
        bits[first + number, draft.below.get(number, [])] = True
    for number, n in enumerate(draft.served):
        server["all_workers"][number] = first + len(draft.aggregator) + number
        bits[first + len(draft.aggregator) + number, :n] = True
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
