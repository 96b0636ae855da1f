"""Causes of measured rows: which rows are asked about, and the prediction that they stand beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation
from commsim.diagnosis.causes.explain import RankedCause, rank_causes
from commsim.diagnosis.causes.ground import ground_of
from commsim.diagnosis.causes.rows import Rows
from commsim.diagnosis.errors_of_plan import errors_of_plan
from commsim.formats.measurement import Measurement
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.prediction.plans.dense import Plan

# Rows of a table that causes are asked about: more say little that these do not.
MOST_ROWS = 24
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
    evidence : mapping of str to float, optional
        As in :func:`~commsim.diagnosis.causes.explain.rank_causes`.

    Returns
    -------
    tuple of RankedCause
        The most likely first; empty where the model has no closed form, or there is no row.
    """
    if not isinstance(plan, NcclPlan) or plan.launch.rccl is not None or plan.launch.known_site is None:
        return ()
    n_ranks = plan.schedule.n_ranks
    pairs = [_thinned(slow), _thinned(healthy)]
    sizes = [size for some in pairs for size, _ in some]
    vague = max(sizes, default=LARGEST)
    factor = known_operation(plan.schedule.operation).busbw_factor(n_ranks)
    rows = [
        (size, time, is_slow, False) for some, is_slow in zip(pairs, (True, False), strict=True) for size, time in some
    ]
    for some, is_slow in zip(numbers, (True, False), strict=True):
        rows += [(vague, vague * factor / rate, is_slow, True) for rate in some]
    if not any(is_slow for _, _, is_slow, _ in rows):
        return ()
    columns = [np.array(column) for column in zip(*sorted(rows, key=lambda row: row[0]), strict=True)]
    table = Rows(columns[0].astype(float), columns[1].astype(float), columns[2].astype(bool), columns[3].astype(bool))
    ground = ground_of(plan.launch, n_ranks)
    try:
        closed = ground.times(table.sizes.tolist())
        known = predicted or {}
        more = np.array([known.get(size, time) / time for size, time in zip(table.sizes, closed, strict=True)])
        return tuple(rank_causes(ground, table, errors_of_plan(plan), more, evidence))
    except InputError:  # NCCL has no channel there, or costs are not known: nothing can be injected
        return ()


def _thinned(rows: Iterable[Measurement]) -> list[tuple[float, float]]:
    """Return sizes and times of rows that have both, at most ``MOST_ROWS`` spread over all."""
    every = sorted((row.size, row.time) for row in rows if row.size > 0 and row.time > 0)
    kept = sorted({round(i) for i in np.linspace(0, len(every) - 1, min(len(every), MOST_ROWS))})
    return [every[i] for i in kept]
