"""What may have made measured times longer than predicted: each cause is put into the model before it is named."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.faults.failures import remove_cables
from commsim.core.network import Network
from commsim.core.network_queries import partners
from commsim.core.units import format_time
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import Solution, solve
from commsim.real.comparison.pairs import Pair
from commsim.real.comparison.slow_sizes import LONG

# Parts of the links' rate that are tried, and algorithms of NCCL.
PARTS = (2, 4, 8)
ALGORITHMS = ("ring", "tree")
# Sizes that a cause is tried at.
MOST_SIZES = 6
# Latency at which the model is asked how much a message's latency counts.
PROBE = 1e-5
__all__ = ["explain_cause"]


def explain_cause(
    solution: Solution, pairs: Sequence[Pair], over: Callable[[Sequence[float]], Iterable[float]] = iter
) -> str:
    """Name the cause with which the model gives the measured time at every size, or say which were tried in vain.

    A cause fits where no size differs by more than ``LONG``, and the largest difference is at most half of that without
    a cause. The patterns over sizes tell causes apart: less bandwidth does nothing to small sizes, latency to large.

    Parameters
    ----------
    solution : Solution
        Prediction without a cause.
    pairs : sequence of Pair
        Predicted beside measured times of its operation.
    over : callable
        Wrapper of what is tried that shows progress.
    """
    rows = sorted((p for p in pairs if p.measured.time and p.predicted > 0), key=lambda pair: pair.measured.size)
    some = sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(len(rows), MOST_SIZES))})
    sizes = [rows[i].measured.size for i in some]
    measured = np.array([rows[i].measured.time for i in some])
    predicted = np.array([rows[i].predicted for i in some])
    without = _farthest(measured, predicted)
    tried: dict[str, float] = {}
    changed = [*_changed(solution)]
    for i in over(range(len(changed) + 1)):
        name, times = "", predicted
        if i == len(changed):
            name, times = _latency(solution, sizes, measured, predicted)
        else:
            name, scenario = changed[int(i)]
            times = _times(scenario, sizes, predicted)
        if np.ptp(times - predicted) > 0:  # what the model does not see is not tried
            tried[name] = _farthest(measured, times)
    if (later := measured[0] - predicted[0]) > 0:
        tried[f"{format_time(later)} more for each call"] = _farthest(measured, predicted + later)
    fits = sorted((far, name) for name, far in tried.items() if far <= min(math.log(LONG), without / 2))
    if fits:
        names = " or ".join(f"{name} (within {math.expm1(far):.0%})" for far, name in fits)
        return f"cause that gives these times in the model: {names}"
    return f"cause: none that was tried in the model gives these times: {', '.join(tried)}"


def _farthest(measured: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    return float(np.abs(np.log(measured / predicted)).max())


def _times(scenario: Scenario, sizes: Sequence[float], otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Predict the sizes; where the changed network cannot run the collective, return the other times."""
    try:
        return np.array([result.time for result in solve(scenario, sizes).results])
    except InputError:
        return otherwise


def _outside(network: Network) -> NDArray[np.bool_]:
    """Find the links that are not inside a machine: bool[n_links]."""
    src, dst = network.machine[network.src], network.machine[network.dst]
    outside: NDArray[np.bool_] = (src != dst) | (src < 0)
    return outside


def _changed(solution: Solution) -> Iterator[tuple[str, Scenario]]:
    """Yield causes with the scenario that has them: slower links, fewer NICs, an algorithm that NCCL was forced to."""
    scenario, network = solution.scenario, solution.scenario.network
    outside = _outside(network)
    for part in PARTS:
        rates = np.where(outside, 1 / part, 1.0) * network.bandwidth
        slower = dataclasses.replace(network, bandwidth=rates, family="")
        yield f"1/{part} of the rate{_between(network)}", dataclasses.replace(scenario, network=slower)
    machine = network.machine[network.src]
    cables = np.flatnonzero(outside & (machine >= 0) & (np.arange(network.n_links) != partners(network)))
    order = cables[np.argsort(machine[cables], kind="stable")]
    number = np.arange(len(order)) - np.searchsorted(machine[order], machine[order])
    if (number % 2).any():
        fewer = remove_cables(network, order[number % 2 == 1])
        yield "half of the NICs", dataclasses.replace(scenario, network=fewer)
    if isinstance(solution.plan, NcclPlan) and ":" not in scenario.name:
        for algorithm in ALGORITHMS:
            forced = scenario.with_collective(f"{scenario.name}:algorithm={algorithm}")
            yield f"NCCL takes {algorithm} at every size", forced


def _between(network: Network) -> str:
    return " between machines" if (network.machine >= 0).any() else " of links"


def _latency(
    solution: Solution, sizes: Sequence[float], measured: NDArray[np.float64], predicted: NDArray[np.float64]
) -> tuple[str, NDArray[np.float64]]:
    """Return the latency of a link with which the smallest size takes as long as measured, and the times with it."""
    network = solution.scenario.network
    outside = _outside(network)

    def with_more(latency: float, some: Sequence[float]) -> NDArray[np.float64]:
        later = dataclasses.replace(network, latency=network.latency + np.where(outside, latency, 0.0))
        return _times(dataclasses.replace(solution.scenario, network=later), some, predicted[: len(some)])

    per_second = (with_more(PROBE, sizes[:1])[0] - predicted[0]) / PROBE
    if measured[0] <= predicted[0] or per_second <= 0:
        return "", predicted
    more = float((measured[0] - predicted[0]) / per_second)
    return f"{format_time(more)} more latency{_between(network)}", with_more(more, sizes)
