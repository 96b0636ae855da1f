"""A comparison: predicted beside measured times, their errors, and why a bus bandwidth is above the line rate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, parse_bandwidth, si_of
from commsim.core.value import Shown
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement, require_ranks
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.build import plan_collective
from commsim.prediction.collective_names import spelled_out, usual_collective
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve
from commsim.real.comparison.above_line_rate import LineRate, explain_above, line_of_prediction
from commsim.real.comparison.healthy_rows import diagnosed, healthy_rows, require_all_machines
from commsim.real.comparison.pairs import (
    Pair,
    Summary,
    of_one_algorithm,
    one_per_size,
    pair_up,
    predictions_of,
    several_algorithms,
    summarise,
)
from commsim.real.comparison.runs_of_log import LogRows, read_log_rows
from commsim.real.comparison.slow_sizes import common_factor, explain_slow

# How a line rate is called that the user gives.
GIVEN = "the given line rate"
__all__ = ["Comparison", "compare", "compare_files"]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """Predicted beside measured times.

    Parameters
    ----------
    pairs : tuple of Pair
        Pairs, one for each size that has both.
    summary : Summary
        Their errors.
    predictor : str
        Collective and network, or file, of the predictions.
    collective : str
        Collective that was predicted; empty for a file.
    alone : tuple of Measurement
        Measurements without a prediction.
    notes : tuple of Remark
        What was left out, chosen, derived and assumed.
    reasons : tuple of Remark
        Which sizes are slower than predicted, and why the largest bus bandwidth is above the line rate, where it is.
    healthy : tuple of Measurement
        Rows of healthy machines, where they were given.
    diagnosis : Diagnosis or None
        Causes of what was measured, the most likely first; None where nothing is slow, and the model has no closed form
        of the collective: faults are then not simulated.
    faults : tuple of str
        Why the measured run did not go well: wrong results, an error, a log that is cut.
    n_runs : int
        Runs of the same sizes in the measured file; the slowest is compared.
    healthy_runs : int
        Runs in the file of healthy machines.
    """

    pairs: tuple[Pair, ...]
    summary: Summary
    predictor: str = ""
    collective: str = ""
    alone: tuple[Measurement, ...] = ()
    notes: tuple[Remark, ...] = ()
    reasons: tuple[Remark, ...] = ()
    healthy: tuple[Measurement, ...] = ()
    diagnosis: Any = None
    faults: tuple[str, ...] = ()
    n_runs: int = 1
    healthy_runs: int = 1

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What the comparison leaves out, derives, assumes and explains."""
        return tuple(dict.fromkeys((*self.notes, *self.reasons)))

    def __repr__(self) -> str:
        errors = f"median {self.summary.median:.1%}, worst {self.summary.worst:.1%}"
        return f"Comparison({self.pairs[0].measured.operation}, {count_text(len(self.pairs), 'size')}, error: {errors})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each size, as a data frame."""
        return frame_of((pair.row() for pair in self.pairs), library)


def compare(
    path: str,
    network: str | Network,
    collective: str | None = None,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    in_place: bool = False,
    line_rate: float | str | None = None,
    healthy: str | None = None,
    other_gpus: bool = False,
    over: Callable[[Sequence[Any]], Iterable[Any]] = iter,
    **options: Any,
) -> Comparison:
    """Predict what was measured, and set both side by side.

    Parameters
    ----------
    path : str
        File of measurements.
    network, collective
        Same as in :func:`commsim.prediction.read.scenario_of`.
    operation : str, optional
        Operation of the measurements, where the file has several or does not say.
    n_ranks : int, optional
        Number of ranks, where the file does not say it.
    in_place : bool
        Whether the times in place are compared. Default: those out of place.
    line_rate : float, bytes/s, or str, optional
        Rate of a rank's link, to explain a busbw above it. Default: that of the busiest link.
    healthy : str, optional
        File of measurements of healthy machines of the same kind. Default: rows that a CSV calls ``reference``.
    other_gpus : bool
        Whether GPUs that the files name may be of another generation than the machines'.
    over : callable
        Wrapper of the sizes, and of the faults that are simulated, which shows progress.
    **options
        Further parameters of :func:`commsim.prediction.read.scenario_of`.

    Raises
    ------
    InputError
        If the file has no measurement of the operation, or not of one number of ranks or of other GPUs than the network
        has, or something is unknown.
    """
    log = _measured(path, operation, n_ranks, in_place)
    if healthy is not None:
        log = log.named(path)
    measured, notes = log.rows, log.notes
    operations = sorted({row.operation for row in measured if row.size > 0})
    known = operation or (operations[0] if len(operations) == 1 else None)
    if collective is not None:
        collective = spelled_out(collective, known)
    elif known is None:
        raise InputError(f"{path} has {', '.join(operations)}: choose an operation, such as {operations[0]}")
    ranks = {row.n_ranks for row in measured if row.n_ranks is not None}
    if len(ranks) > 1 and n_ranks is None:
        raise InputError(f"{path} has measurements of {sorted(ranks)} ranks: choose a number of ranks")
    scenario = scenario_of(
        collective, network, operation=known if collective is None else None,
        n_ranks=n_ranks or next(iter(ranks), None), **options,
    )  # fmt: skip
    if collective is None and not usual_collective(scenario.network, known or "")[1]:
        notes.append(Remark("usual", f"{scenario.name}: another algorithm can be named"))
    plan = plan_collective(scenario)
    if n_ranks is None:
        require_all_machines(path, plan)
    require_ranks(measured, plan.schedule.n_ranks)
    predicted = plan.schedule.operation
    beside = healthy_rows(path, healthy, predicted, plan.schedule.n_ranks, in_place=in_place)
    reference = beside.rows
    notes += beside.notes
    sizes = sorted({row.size for row in measured if row.operation == predicted and row.size > 0})
    if not sizes:
        theirs = ", ".join(sorted({row.operation for row in measured}))
        raise InputError(f"nothing to compare: {scenario.name} is {predicted}, {path} has {theirs}")
    asked = sorted({*sizes, *(row.size for row in reference)})
    solution = solve(scenario, asked, plan=plan, over=over)
    notes += [*solution.derived, Remark("engine", f"engine {scenario.wish.engine}"), *solution.remarks]
    results = dict(zip([(predicted, size) for size in asked], solution.results, strict=True))
    pairs, alone = pair_up(measured, lambda row: results.get((row.operation, row.size)))
    largest = results[predicted, sizes[-1]]
    if scenario.wish.engine != "flow":
        largest = plan.predict(sizes[-1], engine="flow", seed=scenario.wish.seed)
    line = line_of_prediction(plan, largest)
    if line is not None and line_rate is not None:
        line = dataclasses.replace(
            line, rate=si_of(line_rate, parse_bandwidth, "line rate"), source=GIVEN, load=None, is_given=True
        )
    name = network if isinstance(network, str) else network.name
    comparison = _compared(pairs, alone, f"{scenario.name} on {name}", notes, line)
    chosen = plan.chosen(sizes) if isinstance(plan, NcclPlan) else ""
    reasons = [*([Remark("library-choice", chosen)] if chosen else ()), *comparison.reasons]
    slow = [pair.measured for pair in pairs if pair.measured.operation == predicted]
    times = {size: result.time for (_, size), result in results.items()}
    diagnosis = diagnosed(
        plan, slow, reference, predicted=times, logs=(path, healthy), over=over, other_gpus=other_gpus,
        scenario=scenario if reference or explain_slow(pairs) else None,
    )  # fmt: skip
    return dataclasses.replace(
        comparison, collective=scenario.name, reasons=tuple(reasons), healthy=reference, diagnosis=diagnosis,
        n_runs=log.n_runs, faults=(*log.faults, *beside.faults), healthy_runs=beside.n_runs,
    )  # fmt: skip


def compare_files(
    predicted: str,
    measured: str,
    collective: str | None = None,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    in_place: bool = False,
    line_rate: float | str | None = None,
) -> Comparison:
    """Set the predictions of a file beside measurements.

    Parameters
    ----------
    predicted, measured : str
        Files.
    collective : str, optional
        Algorithm of the predictions, where the file has several.
    operation, n_ranks, in_place, line_rate
        Same as in :func:`compare`; there is no line rate unless it is given.

    Raises
    ------
    InputError
        If a file cannot be read, or the two have nothing in common.
    """
    log = _measured(measured, operation, n_ranks, in_place)
    found, notes = log.rows, log.notes
    lines: list[str] = []
    rows = read_measured(predicted, operation=operation or "", n_ranks=n_ranks, notes=lines)
    notes += as_remarks(lines, "read")
    chosen = of_one_algorithm(rows, collective)
    ours = one_per_size(chosen)
    if len(ours) < sum(row.in_place == ours[0].in_place for row in chosen):
        notes.append(Remark("medians", f"{predicted}: has several predictions of a size; their median is taken"))
    pairs, alone = pair_up(found, predictions_of(ours, found))
    if not pairs:
        raise InputError(f"{predicted} has none of the {len(alone)} sizes of {measured}")
    line = None if line_rate is None else LineRate(si_of(line_rate, parse_bandwidth, "line rate"), GIVEN, is_given=True)
    comparison = _compared(pairs, alone, predicted, notes, line)
    return dataclasses.replace(comparison, faults=log.faults, n_runs=log.n_runs)


def _measured(path: str, operation: str | None, n_ranks: int | None, in_place: bool) -> LogRows:
    """Read measurements, one of each size, and what was left out or merged."""
    log = read_log_rows(path, operation, n_ranks, in_place=in_place)
    for named, names in several_algorithms(log.every).items():
        every = ", ".join(name or "unnamed" for name in names)
        log.notes.append(Remark("medians", f"measured times of {named} are medians over several algorithms: {every}"))
    return log


def _compared(
    pairs: tuple[Pair, ...],
    alone: tuple[Measurement, ...],
    predictor: str,
    notes: Sequence[Remark],
    line: LineRate | None,
) -> Comparison:
    """Return a comparison, with what explains slow sizes, and the largest busbw if that is above the line."""
    fastest = max(pairs, key=lambda pair: pair.measured.busbw or 0.0)
    reasons = () if line is None else explain_above(fastest.measured, line)
    return Comparison(
        pairs,
        summarise(pairs),
        predictor,
        "",
        alone,
        tuple(notes),
        tuple(Remark("explained", text, needed=True) for text in (*_longer(pairs), *reasons)),
    )


def _longer(pairs: Sequence[Pair]) -> list[str]:
    """Say that all sizes of an operation took longer, or shorter, by one factor; of the others, which are slow."""
    by_operation: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_operation.setdefault(pair.measured.operation, []).append(pair)
    factors = {name: factor for name, rows in by_operation.items() if (factor := common_factor(rows)) is not None}
    lines = [
        f"{name if len(by_operation) > 1 else 'all sizes'}: {factor:.3g} times as long as predicted, one common factor"
        for name, factor in factors.items()
    ]
    return [*lines, *explain_slow([pair for pair in pairs if pair.measured.operation not in factors])]
