"""Captures of simulated aggregation: what was seen on the workers' links, as a pcap file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import Records
from commsim.core.network import Network
from commsim.packets import codes
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.finished_run import PacketRun


def worker_links(network: Network, jobs: Sequence[AggregationJob]) -> list[int]:
    """Return the links from and to the workers of all jobs, which are tapped for a capture."""
    nodes = {w for job in jobs for w in job.workers}
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    return [i for i, (a, b) in enumerate(ends) if a in nodes or b in nodes]


def write_tapped(
    path: str, network: Network, jobs: Sequence[AggregationJob], run: PacketRun, seed: int, *, with_values: bool
) -> int:
    """Write the packets that were tapped; return how many.

    Parameters
    ----------
    path : str
        Path of the capture.
    network, jobs, run
        What was simulated, with the links of all workers tapped.
    seed : int
        Seed of the tensors' values.
    with_values : bool
        Whether packets are whole; else they are cut after their headers.

    Raises
    ------
    InputError
        If the system's packets are not defined, or the file cannot be written.
    """
    from switch_model.packets.pcap_writer import write_pcap

    events = _tapped_packets(network, jobs, run)
    write_pcap(path, events, _values(jobs, seed) if with_values else None)
    return len(events)


def _tapped_packets(network: Network, jobs: Sequence[AggregationJob], run: PacketRun) -> Records:
    """Turn what the engine recorded into rows of PACKET_EVENT."""
    from switch_model.packets import packet_event as e

    system = jobs[0].system
    if system.name not in e.PROTOCOLS:
        raise InputError(f"packets are defined for {', '.join(e.PROTOCOLS)}, not for {system.name}")
    taps, n_workers = run.taps, [len(job.workers) for job in jobs]
    of_node = {node: (j, i) for j, job in enumerate(jobs) for i, node in enumerate(job.workers)}
    from_worker = np.isin(network.src[taps["link"]], list(of_node))
    nodes = np.where(from_worker, network.src[taps["link"]], network.dst[taps["link"]])
    others = np.where(from_worker, network.dst[taps["link"]], network.src[taps["link"]])
    job_and_worker = np.array([of_node[int(n)] for n in nodes], np.int32).reshape(-1, 2)
    events = np.zeros(len(taps), e.PACKET_EVENT)
    events["time_ps"], events["position"] = taps["time"], taps["position"]
    events["chunk"] = taps["number"] * system.packets_per_message + taps["position"]
    worker, switch = e.node_address(nodes), e.node_address(others)
    events["src"], events["dst"] = np.where(from_worker, worker, switch), np.where(from_worker, switch, worker)
    events["job"], events["worker"] = job_and_worker[:, 0], job_and_worker[:, 1]
    slot = taps["slot"] & ~codes.VERSION
    events["slot"] = slot % system.pool_size if system.shared else slot
    events["version"] = (taps["slot"] & codes.VERSION) != 0
    events["message_packets"], events["elements"] = system.packets_per_message, system.elements
    events["workers"] = np.where(from_worker, 0, (1 << np.array(n_workers, np.int64)[job_and_worker[:, 0]]) - 1)
    events["n_workers"] = np.array(n_workers)[job_and_worker[:, 0]]
    events["protocol"] = e.PROTOCOLS.index(system.name)
    events["kind"] = np.where(from_worker, e.CONTRIBUTION, e.RESULT)
    for ours, theirs in ((codes.RESENT, e.RESENT), (codes.MARKED, e.ECN_MARKED), (codes.COLLIDED, e.COLLIDED)):
        events["flags"] |= np.where(taps["flags"] & ours, theirs, 0).astype(np.uint8)
    return events


def _values(jobs: Sequence[AggregationJob], seed: int) -> Callable[[NDArray[Any]], NDArray[np.int32]]:
    """Return what a packet holds: a worker's own values, or their sum as int32 wraps."""
    from switch_model.packets.packet_event import RESULT
    from switch_model.payload import drawn_payload

    system = jobs[0].system
    if any(job.floats for job in jobs):
        raise InputError("packets that carry exponents ahead have no values to write; leave out --floats")
    payload = drawn_payload([(len(j.workers), j.n_elements) for j in jobs], system, seed)
    bounds = [payload.bounds(j, system.elements) for j in range(len(jobs))]

    def block(job: int, worker: int, chunks: NDArray[np.int64]) -> NDArray[np.int32]:
        """Values of one worker in several chunks; int32[m, k], short chunks filled up with zeros."""
        first, end = bounds[job][chunks], bounds[job][chunks + 1]
        start = payload.base[worker] + (payload.offset[worker] + first) % payload.span[worker]
        place = np.arange(system.elements)
        inside = place < (end - first)[:, None]
        return np.where(inside, payload.values[np.where(inside, start[:, None] + place, 0)], 0).astype(np.int32)

    def values(events: NDArray[Any]) -> NDArray[np.int32]:
        rows = np.zeros((len(events), system.elements), np.int32)
        for job in np.unique(events["job"]).tolist():
            everyone = range(int(payload.first_worker[job]), int(payload.first_worker[job + 1]))
            for i, worker in enumerate(everyone):
                in_it = (events["job"] == job) & ((events["kind"] == RESULT) | (events["worker"] == i))
                rows[in_it] += block(job, worker, events["chunk"][in_it])  # wraps, as int32 does
        return rows

    return values
