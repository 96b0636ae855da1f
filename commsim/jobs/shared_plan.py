"""What plans of collectives that share a network have in common."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.prediction.plans.used_links import links_of
from commsim.routing.routing import may_collide

from .shared_run import PlacedJobs


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """The plan of collectives that share a network.

    Parameters
    ----------
    run : PlacedJobs
        The collectives with their plans, and the background traffic.
    """

    run: PlacedJobs

    @property
    def network(self) -> Network:
        """Network that all share; switches on which aggregators were put can aggregate."""
        return self.run.network

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Schedule of each collective."""
        return self.run.schedules

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What was derived for each collective."""
        return self.run.notes

    @property
    def has_own_costs(self) -> bool:
        """Whether messages of all of them have the costs of a library's primitives."""
        return all(plan.has_own_costs for plan in self.run.plans)

    @property
    def may_collide(self) -> bool:
        """Whether routes are drawn by hashing where there are several."""
        return may_collide(self.network, self.run.routing)

    def at(self, size: float) -> SharedPlan:  # noqa: ARG002
        """Return the plan of one size, the same for all."""
        return self

    def links_used(self, sizes: Collection[float], routing: str | None) -> NDArray[np.bool_] | None:
        """Return the links on the routes of all messages, bool[n_links]; None with background traffic."""
        if len(self.run.messages.start):
            return None
        runs = [self.at(size).run for size in sizes]
        parts = [
            (plan.at(entry.size), entry.number or 0)
            for run in runs for plan, entry in zip(run.plans, run.entries, strict=True)
        ]  # fmt: skip
        return links_of(parts, self.network, routing)
