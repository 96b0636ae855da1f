"""The plan of a pipeline: its schedule is cut into as many pieces, or partitions of servers, as suit the size."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from collectives.pieces import sized_parameters
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.prediction.build import PARTITIONS, CollectiveRequest, build_collective, laid_out
from commsim.prediction.good_parameters import partitions_that_fit
from commsim.prediction.plans.dense import Plan

__all__ = [
    "BY_SIZE",
    "MAX_KEPT",
    "CutBySize",
    "most_partitions",
    "plan_partitions",
    "plan_pieces",
    "with_partitions_that_fit",
]

# Plans of sizes that are kept, with their tables; those that were made first go first.
MAX_KEPT = 2
BY_SIZE = "{}: " + PARTITIONS + " by size, as suits the overhead of messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBySize(Plan):
    """A collective whose builder is called anew for each size.

    Parameters
    ----------
    cut : callable
        Function from a size in bytes to the arguments of the builder.
    """

    cut: Callable[[float], dict[str, Any]]

    def at(self, size: float) -> Plan:
        """Return the plan of one size."""
        if not 0 < size < float("inf"):
            return self
        parameters = self.cut(size)
        key = tuple(parameters.get(name) for name in ("n_chunks", "n_partitions"))
        if key not in self._at:
            if len(self._at) >= MAX_KEPT:
                del self._at[next(iter(self._at))]
            schedule = COLLECTIVES[self.schedule.name].build(self.schedule.n_ranks, **parameters)
            self._at[key] = self.with_schedule(schedule, parameters).as_kind(Plan, _at={}, _bounds={})
        plan: Plan = self._at[key]
        return plan

    def in_pieces(self, size: float) -> Plan:
        """Return the plan with the pieces of a size."""
        return self.at(size)

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on, and the number of pieces that was chosen."""
        cut = [self.cut(result.size) for result in results]
        pieces = [parameters["n_chunks"] for parameters in cut if parameters.get("n_chunks") is not None]
        remarks = list[Remark]()
        if pieces:
            low, high = min(pieces), max(pieces)
            n = str(low) if low == high else f"{low} to {high} by size"
            remarks.append(Remark("pieces", f"{self.schedule.name}: n_chunks={n}"))
        return remarks + Plan.remarks(self, results, has_framing=has_framing, verbose=verbose)


def plan_pieces(request: CollectiveRequest) -> Plan:
    """Plan a pipeline; a number of pieces that is given is that of all sizes."""
    plan = laid_out(build_collective(request), request)
    if plan.parameters.get("n_chunks") is not None:
        return plan
    cut = functools.partial(_in_pieces, request.entry.name, plan.schedule.n_ranks, dict(plan.parameters))
    return plan.as_kind(CutBySize, cut=cut)


def _in_pieces(name: str, n_ranks: int, parameters: dict[str, Any], size: float) -> dict[str, Any]:
    # Of a name, since a plan is pickled, and an entry of the registry is not.
    return sized_parameters(COLLECTIVES[name], n_ranks, size, parameters)


def plan_partitions(request: CollectiveRequest) -> Plan:
    """Plan a collective whose servers add partitions."""
    return with_partitions_that_fit(laid_out(build_collective(request), request))


def with_partitions_that_fit(prepared: Plan) -> Plan:
    """Return the same with as many partitions at each size as suit the overhead of messages, where servers add.

    What the user gives stays, and so does all where messages cost nothing but their bytes.

    Parameters
    ----------
    prepared : Plan
        Collective on dense data.
    """
    name, schedule, parameters = prepared.schedule.name, prepared.schedule, prepared.parameters
    most = most_partitions(schedule, parameters, prepared.network, prepared.placement.nodes)
    if not most:
        return prepared
    single = COLLECTIVES[name].build(schedule.n_ranks, **{**parameters, PARTITIONS: 1})
    again = int((_messages(schedule) - _messages(single)).max()) // (most - 1) if most > 1 else 1
    cut = functools.partial(_in_partitions, prepared, most, busiest_share(single), max(1, again))
    remark = Remark("partitions", BY_SIZE.format(name))
    return prepared.as_kind(CutBySize, notes=(*prepared.notes, remark), cut=cut)


def most_partitions(
    schedule: Schedule, parameters: Mapping[str, Any], network: Network, nodes: NDArray[np.integer[Any]]
) -> int:
    """Return the partitions that a builder makes where their number may suit the size instead; 0 where it may not."""
    name = schedule.name
    if name not in COLLECTIVES or not schedule.n_helpers or parameters.get(PARTITIONS) is not None:
        return 0
    if PARTITIONS not in COLLECTIVES[name].parameters:
        return 0
    if math.isinf(partitions_that_fit(1.0, schedule.n_helpers, network, nodes)):
        return 0
    declared = COLLECTIVES[name].parameters[PARTITIONS].default
    if declared is not None:
        return int(declared)
    single = COLLECTIVES[name].build(schedule.n_ranks, **{**parameters, PARTITIONS: 1})
    return schedule.n_chunks // single.n_chunks


def busiest_share(schedule: Schedule) -> float:
    """Return the part of the data that the busiest port of ranks and helpers carries, the larger of both ways."""
    ports = np.zeros((2, schedule.n_participants))
    for block in schedule.blocks:
        apart = block.body[block.body["src"] != block.body["dst"]]
        for way, end in enumerate(("src", "dst")):
            ports[way] += block.times * np.bincount(apart[end], apart["count"], schedule.n_participants)
    return float(ports.max()) / schedule.n_chunks


def _messages(schedule: Schedule) -> NDArray[np.int64]:
    """Count the messages that each participant sends. Blocks of collectives with servers repeat over chunks alone."""
    return sum(
        (block.times * np.bincount(block.body["src"], minlength=schedule.n_participants) for block in schedule.blocks),
        start=np.zeros(schedule.n_participants, np.int64),
    )


def _in_partitions(prepared: Plan, most: int, share: float, n_messages: int, size: float) -> dict[str, Any]:
    best = partitions_that_fit(size * share, n_messages, prepared.network, prepared.placement.nodes)
    return {**prepared.parameters, PARTITIONS: max(1, min(round(best), most))}
