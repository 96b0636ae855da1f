"""What ``commsim switch simulate`` writes: charts of what was varied, and captures of the workers' links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.engine.packet.packet_job import AggregationJob
    from commsim.engine.packet.packet_run import PacketRun
    from commsim.report.chart import Series
    from commsim.report.picture import Picture

Row = Mapping[str, Any]


def draw_simulated(path: str, rows: Sequence[Row], series: Sequence[Row] | None) -> None:
    """Draw throughput against pool size, completion against loss, or slots in use over time.

    Parameters
    ----------
    path : str
        Of the picture.
    rows : sequence of mapping
        Results, as the JSON has them.
    series : sequence of mapping, optional
        Slots and queues over time, which are drawn if they are there.

    Raises
    ------
    InputError
        If the file is no picture's.
    """
    from commsim.report.paint import write_picture

    if series is not None:
        write_picture(_over_time(series), path)
    elif len({r["loss"] for r in rows}) > 1:
        write_picture(_against_loss(rows), path)
    elif len({r["pool_size"] for r in rows}) > 1:
        write_picture(_against_pool(rows), path)
    else:
        write_picture(_against_workers(rows), path)


def _over_time(series: Sequence[Row]) -> Picture:
    from commsim.report.chart import Axis, Series, draw_chart

    slots = tuple((s["time_s"] * 1e6, float(s["busy_slots"])) for s in series)
    queued = tuple((s["time_s"] * 1e6, s["queued_bytes"] / 1000) for s in series)
    lines = [Series("slots in use", slots), Series("kB in queues", queued)]
    return draw_chart("Slots and queues over time", Axis("time, us"), Axis("slots, kB"), lines)


def _against_loss(rows: Sequence[Row]) -> Picture:
    from commsim.report.chart import Axis, draw_chart

    lossless = {r["n_ranks"]: r["time_s"] for r in rows if not r["loss"]}
    fastest = min(r["time_s"] for r in rows)
    lines = _grouped(rows, "loss", lambda r: r["time_s"] / lossless.get(r["n_ranks"], fastest))
    x, y = Axis("loss on each link", logarithmic=True), Axis("time over time without loss", logarithmic=True)
    return draw_chart("Completion against loss", x, y, lines)


def _against_pool(rows: Sequence[Row]) -> Picture:
    from commsim.report.chart import Axis, Series, draw_chart

    lines = _grouped(rows, "pool_size", lambda r: r["elements_per_s"] / 1e6)
    bound = tuple(sorted((float(r["pool_size"]), r["line_rate_elements_per_s"] / 1e6) for r in rows))
    lines.append(Series("line rate", bound, dashed=True))
    return draw_chart("Throughput against pool size", Axis("slots", logarithmic=True), Axis("M elements/s"), lines)


def _against_workers(rows: Sequence[Row]) -> Picture:
    from commsim.report.chart import Axis, Series, draw_chart

    points = tuple(sorted((float(r["n_ranks"]), r["elements_per_s"] / 1e6) for r in rows))
    bound = tuple(sorted((float(r["n_ranks"]), r["line_rate_elements_per_s"] / 1e6) for r in rows))
    lines = [Series(rows[0]["collective"], points), Series("line rate", bound, dashed=True)]
    return draw_chart("Throughput against workers", Axis("workers"), Axis("M elements/s"), lines)


def _grouped(rows: Sequence[Row], across: str, upwards: Any) -> list[Series]:
    """One line per number of workers; of several seeds the mean."""
    from commsim.report.chart import Series

    lines = []
    for n in sorted({r["n_ranks"] for r in rows}):
        values: dict[float, list[float]] = {}
        for r in rows:
            if r["n_ranks"] == n:
                values.setdefault(float(r[across]), []).append(upwards(r))
        lines.append(Series(f"{n} workers", tuple((x, sum(v) / len(v)) for x, v in sorted(values.items()))))
    return lines


def write_tapped(
    path: str, network: Network, jobs: Sequence[AggregationJob], run: PacketRun, seed: int, *, with_values: bool
) -> int:
    """Write the packets that were tapped; return how many.

    Parameters
    ----------
    path : str
        Of the capture.
    network, jobs, run
        What was simulated, with the links of all workers tapped.
    seed : int
        Of the tensors' values.
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


def _tapped_packets(network: Network, jobs: Sequence[AggregationJob], run: PacketRun) -> NDArray[np.void]:
    """Turn what the engine recorded into rows of PACKET_EVENT."""
    from commsim.engine.packet import packet_state as s
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
    slot = taps["slot"] & ~s.VERSION
    events["slot"] = slot % system.pool_size if system.shared else slot
    events["version"] = (taps["slot"] & s.VERSION) != 0
    events["message_packets"], events["elements"] = system.packets_per_message, system.elements
    events["workers"] = np.where(from_worker, 0, (1 << np.array(n_workers, np.int64)[job_and_worker[:, 0]]) - 1)
    events["n_workers"] = np.array(n_workers)[job_and_worker[:, 0]]
    events["protocol"] = e.PROTOCOLS.index(system.name)
    events["kind"] = np.where(from_worker, e.CONTRIBUTION, e.RESULT)
    for ours, theirs in ((s.RESENT, e.RESENT), (s.ECN_MARKED, e.ECN_MARKED), (s.COLLIDED, e.COLLIDED)):
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
