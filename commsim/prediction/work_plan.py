"""What a work is, and what it makes of a scenario: a plan, which has results of any size by any engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.scenario import Scenario, Wish

# Names of options in messages, where they differ.
OPTIONS = {"n_ranks": "ranks", "start_jitter": "start jitter", "flaps": "flap"}
__all__ = ["OPTIONS", "CollectivePlan", "Outcome", "Work", "WorkPlan"]


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


class Work(ABC):
    """What is simulated: a kind is a frozen class, which ``house.works`` names, and a work is a value of it."""

    # Name in refusals, such as ``groups``.
    NAME: ClassVar[str]
    # Fields of Scenario and Wish that have an effect on the plan or its results.
    TAKES: ClassVar[frozenset[str]] = frozenset(
        {"network", "work", "placement", "routing", "seed", "assume_programmable", "wish", "remarks", "slower",
         "whole", "failed", "is_left", "model", "iterations", "framing", "transport", "hashes", "hash_seed"}
    )  # fmt: skip
    # Reason for which other fields of a scenario are refused, where ``{}`` is the option.
    REFUSAL: ClassVar[str] = ""

    @classmethod
    def read(cls, given: Any) -> Self:
        """Return the work, by what a keyword of a scenario or the text after ``NAME:`` says of it."""
        return cls(given)  # type: ignore[call-arg]

    @abstractmethod
    def plan(self, scenario: Scenario) -> WorkPlan:
        """Return the plan of the work on a scenario's network."""

    def with_collective(self, collective: str | Schedule) -> Work:  # noqa: ARG002
        """Return the work with another collective; refused where it has none."""
        raise self.refusal("collective")

    @property
    def title(self) -> str:
        """Name in titles and rows; empty where each result has its own."""
        return ""

    @property
    def parts(self) -> Sequence[dict[str, str]]:
        """What tells the results of one size apart, such as ``{"job": "a"}``; empty where there is one."""
        return ()

    def refusal(self, option: str) -> InputError:
        """Return the error for an option that the work does not take."""
        reason = self.REFUSAL or f"{{}} is not modelled for {self.NAME}"
        return InputError(reason.format(OPTIONS.get(option, option)))
