"""What happened in a sprayed fabric over time, as trace events: queues and rates of links, messages of hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.files.trace_events import process_name, thread_name, write_events
from commsim.core.network import Network
from commsim.packets.finished_run import PacketRun
from commsim.traffic.patterns import HostMessages

US = 1e6  # of a second
MESSAGES, LINKS = 0, 1  # processes


def write_queues(path: str | Path, network: Network, messages: HostMessages, run: PacketRun) -> int:
    """Write messages as slices; packets sent again, trimmed and marked, and each link's queue and rate as counters.

    Rates of the links of one switch show which paths were taken when.

    Parameters
    ----------
    path : path
        JSON for ui.perfetto.dev, compressed when it ends with .gz.
    network : Network
        Network of the run.
    messages : HostMessages
        Messages that were sent.
    run : PacketRun
        Run with samples.

    Returns
    -------
    int
        Events.
    """
    return write_events(path, _events(network, messages, run))


def _events(network: Network, messages: HostMessages, run: PacketRun) -> Iterator[dict[str, Any]]:
    yield process_name(MESSAGES, "messages")
    yield process_name(LINKS, "links")
    hosts = [network.nodes[i] for i in network.endpoints]
    for i in range(len(messages.src)):
        name = f"{hosts[messages.src[i]]} -> {hosts[messages.dst[i]]}"
        yield thread_name(MESSAGES, i, name)
        yield {
            "ph": "X", "pid": MESSAGES, "tid": i, "name": name, "ts": messages.start[i] * US,
            "dur": run.finished[i] * US, "args": {"bytes": int(messages.nbytes[i])},
        }  # fmt: skip
    taken = run.samples(network)
    between = np.diff(taken.times)
    if not len(between):
        return
    for what, count in taken.counts.items():
        yield from _counter(f"packets {what}", "packets", taken.times, count)
    for link in np.flatnonzero(taken.sent[-1] > 0):
        name = f"{network.nodes[network.src[link]]} -> {network.nodes[network.dst[link]]}"
        rate = np.diff(taken.sent[:, link]) / between * 8 / 1e9
        yield from _counter(f"queue {name}", "queued", taken.times, taken.queued[:, link])
        yield from _counter(f"rate {name}", "Gbps", taken.times[:-1], rate)


def _counter(name: str, unit: str, times: np.ndarray, values: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield a counter's values where they change."""
    changes = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    for i in changes:
        yield {"ph": "C", "pid": LINKS, "name": name, "ts": times[i] * US, "args": {unit: float(values[i])}}
