"""Causes of measured rows: which rows are asked about, and the prediction that they stand beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation
from commsim.diagnosis.causes.beforehand import shares_of
from commsim.diagnosis.causes.explain import RankedCause, rank_causes, rank_faults
from commsim.diagnosis.causes.fault import Fault
from commsim.diagnosis.causes.ground import ground_of
from commsim.diagnosis.causes.labels import CAUSES
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.causes.simulated import predict_simulated_faults
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.formats.measurement import Measurement
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario

# Rows of a table that causes are asked about, since more say little that these do not; each is a simulation of every
# fault where there is no closed form.
MOST_ROWS, MOST_SIMULATED = 24, 6
# Size that a number without one is taken to be of: the largest of usual sweeps, where the rate is that of large sizes.
LARGEST = 2.0**33


def explain_rows(
    plan: Plan,
    slow: Sequence[Measurement],
    healthy: Sequence[Measurement] = (),
    *,
    predicted: Mapping[float, float] | None = None,
    numbers: tuple[Sequence[float], Sequence[float]] = ((), ()),
    evidence: Mapping[str, float] | None = None,
    stated: Mapping[str, float] | None = None,
    scenario: Scenario | None = None,
    over: Callable[[Sequence[Fault]], Iterable[Fault]] = iter,
) -> tuple[RankedCause, ...]:
    """Rank the causes of slow rows, with healthy rows of the same machines where there are some.

    Parameters
    ----------
    plan : Plan
        Plan of the collective that was measured.
    slow, healthy : sequence of Measurement
        Rows of the operation of the plan.
    predicted : mapping of float to float, s
        Times of the whole prediction by size in bytes, where they are known; others are those of the closed form.
    numbers : pair of sequences of float, bytes/s
        Bus bandwidths whose size is not known, of slow and of healthy runs.
    evidence, stated : mapping of str to float, optional
        As in :func:`~commsim.diagnosis.causes.explain.rank_causes`.
    scenario : Scenario, optional
        Question of the plan, where faults may be simulated. Default: only those of a closed form are tried.
    over : callable
        Wrapper of the faults that are simulated, which shows progress.

    Returns
    -------
    tuple of RankedCause
        The most likely first; empty where the model has no closed form and no scenario, or there is no row.
    """
    closed = has_closed_form(plan)
    if not closed and scenario is None:
        return ()
    table = _table_of(plan, slow, healthy, numbers, MOST_ROWS if closed else MOST_SIMULATED)
    if table is None:
        return ()
    try:
        if closed:
            return tuple(_by_closed_form(plan, table, predicted or {}, evidence, stated))
        assert scenario is not None
        every = predict_simulated_faults(scenario, np.unique(table.sizes).tolist(), over)
    except InputError:  # NCCL has no channel there, or costs are not known: nothing can be injected
        return ()
    weights = {one.label: CAUSES[one.label].prior for one in every[1:]}
    before = shares_of(weights, has_reference=table.shares_sizes)
    return tuple(rank_faults(every, before, table, errors_of_plan(plan), evidence=evidence))


def has_closed_form(plan: Plan) -> bool:
    """Whether faults of a plan are injected into the closed form of NCCL's times.

    Parameters
    ----------
    plan : Plan
        Plan of a collective.
    """
    return isinstance(plan, NcclPlan) and plan.launch.rccl is None and plan.launch.known_site is not None


def _by_closed_form(
    plan: Plan, table: Rows, predicted: Mapping[float, float], evidence: Mapping[str, float] | None,
    stated: Mapping[str, float] | None,
) -> list[RankedCause]:  # fmt: skip
    assert isinstance(plan, NcclPlan)
    ground = ground_of(plan.launch, plan.schedule.n_ranks)
    closed = ground.times(table.sizes.tolist())
    more = np.array([predicted.get(size, time) / time for size, time in zip(table.sizes, closed, strict=True)])
    return rank_causes(ground, table, errors_of_plan(plan), more, evidence, stated=stated)


def _table_of(
    plan: Plan, slow: Sequence[Measurement], healthy: Sequence[Measurement],
    numbers: tuple[Sequence[float], Sequence[float]], most: int,
) -> Rows | None:  # fmt: skip
    """Return the rows in the order of sizes, at most so many of each table; None without a slow one."""
    pairs = [_thinned(slow, most), _thinned(healthy, most)]
    vague = max((size for some in pairs for size, _ in some), default=LARGEST)
    factor = known_operation(plan.schedule.operation).busbw_factor(plan.schedule.n_ranks)
    rows = [
        (size, time, is_slow, False) for some, is_slow in zip(pairs, (True, False), strict=True) for size, time in some
    ]
    for some, is_slow in zip(numbers, (True, False), strict=True):
        rows += [(vague, vague * factor / rate, is_slow, True) for rate in some]
    if not any(is_slow for _, _, is_slow, _ in rows):
        return None
    columns = [np.array(column) for column in zip(*sorted(rows, key=lambda row: row[0]), strict=True)]
    return Rows(columns[0].astype(float), columns[1].astype(float), columns[2].astype(bool), columns[3].astype(bool))


def _thinned(rows: Iterable[Measurement], most: int) -> list[tuple[float, float]]:
    """Return sizes and times of rows that have both, at most so many spread over all."""
    every = sorted((row.size, row.time) for row in rows if row.size > 0 and row.time > 0)
    kept = sorted({round(i) for i in np.linspace(0, len(every) - 1, min(len(every), most))})
    return [every[i] for i in kept]
