"""Measure a schedule in a testbed: time, bytes on every link and use of the processors, beside the prediction."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.prediction.plans.dense import Plan
from commsim.sparse.generate import drawn_gradients
from commsim.sparse.long_occupancy import with_words
from switch_model.bpf.commands import output_of

from .cable_shape import BURST, FRAME
from .launch import ITERATIONS, Ranks
from .layout import TestbedLayout
from .places import NamesOfTestbed

# Where the busiest link should have been busy, at least this part of its packets must have waited for their turn.
WAITING = 0.8
# Bytes on that link from which on this can be said: a full bucket lets a few frames pass.
JUDGED_FROM = 10 * BURST
INVALID = 1e3
# Part of the time from which on a link should have been busy.
BUSY = 0.5
# Others may use this part of the machine; interrupts of the network's own are in it, 5 to 15 % of two cores.
FOREIGN = 0.25
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, eq=False)
class TestbedCell:
    """One algorithm at one size, measured and predicted.

    Parameters
    ----------
    result : Result
        Measured result; `link_bytes` are what the ports have counted per iteration.
    predicted : Result
        Prediction of the flow engine, headers included.
    counts : LinkCounters
        Counts of all iterations together.
    load : ProcessorLoad
        Load of the processors meanwhile.
    network : Network
        Network of the prediction.
    """

    result: Result
    predicted: Result
    counts: LinkCounters
    load: ProcessorLoad
    network: Network

    @property
    def error(self) -> float:
        """Relative error of the predicted time."""
        return self.predicted.time / self.result.time - 1

    @property
    def bytes_error(self) -> float:
        """Largest relative error of the bytes of a link, of those that carry at least a tenth of the busiest one."""
        ours, real = self.predicted.link_bytes, self.result.link_bytes
        carrying = ours >= 0.1 * ours.max(initial=0.0)
        return float(np.abs(real[carrying] / ours[carrying] - 1).max(initial=0.0)) if ours.any() else 0.0

    @property
    def spread(self) -> tuple[float, float]:
        """5th and 95th percentile of the measured times, s."""
        low, high = np.percentile(self.result.samples, (5, 95))
        return float(low), float(high)

    @property
    def unrest(self) -> float:
        """How little a measurement is worth: its spread over its median, and more than any spread if it is invalid."""
        low, high = self.spread
        return (high - low) / self.result.time + (INVALID if self.invalid else 0.0)

    @property
    def invalid(self) -> str:
        """Why the run says nothing about the network; or nothing."""
        if self.result.counters.get("wrong"):
            return "the result was wrong"
        if self.load.disturbed:
            return self.load.disturbed
        busy = self.predicted.link_bytes / self.network.bandwidth / max(self.predicted.time, 1e-12)
        judged = busy.max(initial=0.0) > BUSY and self.predicted.link_bytes.max() >= JUDGED_FROM
        if judged and self.counts.waiting[int(busy.argmax())] < WAITING:
            waited = self.counts.waiting[int(busy.argmax())]
            return f"the processors set the pace: only {waited:.0%} of the packets waited for the busiest link"
        return ""


def measure(
    ranks: Ranks, prepared: Plan, size: int, *, warmup: int = 1, iterations: int = ITERATIONS, native: str = ""
) -> TestbedCell:
    """Measure one size of what was prepared for the ranks' own network and seats.

    Parameters
    ----------
    ranks : Ranks
        Ranks in their namespaces, where `prepared` has placed them.
    prepared : Plan
        A schedule on the calibrated network.
    size : int, bytes
        Size as nccl-tests counts it.
    warmup, iterations : int
        Runs that are not timed, and those that are.
    native : str
        Run the library's own collective of this operation instead.

    Raises
    ------
    BackendError
        If the ranks do not answer.
    """
    more: dict[str, Any] = {}
    prepared = prepared.at(size)
    if prepared.data is not None:
        values = drawn_gradients(with_words(prepared.data.occupancy(size)), whole=True)
        more = {"gradients": ranks.write(values), "block": prepared.data.block}
    ranks.prepare(native or prepared.schedule, size, warmup=warmup, iterations=iterations, **more)
    before = read_counts(ranks.place, ranks.layout)
    meter = LoadMeter(ranks.place)
    ranks.begin()
    answer = ranks.finish()
    load = meter.read()
    counts = read_counts(ranks.place, ranks.layout) - before
    return as_cell(prepared, answer, counts, load, warmup + iterations, native)


def as_cell(
    prepared: Plan,
    answer: Mapping[str, Any],
    counts: LinkCounters,
    load: ProcessorLoad,
    n_runs: int,
    native: str = "",
    framing: Framing = FRAME.framing,
) -> TestbedCell:
    """Put what was measured beside the prediction; the counters are of `n_runs` runs.

    Parameters
    ----------
    prepared : Plan
        Collective prepared on the calibrated network.
    answer : mapping
        What the ranks have answered: samples, size, wrong.
    counts, load : LinkCounters, ProcessorLoad
        Counts and load of all runs together.
    n_runs : int
        Runs, warm-up included.
    native : str
        Operation, where the library's own collective was run.
    framing : Framing
        Framing of messages on the cables.
    """
    samples = np.array(answer["samples"])
    middle = float(np.median(samples))
    schedule = prepared.schedule
    name = f"native {native}" if native else schedule.name
    result = Result(
        name,
        schedule.operation,
        "testbed",
        schedule.n_ranks,
        answer["size"],
        middle,
        middle,
        link_bytes=counts.n_bytes / n_runs,
        samples=samples,
        counters={"wrong": answer["wrong"]},
    )
    return TestbedCell(result, prepared.predict(answer["size"], framing=framing), counts, load, prepared.network)


@dataclass(frozen=True, slots=True, eq=False)
class LinkCounters:
    """Counters of every directed link, at the port where it begins.

    Parameters
    ----------
    n_bytes, packets : float64[n_links]
        Sent, with Ethernet headers.
    waited : float64[n_links]
        How often the token bucket made a packet wait.
    dropped : float64[n_links]
        Packets that found the queue full.
    """

    n_bytes: NDArray[np.float64]
    packets: NDArray[np.float64]
    waited: NDArray[np.float64]
    dropped: NDArray[np.float64]

    def __sub__(self, earlier: LinkCounters) -> LinkCounters:
        return LinkCounters(
            self.n_bytes - earlier.n_bytes,
            self.packets - earlier.packets,
            self.waited - earlier.waited,
            self.dropped - earlier.dropped,
        )

    @property
    def waiting(self) -> NDArray[np.float64]:
        """Part of each link's packets that waited: near 1 where the link, and not its sender, set the pace."""
        return self.waited / np.maximum(self.packets, 1.0)


def read_counts(place: NamesOfTestbed, layout: TestbedLayout) -> LinkCounters:
    """Read the counters of all ports.

    Raises
    ------
    BackendError
        If a namespace is gone.
    """
    rows = np.zeros((4, layout.network.n_links))
    for node in sorted({port.node for port in layout.ports}):
        queues = json.loads(output_of(["tc", "-s", "-j", "-n", place.namespace(node), "qdisc", "show"]) or "[]")
        buckets = {queue["dev"]: queue for queue in queues if queue.get("kind") == "tbf"}
        for port in layout.ports_of(node):
            answer = buckets[port.device]
            rows[:, port.link] = answer["bytes"], answer["packets"], answer["overlimits"], answer["drops"]
    return LinkCounters(*rows)


@dataclass(frozen=True, slots=True)
class ProcessorLoad:
    """Use of the processors between two moments.

    Parameters
    ----------
    wall : float, s
        Time between them.
    busy : float, s
        Processor time of all processes, interrupts too.
    ours : float, s
        Processor time of the testbed's processes and of this one.
    cores : int
        Processors that there are.
    """

    wall: float
    busy: float
    ours: float
    cores: int

    @property
    def foreign(self) -> float:
        """Part of the machine that others used, and the network's own work in interrupts."""
        return max(0.0, self.busy - self.ours) / (self.wall * self.cores)

    @property
    def disturbed(self) -> str:
        """Return a warning that others have used so much that times mean little; or nothing."""
        return f"others used {self.foreign:.0%} of the processors" if self.foreign > FOREIGN else ""

    @property
    def idle(self) -> float:
        """Part of the machine that was idle."""
        return max(0.0, 1 - self.busy / (self.wall * self.cores))


class LoadMeter:
    """Measures from its making to `read`.

    Parameters
    ----------
    place : NamesOfTestbed
        The testbed, whose processes are ours; those that have ended are, if this process has started them.
    """

    def __init__(self, place: NamesOfTestbed) -> None:
        self._place = place
        self._began = time.monotonic(), _busy(), self._ours()

    def read(self) -> ProcessorLoad:
        """Return what has been since the beginning."""
        wall, busy, ours = time.monotonic(), _busy(), self._ours()
        return ProcessorLoad(
            max(wall - self._began[0], 1e-9), busy - self._began[1], ours - self._began[2], os.cpu_count() or 1
        )

    def _ours(self) -> float:
        return sum(_spent(pid) for pid in self._place.processes()) + sum(os.times()[:4])


def _busy() -> float:
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _idle, _wait, interrupt, softirq, stolen = (int(x) for x in fields[:8])
    return (user + nice + system + interrupt + softirq + stolen) / _TICK


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK
