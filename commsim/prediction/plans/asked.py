"""What every kind of registered collective is planned from: the question, the schedule that is built, and its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collectives import found_parameters
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.registry import Entry
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.prediction.inputs import load_placement
from commsim.prediction.plans.dense import Plan

# Parameter of collectives whose servers add partitions.
PARTITIONS = "n_partitions"


@dataclass(frozen=True, slots=True)
class CollectiveRequest:
    """A registered collective as it is asked for; the rest is as in :func:`commsim.prediction.build.prepare`.

    Parameters
    ----------
    entry : Entry
        The collective.
    raw : mapping of str to str
        Its arguments, as text.
    more : str
        Names of arguments that were read before, for messages.
    """

    entry: Entry[Schedule]
    raw: Mapping[str, str]
    network: Network
    n_ranks: int | None
    placement: str | Placement
    routing: str | None
    seed: int
    assume_programmable: bool
    more: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments, read; what network and placement decide is not among them."""
        parameters = found_parameters(self.entry.metadata["needs"])
        return read_arguments(self.entry.build, self.raw, names=parameters, more=self.more)

    @property
    def all_ranks(self) -> int:
        """Number of ranks: that which is given, or as many as the placement or the network has.

        Raises
        ------
        InputError
            If a number below 1 is given.
        """
        n_ranks = self.n_ranks
        if n_ranks is None:
            n_ranks = len(self.network.endpoints) if isinstance(self.placement, str) else len(self.placement.nodes)
        if n_ranks < 1:
            raise InputError(f"ranks must be at least 1, got {n_ranks}")
        return n_ranks


@dataclass(frozen=True, slots=True)
class PlacedSchedule:
    """A schedule, placed.

    Parameters
    ----------
    schedule : Schedule
        Transfers.
    parameters : mapping of str to value
        Arguments with which it was built.
    placement : Placement
        Node of each participant.
    notes : tuple of Remark
        What was derived.
    """

    schedule: Schedule
    parameters: dict[str, Any]
    placement: Placement
    notes: tuple[Remark, ...] = ()


def laid_out(collective: PlacedSchedule, request: CollectiveRequest, **job: Any) -> Plan:
    """Check a placement, and plan a schedule on it; further fields are those of its job."""
    return plan_schedule(collective, request.network, request.routing, request.seed, **job)


def plan_schedule(collective: PlacedSchedule, network: Network, routing: str | None, seed: int, **job: Any) -> Plan:
    """Check a placement, and plan a schedule on it."""
    schedule, placement = collective.schedule, collective.placement
    placement.check(network, schedule.n_ranks, schedule.n_helpers)
    paths = FlowPaths(network, FlowJob(schedule, placement, **job), routing, seed)
    return Plan(schedule, collective.parameters, network, placement, paths, collective.notes)


def build_collective(request: CollectiveRequest) -> PlacedSchedule:
    """Build and place a collective without aggregators, with the parameters that locality decides."""
    entry = request.entry
    if not entry.metadata["needs"] and "n_servers" not in entry.parameters:
        parameters, n_ranks = request.parameters, request.all_ranks
        schedule = entry.build(n_ranks, **parameters)
        if not schedule.n_helpers:
            where = request.placement
            if isinstance(where, str):
                where = load_placement(where, request.network, schedule.n_ranks, request.seed)
            return PlacedSchedule(schedule, parameters, where)
    from commsim.prediction.plans.fitted import build_fitted

    return PlacedSchedule(*build_fitted(request))
