"""Turn the times of single steps into a network: hosts on a common memory or cable, and curves of what a message costs.

No collective is ever fitted. Steps are timed pass by pass, so that what disturbs the machine for a moment, or makes it
slower for a minute, does not spoil all runs of one size; who times something else in the same minutes may do so between
the passes.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.curves import Curve, Curves
from commsim.core.errors import BackendError, InputError
from commsim.core.extras import needs
from commsim.core.network import Network, both_ways, kinds, node_names

from .busy import QUIET, Busy, quiet_ones
from .steps import (
    COARSE,
    SHORT_TIMES,
    SIZES,
    TRAIN_LENGTHS,
    WALKED,
    TimedStep,
    start_sets,
    time_step,
    train_sizes,
    usual_steps,
    walks,
)
from .transport import RankTransport

PASSES = 10
# Relative width of the middle 80 % of the times of one step, in the middle of all steps, from which on they are marked.
WIDE = 1.0
# A step that takes so many times as long as the same with the next larger messages was disturbed: noise of a quiet
# machine is a third. A step that is timed once, or disturbed in every pass, does not show it by its spread.
FALL = 2.0
# A difference of two times is at least this part of the larger one: noise must not make it nothing.
LEAST_PART = 0.05

Floats = NDArray[np.float64]


class Calibration:
    """Times of single steps, gathered pass by pass; all ranks do the same and hold the same numbers.

    Parameters
    ----------
    transport : RankTransport
        Transport with at least 2 ranks.
    steps : sequence of TimedStep, optional
        Steps that are timed: by default the usual ones.
    paired : bool
        Whether what is predicted is timed between the passes. All passes then count, also those that others disturb,
        because these disturb both alike.

    Raises
    ------
    BackendError
        If there is only one rank, which has no peer.
    """

    def __init__(
        self, transport: RankTransport, steps: Sequence[TimedStep] | None = None, *, paired: bool = False
    ) -> None:
        if transport.size < 2:
            raise BackendError(
                "calibration sends messages, so it needs at least 2 ranks: start it with mpirun -n 2 ..."
            )
        self.transport, self._paired = transport, paired
        self._steps = usual_steps() if steps is None else list(steps)
        self._passes: list[dict[TimedStep, list[float]]] = []
        self.busy: list[float] = []

    def run_pass(self, done: Callable[[float], None] = lambda _: None) -> None:
        """Time every step once, and those that are short several times; `done` is told the part of the pass."""
        n_short = sum(step.is_short for step in self._steps)
        n_timed, of = 0, len(self._steps) + (SHORT_TIMES - 1) * n_short
        meter, times = Busy(self.transport), dict[TimedStep, list[float]]()
        for again in range(SHORT_TIMES):
            for step in self._steps:
                if again == 0 or step.is_short:
                    times.setdefault(step, []).append(time_step(self.transport, step))
                    n_timed += 1
                    done(n_timed / of)
        self._passes.append(times)
        self.busy.append(meter.share())

    @property
    def mark_of_steps(self) -> str:
        """Text that is another one of other steps."""
        return hashlib.sha256(repr(self._steps).encode()).hexdigest()[:16]

    @property
    def n_timed(self) -> int:
        """Times of a pass."""
        return sum(SHORT_TIMES if step.is_short else 1 for step in self._steps)

    def timed(self) -> Floats:
        """Return the times of all passes, float64[n_passes, n_timed], s."""
        rows = [[t for step in self._steps for t in times[step]] for times in self._passes]
        return np.array(rows, np.float64).reshape(len(rows), self.n_timed)

    def take_passes(self, timed: Floats, busy: Sequence[float]) -> None:
        """Take over passes that were made before.

        Parameters
        ----------
        timed : float64[n_passes, n_timed], s
            What :meth:`timed` returned.
        busy : sequence of float
            Part of the cores that others used in each.
        """
        ends = np.cumsum([SHORT_TIMES if step.is_short else 1 for step in self._steps])
        for row, share in zip(timed, busy, strict=True):
            parts = np.split(row, ends[:-1])
            self._passes.append({step: part.tolist() for step, part in zip(self._steps, parts, strict=True)})
            self.busy.append(float(share))

    def run(
        self,
        passes: int = PASSES,
        before_pass: Callable[[], None] = lambda: None,
        done: Callable[[float], None] = lambda _: None,
        after_pass: Callable[[], None] = lambda: None,
    ) -> None:
        """Make passes, and as many again as were disturbed, at most twice as many; those taken over count.

        All ranks call `before_pass` and `after_pass`, and `done` as :meth:`run_pass` does.
        """
        while len(self.busy) < 2 * passes and sum(share <= QUIET for share in self.busy) < passes:
            if len(self.busy) >= passes and not any(share <= QUIET for share in self.busy):
                return  # a machine that is never quiet will not become so
            before_pass()
            self.run_pass(done)
            after_pass()

    def network(self) -> Network:
        """Describe the machine by what was timed in the quiet passes; marked where most were not."""
        if self._paired:
            return self._described(_pooled(self._passes), "")
        times = _pooled([self._passes[i] for i in quiet_ones(self.busy)])
        spread = float(np.median([np.subtract(*np.percentile(t, (90, 10))) / np.median(t) for t in times.values()]))
        enough = 2 * sum(share <= QUIET for share in self.busy) >= len(self.busy)
        marks = [] if enough else [f"other processes took {np.median(self.busy):.0%} of the cores"]
        if spread > WIDE:
            marks.append(f"times spread by {spread:.0%}")
        fall, sizes = steepest_fall({step: float(np.median(of_step)) for step, of_step in times.items()})
        if fall > FALL:
            marks.append(f"messages of {sizes[0]} bytes took {fall:.3g} times as long as those of {sizes[1]}")
        return self._described(times, "; ".join(marks))

    def _described(self, times: dict[TimedStep, Floats], marks: str) -> Network:
        curves = Curves(tuple(_curves_of(times)), machine_name(self.transport), marks)
        return as_network(curves, self.transport.size, f"{self.transport.size} ranks of {self.transport.name}")


def steepest_fall(times: Mapping[TimedStep, float]) -> tuple[float, tuple[int, int]]:
    """Return how many times as long a step takes, at most, as the same with the next larger messages, and both sizes.

    Parameters
    ----------
    times : mapping of TimedStep to float, s
        Times of steps; those are compared that differ only in the size of messages.
    """
    cases = defaultdict[tuple[object, ...], dict[int, float]](dict)
    for step, seconds in times.items():
        cases[step.ops, step.two_way, step.working_set, step.length][step.size] = seconds
    falls = [(case[low] / case[high], (low, high)) for case in cases.values() for low, high in pairwise(sorted(case))]
    return max(falls, default=(0.0, (0, 0)))


def as_network(curves: Curves, n_ranks: int, name: str) -> Network:
    """Network of `n_ranks` hosts around what they share.

    The curves say how long a message keeps the ports of its ends, and what all ranks get at once is in them.

    Parameters
    ----------
    curves : Curves
        Curves of messages.
    n_ranks : int
        Hosts.
    name : str
        Name of the network.
    """
    links = both_ways(np.arange(n_ranks), np.full(n_ranks, n_ranks))
    least = min(float((c.seconds - c.occupancy).min()) for c in curves.curves if c.step in ("copy", "reduce"))
    names = (*node_names(h=n_ranks), "shared")
    return Network(
        name, names, kinds(n_ranks, 1), *links, curves.bandwidth, least / 2, routing="shortest", curves=curves
    )


def machine_name(transport: RankTransport) -> str:
    """Name what a calibration is of: processor, cores, ranks and the library that carries messages."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux, or a processor that has no such line
    carrier = f"{transport.name} ({transport.library})" if transport.library else transport.name
    return f"{model}, {os.cpu_count()} cores, {transport.size} ranks of {carrier}"


def _pooled(passes: Sequence[dict[TimedStep, list[float]]]) -> dict[TimedStep, Floats]:
    return {step: np.array([t for times in passes for t in times[step]]) for step in passes[0]}


def _curves_of(times: dict[TimedStep, Floats]) -> list[Curve]:
    """Curves of every case that was timed, from the medians of all runs."""
    start = _start_curve(times)
    curves = [start]
    for working_set in sorted({step.working_set for step in times if step.size > SIZES[0]}):
        if curve := _local_curve(times, working_set, start):
            curves.append(curve)
        for two_way in (False, True):
            for op in ("copy", "reduce"):
                for relayed in (False, True):
                    chain = ("reduce", op) if relayed else (op,)
                    sizes = [
                        s
                        for s in (COARSE if working_set else SIZES)
                        if TimedStep(chain, two_way, s, working_set) in times
                    ]
                    if len(sizes) > 1:
                        curves.append(_step_curve(times, chain, two_way, working_set, sizes, start))
    return curves


def _start_curve(times: dict[TimedStep, Floats]) -> Curve:
    """Return what a run takes before its first message: an empty run, and what memory that was just written adds."""
    empty = np.median(times[TimedStep((), False, SIZES[0])])
    sets = {memory: times.get(TimedStep(("copy",), True, SIZES[0], memory)) for memory in start_sets()}
    first = np.array([np.median(of_set) for of_set in sets.values() if of_set is not None])
    seconds = np.maximum(empty + first - first[0], LEAST_PART * empty)
    timed = np.array([memory for memory, of_set in sets.items() if of_set is not None], np.float64)
    return Curve("start", False, False, 0.0, timed, rising(seconds))


def _local_curve(times: dict[TimedStep, Floats], working_set: int, start: Curve) -> Curve | None:
    steps = [step for step in times if step.ops == ("local",) and step.working_set == working_set]
    if len(steps) < 2:
        return None
    whole = np.array([float(np.median(times[step])) for step in steps])
    before = np.array([start.at(max(working_set, 2 * step.size), "seconds") for step in steps])
    seconds = rising(np.maximum(whole - before, LEAST_PART * whole))
    sizes, runs = [step.size for step in steps], [times[step] for step in steps]
    return _with_spread("local", False, False, working_set, sizes, seconds, None, runs)


def _step_curve(
    times: dict[TimedStep, Floats],
    chain: tuple[str, ...],
    two_way: bool,
    working_set: int,
    sizes: list[int],
    start: Curve,
) -> Curve:
    """Of one case: a first hop without what comes before it, or a second one without the first."""
    steps = [TimedStep(chain, two_way, size, working_set) for size in sizes]
    whole = np.array([float(np.median(times[step])) for step in steps])
    if len(chain) > 1:
        before = np.array([float(np.median(times[TimedStep(chain[:1], two_way, size, working_set)])) for size in sizes])
    else:
        before = np.array([start.at(max(working_set, size * (1 + two_way)), "seconds") for size in sizes])
    seconds = rising(np.maximum(whole - before, LEAST_PART * whole))
    gaps, occupancy = _gaps(times, chain[-1], two_way, working_set, start), seconds
    if gaps:  # without trains it is not known when the next message may begin: when this one has ended
        known = np.array(sorted(gaps), np.float64)
        gap = rising(np.array([gaps[int(s)] for s in known]))
        occupancy = np.exp(np.interp(np.log(sizes), np.log(known), np.log(gap)))
        # Beyond the largest train, and where a case takes longer than those of trains, what it keeps of ports stays.
        occupancy[np.array(sizes) > known[-1]] = np.inf
        occupancy = np.minimum(occupancy, seconds)
    return _with_spread(chain[-1], two_way, len(chain) > 1, working_set, sizes, seconds, occupancy,
                        [times[step] for step in steps])  # fmt: skip


def _gaps(times: dict[TimedStep, Floats], op: str, two_way: bool, working_set: int, start: Curve) -> dict[int, float]:
    """Find what each further message of a train adds, by size, seconds."""
    gaps = {}
    if working_set:
        for size in WALKED:
            step = next(w for w in walks(size, working_set) if w.ops == (op,) and w.two_way == two_way)
            if step in times:
                whole = float(np.median(times[step])) - start.at(working_set, "seconds")
                gaps[size] = max(whole, LEAST_PART * float(np.median(times[step]))) / step.length
        return gaps
    few, many = TRAIN_LENGTHS
    for size in [size for size in train_sizes() if TimedStep((op,), two_way, size, 0, many) in times]:
        short, long = (float(np.median(times[TimedStep((op,), two_way, size, 0, k)])) for k in (few, many))
        gaps[size] = max(long - short, LEAST_PART * long) / (many - few)
    return gaps


def _with_spread(
    step: str,
    two_way: bool,
    relayed: bool,
    working_set: int,
    sizes: Sequence[int],
    seconds: Floats,
    occupancy: Floats | None,
    runs: Sequence[Floats],
) -> Curve:
    """Return the curve, with the middle 80 % of the runs around it in proportion."""
    seconds = rising(seconds)
    occupancy = None if occupancy is None else np.minimum(rising(occupancy), seconds)
    low, high = (np.array([np.percentile(t, q) / np.median(t) for t in runs]) * seconds for q in (10, 90))
    return Curve(step, two_way, relayed, working_set, np.array(sizes, np.float64), seconds, occupancy, low, high)


def rising(values: Floats) -> Floats:
    """Nearest values that do not descend, by least squares of logarithms.

    A larger message takes no less time, so that where measured times descend noise has made them.

    Raises
    ------
    InputError
        If SciPy is not installed.
    """
    try:
        from scipy.optimize import isotonic_regression
    except ImportError:
        raise InputError(needs("calibration needs SciPy", "opt")) from None
    return np.asarray(np.maximum.accumulate(np.exp(isotonic_regression(np.log(values)).x)))
