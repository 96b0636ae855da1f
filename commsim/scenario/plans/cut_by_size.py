"""The plan of a pipeline: its schedule is cut into as many pieces as suit the size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from collectives import COLLECTIVES
from commsim.scenario.plans.dense import Plan

__all__ = ["CutBySize"]


@dataclass(frozen=True, slots=True)
class CutBySize(Plan):
    """A collective whose builder is called anew for each size.

    Parameters
    ----------
    cut : callable
        Function from a size in bytes to the arguments of the builder.
    """

    cut: Callable[[float], dict[str, Any]] | None = None

    def at(self, size: float) -> Plan:
        """Return the plan of one size."""
        if self.cut is None or not 0 < size < float("inf"):
            return self
        parameters = self.cut(size)
        key = tuple(parameters.get(name) for name in ("n_chunks", "n_partitions"))
        if key not in self._at:
            schedule = COLLECTIVES[self.schedule.name].build(self.schedule.n_ranks, **parameters)
            made = self.with_schedule(schedule, parameters)
            self._at[key] = Plan(schedule, parameters, made.network, made.placement, made.paths, made.notes)
        plan: Plan = self._at[key]
        return plan
