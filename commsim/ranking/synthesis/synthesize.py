"""The fastest schedule that we can make for an operation on a network, with a proven lower bound."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.extras import of_extra
from commsim.core.network import Network
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import first_of, format_size, format_time
from commsim.core.value import Shown

from .bound import ROUNDING, times_of
from .made_schedules import MAX_MESSAGES, Maker, Report, TimedSchedule
from .trees.forest import Certificate

# Distance of a schedule from the lower bound that needs no remark.
LITTLE = 0.01


@dataclass(frozen=True, slots=True)
class CostOfFaults:
    """Times of one size without and with the faults of a network, in seconds.

    Parameters
    ----------
    size : int, bytes
        Size of the operation.
    running : str
        The schedule that runs without the faults.
    whole : float, s
        What it takes without them.
    faulted : float or None, s
        What it takes with them; None where it cannot run with them.
    repaired : float, s
        The fastest that was found for the network with its faults.
    bound : float, s
        What no schedule beats there.
    whole_bound : float, s
        What no schedule beats without the faults.
    """

    size: int
    running: str
    whole: float
    faulted: float | None
    repaired: float
    bound: float
    whole_bound: float

    @property
    def remark(self) -> str:
        """How far the running schedule is from the best without faults; empty where that is little."""
        if times_of(self.whole, self.whole_bound) <= 1 + LITTLE:
            return ""
        running, repaired = (times_of(time, self.whole_bound) for time in (self.whole, self.repaired))
        least = format_time(self.whole_bound)
        return (
            f"{format_size(self.size)}: without the faults no schedule takes less than {least}: "
            f"{self.running} takes {running:.3f} times that, and with the faults the repaired one {repaired:.3f} times"
        )

    @property
    def cost(self) -> float | None:
        """How many times its time without faults the running schedule takes."""
        return None if self.faulted is None else self.faulted / self.whole

    @property
    def repaired_cost(self) -> float:
        """How many times that the repaired schedule takes."""
        return self.repaired / self.whole

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        return {
            "size_B": self.size, "running": self.running, "whole_s": self.whole, "faulted_s": self.faulted,
            "faults_cost": self.cost, "repaired_s": self.repaired, "repaired_cost": self.repaired_cost,
            "bound_s": self.bound, "whole_bound_s": self.whole_bound,
        }  # fmt: skip


@dataclass(slots=True, repr=False)
class Synthesis(Shown):
    """What was found for an operation on a network.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    operation : str
        What.
    certificate : Certificate or None
        How fast it can be at best; None without an exact one.
    notes : list of Remark
        What was left out, or is not proved.
    candidates : dict
        Candidates of each size, the fastest first; estimates after all that are simulated.
    bounds : dict
        Lower bound of each size, s.
    faults : list of CostOfFaults
        Costs of the network's faults, by size; none without faults.
    """

    network: Network
    operation: str
    certificate: Certificate | None
    notes: list[Remark] = field(default_factory=list)
    candidates: dict[int, list[TimedSchedule]] = field(default_factory=dict)
    bounds: dict[int, float] = field(default_factory=dict)
    faults: list[CostOfFaults] = field(default_factory=list)

    def __repr__(self) -> str:
        best = [f"{format_size(size)} {self.best(size).method} {format_time(self.best(size).time)}, "
                f"{self.times_bound(size):.3f} times the bound" for size in self.candidates]  # fmt: skip
        return f"Synthesis({self.operation} on {self.network.name}: {first_of(best)})"

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return next(tried[0].prepared.schedule.n_ranks for tried in self.candidates.values())

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """How the schedules work, how fast any can be, and what was left out, is not proved or costs nothing."""
        sizes = list(self.candidates)
        how = [self._how(size) for size in sizes]
        proof = self.sentence if self.certificate is None else f"{self.sentence}; {self.certificate.sentence}"
        return (Remark("proof", proof, needed=True), *as_remarks(how, "method"), *self.notes)

    @property
    def sentence(self) -> str:
        """Whether schedules are optimal at these sizes, or how far from the lower bound at most, in one sentence."""
        gaps = [self.times_bound(size) - 1.0 if self.bounds[size] else math.inf for size in self.candidates]
        n_optimal = sum(
            gap <= ROUNDING and self.best(size).result is not None  # not an estimate
            for size, gap in zip(self.candidates, gaps, strict=True)
        )
        if n_optimal == len(gaps):
            return f"{self.operation}: optimal: the time equals the lower bound{' at every size' * (len(gaps) > 1)}"
        if not math.isfinite(max(gaps)):
            return f"{self.operation}: not proven optimal: there is no lower bound to compare with"
        percent = {size: math.ceil(gap * 1000) / 10 for size, gap in zip(self.candidates, gaps, strict=True)}
        near, far = min(percent, key=percent.__getitem__), max(percent, key=percent.__getitem__)
        within = f"{percent[far]:g} % of the lower bound"
        if percent[near] != percent[far]:
            within = f"{percent[near]:g} % ({format_size(near)}) to {percent[far]:g} % ({format_size(far)})"
            within += " of the lower bound"
        here = "these sizes" if len(gaps) > 1 else "this size"
        proven = f"proven optimal at {n_optimal} of {len(gaps)} sizes" if n_optimal else f"not proven optimal at {here}"
        return f"{self.operation}: within {within}; {proven}"

    def _how(self, size: int) -> str:
        """Describe how the best schedule of a size works, and what the best of another kind takes."""
        best = self.best(size)
        how = f"{best.method} of height {best.height} in {best.pieces} pieces" if best.height else best.method
        others = [
            candidate for candidate in self.candidates[size] if candidate.method.split()[0] != best.method.split()[0]
        ]
        then = f"; {others[0].method} takes {others[0].time / best.time:.3f} times that" if others else ""
        return f"{format_size(size)}: {how}{then}"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each size, as a data frame of pandas or polars."""
        return frame_of(({k: v for k, v in self.row(size).items() if k not in ("certificate", "tried")}
                         for size in self.candidates), library)  # fmt: skip

    def best(self, size: int) -> TimedSchedule:
        """Return the fastest schedule of a size."""
        return self.candidates[size][0]

    def times_bound(self, size: int) -> float:
        """Return how many times the bound the fastest schedule of a size takes; 1 where both are nothing."""
        return times_of(self.best(size).time, self.bounds[size])

    def row(self, size: int) -> dict[str, Any]:
        """Return the JSON row of a size."""
        best = self.best(size)
        return {
            "size_B": size,
            "operation": self.operation,
            "chosen": best.method,
            "time_s": best.time,
            "bound_s": self.bounds[size],
            "times_bound": self.times_bound(size),
            "simulated": best.result is not None,
            "pieces": best.pieces,
            "height": best.height,
            "n_messages": best.prepared.schedule.n_transfers,
            "certificate": None if self.certificate is None else self.certificate.row(),
            "tried": [
                {"method": candidate.method, "time_s": candidate.time, "simulated": candidate.result is not None}
                for candidate in self.candidates[size]
            ],
        }

    def ranges(self) -> list[MethodRange]:
        """Return which method is chosen from which size to which: borders are geometric middles of sizes tried."""
        sizes, ranges = sorted(self.candidates), list[MethodRange]()
        low = sizes[0]
        for size, after in zip(sizes, [*sizes[1:], 0], strict=True):
            if not after or self.best(size).method != self.best(after).method:
                high = max(size, math.isqrt(size * after)) if after else size
                first = next(one for one in sizes if one >= low)
                ranges.append(MethodRange(low, high, tuple(self.candidates[first])))
                low = high + 1
        return ranges


@dataclass(frozen=True, slots=True)
class MethodRange:
    """Sizes at which one method is chosen.

    Parameters
    ----------
    low, high : int, bytes
        Both included.
    candidates : tuple of TimedSchedule
        Those of the smallest size in it that was tried, the fastest first.
    """

    low: int
    high: int
    candidates: tuple[TimedSchedule, ...]

    @property
    def method(self) -> str:
        """Which one is chosen."""
        return self.candidates[0].method


class Deadline:
    """A limit of time, for work that keeps what it has.

    Parameters
    ----------
    seconds : float, optional
        None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() > self.end


def synthesize(
    operation: str,
    network: Network,
    sizes: Sequence[int],
    *,
    ranks: ArrayLike | None = None,
    root: int = 0,
    time_limit: float | None = None,
    max_messages: int = MAX_MESSAGES,
    textbook: bool = True,
    report: Report | None = None,
) -> Synthesis:
    """Make schedules for an operation, and keep the fastest for each size.

    Parameters
    ----------
    operation : str
        Name of the operation.
    network : Network
        Network that the operation runs on.
    sizes : sequence of int, bytes
        Sizes to make schedules for.
    ranks : int[n_ranks], optional
        Node of each rank; by default the endpoints.
    root : int
        Root of a rooted operation.
    time_limit : float, s, optional
        Time after which nothing new is tried; there is always at least one schedule.
    max_messages : int
        Longer schedules are not tried.
    textbook : bool
        Whether registered collectives are tried too.
    report : callable, optional
        Called with what is being done, how much is done, and of how much.

    Raises
    ------
    InputError
        If ranks cannot reach each other, two share a node, nothing is known for the operation, or SciPy is missing.
    """
    of_extra("scipy")
    nodes = np.asarray(network.endpoints if ranks is None else ranks, np.int32)
    maker = Maker(operation, network, nodes, root, max_messages, report)
    synthesis = Synthesis(network, operation, maker.certificate, maker.notes)
    deadline = Deadline(time_limit)
    try:
        for size in sizes:
            synthesis.bounds[size] = maker.bound(size)
            tried: list[TimedSchedule] = []
            synthesis.candidates[size] = tried
            for candidate in maker.candidates(size, textbook=textbook):
                tried.append(candidate)
                tried.sort(key=lambda one: one.rank)
                if deadline.over:
                    break
            if not tried:
                raise InputError(f"{network.name}: no schedule for {operation} can be made here")
            if deadline.over and size != sizes[-1]:
                text = f"time limit: sizes above {size} bytes were not tried"
                synthesis.notes.append(Remark("cut-off", text, needed=True))
                break
    except KeyboardInterrupt:
        if not any(synthesis.candidates.values()):
            raise
        synthesis.notes.append(Remark("cut-off", "interrupted: the best so far", needed=True))
    synthesis.candidates = {size: tried for size, tried in synthesis.candidates.items() if tried}
    return synthesis
