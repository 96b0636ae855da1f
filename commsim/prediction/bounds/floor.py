"""The check that no answer is faster than physics: bytes over the capacity of cuts, for every engine."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.core.errors import InputError, PhysicsError
from commsim.core.result import Result
from commsim.core.units import format_size, format_time
from commsim.prediction.bounds.crossings import Crossing
from commsim.prediction.bounds.cuts import partition_cuts, usable
from commsim.prediction.bounds.demand import demand_of

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

SLACK = 1e-9
# Engines that take paths one by one: a cut that they did not see is a limit of the engine, and no bug.
ON_PAPER = ("closed-form", "alpha-beta")
__all__ = ["ON_PAPER", "SLACK", "Floor", "floor_of", "uses_more_than_ranks"]


@dataclass(frozen=True, slots=True)
class Floor:
    """The cut that limits an operation on placed ranks.

    Parameters
    ----------
    per_byte : float, s/byte
        Time for each byte of the operation's size.
    crossing : Crossing, optional
        The cut.
    """

    per_byte: float = 0.0
    crossing: Crossing | None = None

    def check(self, result: Result) -> None:
        """Raise if a result is faster than its bytes can cross the cut.

        Raises
        ------
        InputError
            If the engine follows single paths, and does not see the cut.
        PhysicsError
            If a simulation is too fast. This is a bug in commsim.
        """
        least = self.per_byte * result.size
        if result.time >= least * (1 - SLACK) or self.crossing is None:
            return
        text = (
            f"{result.collective}, {format_size(int(result.size))}: engine {result.engine} gives "
            f"{format_time(result.time)}, but {self.crossing.cut().why} takes at least {format_time(least)}"
        )
        if result.engine in ON_PAPER:
            raise InputError(f"{text}; use engine flow")
        raise PhysicsError(text)


def floor_of(plan: Plan, anywhere: bool | None = None) -> Floor:
    """Return the cut that limits what a plan does; none where bytes depend on data, or costs were measured.

    Parameters
    ----------
    plan : Plan
        A collective on a network.
    anywhere : bool, optional
        Whether nodes without ranks may store, add and send on. Default: whether the plan has helpers there.
    """
    schedule, network = plan.schedule, plan.network
    if schedule.n_ranks < 2 or schedule.operation == "custom" or plan.data is not None or network.curves is not None:
        return Floor()
    demand = demand_of(schedule.operation, schedule.n_ranks, schedule.root, schedule.layout)
    if demand.kind == "signals":
        return Floor()
    cuts = partition_cuts(
        usable(network, plan.ranks, uses_more_than_ranks(plan) if anywhere is None else anywhere), demand
    )
    tightest = max(cuts, key=operator.attrgetter("per_byte"), default=None)
    if tightest is None or not np.isfinite(tightest.per_byte):
        return Floor()
    return Floor(tightest.per_byte, tightest)


def uses_more_than_ranks(plan: Plan) -> bool:
    """Whether a collective has helpers where no rank is: switches that aggregate, or servers on hosts of their own."""
    n = plan.schedule.n_ranks
    return not np.isin(plan.placement.nodes[n:], plan.placement.nodes[:n]).all()
