"""Measure a schedule in a testbed: time and bytes on every link beside the prediction, and whether the run counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.run import Prepared
from commsim.sparse.generate import drawn_gradients

from .counters import Counts, Load, LoadMeter, read_counts
from .launch import Ranks
from .shaping import BURST, FRAME

WAITING = 0.8
"""Where the busiest link should have been busy, at least this part of its packets must have waited for their turn."""
JUDGED_FROM = 10 * BURST
"""Bytes on that link from which on this can be said: a full bucket lets a few frames pass."""
INVALID = 1e3
BUSY = 0.5
"""Part of the time from which on a link should have been busy."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One algorithm at one size, measured and predicted.

    Parameters
    ----------
    result : Result
        As measured; `link_bytes` are what the ports have counted per iteration.
    predicted : Result
        Of the flow engine, headers included.
    counts : Counts
        Of all iterations together.
    load : Load
        Of the processors meanwhile.
    network : Network
        For which it was predicted.
    """

    result: Result
    predicted: Result
    counts: Counts
    load: Load
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
    ranks: Ranks, ready: Prepared, size: int, *, warmup: int = 1, iterations: int = 5, native: str = ""
) -> Cell:
    """Measure one size of what was prepared for the ranks' own network and seats.

    Parameters
    ----------
    ranks : Ranks
        In their namespaces, where `ready` has placed them.
    ready : Prepared
        A schedule on the calibrated network.
    size : int, bytes
        As nccl-tests counts it.
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
    if ready.data is not None:
        values = drawn_gradients(ready.data.occupancy(size), whole=True)
        more = {"gradients": ranks.write(values), "block": ready.data.block}
    ranks.prepare(native or ready.schedule, size, warmup=warmup, iterations=iterations, **more)
    before = read_counts(ranks.place, ranks.layout)
    meter = LoadMeter(ranks.place)
    ranks.begin()
    found = ranks.finish()
    load = meter.read()
    counts = read_counts(ranks.place, ranks.layout) - before
    return as_cell(ready, found, counts, load, warmup + iterations, native)


def as_cell(
    ready: Prepared,
    found: Mapping[str, Any],
    counts: Counts,
    load: Load,
    n_runs: int,
    native: str = "",
    framing: Framing = FRAME.framing,
) -> Cell:
    """Put what was measured beside the prediction; the counters are of `n_runs` runs."""
    samples = np.array(found["samples"])
    middle = float(np.median(samples))
    schedule = ready.schedule
    name = f"native {native}" if native else schedule.name
    result = Result(
        name,
        schedule.operation,
        "testbed",
        schedule.n_ranks,
        found["size"],
        middle,
        middle,
        link_bytes=counts.n_bytes / n_runs,
        samples=samples,
        counters={"wrong": found["wrong"]},
    )
    return Cell(result, ready.predict(found["size"], framing=framing), counts, load, ready.network)
