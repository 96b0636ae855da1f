"""What works make of a scenario: plans, which have results of any size by any engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.scenario import Wish

__all__ = ["CollectivePlan", "Outcome", "WorkPlan"]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Results of a plan at one size.

    Parameters
    ----------
    results : tuple of Result
        One result; of groups and jobs one for each of them.
    remarks : tuple of Remark
        Why the engine was chosen, where it was ``auto``.
    details : object
        What jobs that share a network cost each other; None of other work.
    """

    results: tuple[Result, ...]
    remarks: tuple[Remark, ...] = ()
    details: Any = None


class WorkPlan(Protocol):
    """What every kind of work makes of a scenario: results of any size by any engine."""

    @property
    def network(self) -> Network:
        """Network, whose switches can aggregate where aggregators were put."""

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Schedule of each result of a size, in their order."""

    @property
    def notes(self) -> tuple[Remark, ...]:
        """What was derived when the work was planned."""

    @property
    def has_own_costs(self) -> bool:
        """Whether messages have the costs of a library's primitives, not the overhead of the network."""

    @property
    def may_collide(self) -> bool:
        """Whether routes are drawn by hashing where there are several."""

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the sizes that the work can have of those that are asked for, and what to say of the others."""

    def at(self, size: float) -> WorkPlan:
        """Return the plan of one size."""

    def links_used(self, sizes: Collection[float], routing: str | None) -> NDArray[np.bool_] | None:
        """Return the links on the routes of all messages, bool[n_links]; None where that is not known, or takes long.

        Routing in place of the plan's own is taken where it is given.
        """

    def outcome(self, size: float, wish: Wish) -> Outcome:
        """Predict one size, and check the results against the capacity of cuts."""

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on; when verbose, how the packet engine differs."""


@runtime_checkable
class CollectivePlan(WorkPlan, Protocol):
    """A plan of one collective, whose messages have a timeline."""

    @property
    def schedule(self) -> Schedule:
        """Schedule of its messages."""

    def shown(self, size: float) -> Plan:
        """Return the plan whose messages the timeline of a size shows."""

    def run(self, size: float, wish: Wish) -> Result:
        """Predict one size."""
