"""Bus bandwidths without a size, such as a sweep's average: what the model expects, and which causes give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import format_size
from commsim.prediction.build import plan_collective
from commsim.prediction.collective_names import spelled_out
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.real.comparison.healthy_rows import csv_rows, diagnosed, healthy_rows, numbers_of

# Size at which the expected rate is said: the largest of usual sweeps.
EXPECTED_AT = 2.0**33


@dataclass(frozen=True, slots=True)
class ComparedNumbers:
    """Numbers beside what is expected.

    Parameters
    ----------
    measured, healthy : tuple of float, bytes/s
        Bus bandwidths.
    expected : float, bytes/s
        Predicted bus bandwidth of a large call.
    line : str
        The two in words.
    diagnosis : Diagnosis
        Causes.
    """

    measured: tuple[float, ...]
    healthy: tuple[float, ...]
    expected: float
    line: str
    diagnosis: Any


def compare_numbers(
    network: str | Network,
    collective: str | None,
    operation: str | None,
    *,
    rates: Sequence[float] = (),
    path: str | None = None,
    healthy: str | None = None,
    n_ranks: int | None = None,
    other_gpus: bool = False,
    **options: Any,
) -> ComparedNumbers:
    """Find the causes of bus bandwidths without a size.

    Parameters
    ----------
    network, collective
        Same as in :func:`commsim.prediction.read.scenario_of`.
    operation : str or None
        Operation, where no collective says it.
    rates : sequence of float, bytes/s
        Bus bandwidths that were measured.
    path, healthy : str, optional
        CSV with such numbers; file of healthy machines.
    n_ranks : int, optional
        Number of ranks. Default: all of the topology.
    other_gpus : bool
        Whether GPUs that the files name may be of another generation than the machines'.
    **options
        Further parameters of :func:`commsim.prediction.read.scenario_of`.

    Raises
    ------
    InputError
        If there is no number, a file is of other machines, or the model knows no causes on such machines.
    """
    if collective is not None:
        collective = spelled_out(collective, operation)
    elif operation is None:
        raise InputError("a bus bandwidth needs its operation, such as --operation all_reduce")
    scenario = scenario_of(collective, network, operation=operation if collective is None else None,
                           n_ranks=n_ranks, **options)  # fmt: skip
    plan = plan_collective(scenario)
    slow, good = numbers_of(csv_rows(path))
    slow = [*rates, *slow]
    reference = []
    if healthy or path:
        reference = [*healthy_rows(path or "", healthy, plan.schedule.operation, plan.schedule.n_ranks).rows]
    if healthy:
        good += [rate for some in numbers_of(csv_rows(healthy)) for rate in some]
    if not slow:
        raise InputError(f"{path}: has no bus bandwidth of the machines that are asked about")
    found = diagnosed(
        plan, [], reference, numbers=(slow, good), scenario=scenario, logs=(path, healthy), other_gpus=other_gpus
    )
    if found is None:
        where = f"{scenario.name} on {scenario.network.name}"
        raise InputError(f"no causes are known of {where}: nothing can be injected there")
    (result,) = solve(scenario, [EXPECTED_AT], plan=plan).results
    shown = ", ".join(f"{rate / 1e9:.4g}" for rate in slow)
    beside = f", of healthy machines {', '.join(f'{rate / 1e9:.4g}' for rate in good)}" if good else ""
    line = f"busbw {shown} GB/s{beside}; predicted {result.busbw / 1e9:.4g} GB/s at {format_size(EXPECTED_AT)}"
    return ComparedNumbers(tuple(slow), tuple(good), result.busbw, line, found)
