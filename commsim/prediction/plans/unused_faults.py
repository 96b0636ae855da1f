"""Faults that cost nothing: no message crosses a link that is slower, or would cross one that failed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.engine.ways.closed_form_proof import carriers
from commsim.jobs.shared_run import SharedPlan
from commsim.packets.aggregated.plan_aggregated import AggregatedPlan
from commsim.packets.aggregated.switch_system import links_of_trees
from commsim.prediction.kind import WorkPlan
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.routing.pinned import find_connection_routes
from commsim.routing.routing import Routes, is_hashed
from commsim.sparse.plan_compressed import CompressedPlan
from commsim.traffic.host_traffic import TrafficPlan

# Connections whose routes are found to say that a fault costs nothing: half a second.
MAX_CONNECTIONS = 100_000
__all__ = ["of_unused_faults"]


def of_unused_faults(
    scenario: Scenario, plans: Mapping[str, WorkPlan], results: Mapping[str, Sequence[Result]]
) -> list[Remark]:
    """Name the collectives that a fault costs nothing, since none of their messages crosses what is slower or failed.

    Parameters
    ----------
    scenario : Scenario
        Network with its faults.
    plans, results : mapping of str to WorkPlan, and to sequence of Result
        Plans and predictions, by name of the collective.
    """
    hashed = is_hashed(scenario.routing or scenario.network.routing) and not scenario.wish.sprays
    several = any(fault.hashes is not None for some in results.values() for fault in some)
    draw = f"with the hash of {'the median draw' if several else 'this --seed'}, " if hashed else ""
    missed = {
        "crosses a slower link": [
            name for name, some in results.items() if _misses_slower(scenario, plans[name], some)
        ],
        "would cross a link that failed": [
            name for name, some in results.items() if _misses_failed(scenario, name, plans[name], some)
        ],
    }  # fmt: skip
    texts = {what: f"{draw}no message {what}: {', '.join(names)}" for what, names in missed.items() if names}
    return [Remark("fault-unused", text, needed=True) for text in texts.values()]


def _misses_slower(scenario: Scenario, plan: WorkPlan, results: Sequence[Result]) -> bool:
    """Whether slower links carried nothing; an engine without links is taken to use those of its schedule's routes."""
    slower = list(scenario.slower)
    if not slower:
        return False
    if all(result.link_bytes.size for result in results):
        return not any(result.link_bytes[slower].any() for result in results)
    used = _links(plan, {result.size for result in results}, None)
    return used is not None and not used[slower].any()


def _misses_failed(scenario: Scenario, name: str, plan: WorkPlan, results: Sequence[Result]) -> bool:
    """Whether routes on the network without its failures avoid what failed."""
    from commsim.prediction.solve import plan_of

    sizes = {result.size for result in results}
    if scenario.whole is None or not scenario.failed or not (isinstance(plan, TrafficPlan) or _distinct(plan, sizes)):
        return False
    asked = {} if scenario.name or scenario.jobs or scenario.traffic else {"collective": name}
    whole = dataclasses.replace(scenario, network=scenario.whole, whole=None, failed=(), slower=(), **asked)  # type: ignore[arg-type]
    try:
        used = _links(plan_of(whole), sizes, "spray" if scenario.wish.sprays else None)
    except InputError:  # what is pinned, placed or synthesized may not fit there
        return False
    return used is not None and not used[list(scenario.failed)].any()


def _links(plan: WorkPlan, sizes: Iterable[float], routing: str | None) -> NDArray[np.bool_] | None:
    """Return the links on the routes of all messages, bool[n_links]; None where that is not known, or takes long."""
    used = np.zeros(plan.network.n_links, np.bool_)
    if isinstance(plan, TrafficPlan):
        for size in sizes:
            used[plan.routes(size, routing).link] = True
        return used
    parts = _distinct(plan, sizes)
    if not parts:
        return None
    for part, number in parts:
        used[_routes(part, number, routing).link] = True
        if isinstance(part, AggregatedPlan):  # packets of switch systems keep to the tree
            used[links_of_trees(part.system.where.trees)] = True
    return used


def _distinct(plan: WorkPlan, sizes: Iterable[float]) -> list[tuple[Plan, int]]:
    """Return the collectives of all sizes, each schedule once; none where their messages are not known, or too many."""
    known: dict[tuple[int, int, int], tuple[Plan, int]] = {}
    for size in sizes:
        for part, number in _parts(plan.at(size), size) or ():
            job = part.paths.job
            known[id(job.schedule), id(job.placement), number] = part, number
    parts = list(known.values())
    return parts if sum(part.paths.n_connections for part, _ in parts) <= MAX_CONNECTIONS else []


def _parts(plan: WorkPlan, size: float) -> list[tuple[Plan, int]] | None:
    """Return the collectives of a plan, and the numbers with which ECMP tells their channels apart."""
    match plan:
        case Plan():
            return [(plan.at(size), 0)]
        case CompressedPlan():
            return [(plan.prepared.at(size), 0)]
        case SharedPlan() if not len(plan.run.messages.start):
            pairs = zip(plan.run.plans, plan.run.entries, strict=True)
            return [(one.at(entry.size), entry.number or 0) for one, entry in pairs]
    return None


def _routes(plan: Plan, number: int, routing: str | None) -> Routes:
    job, paths = plan.paths.job, plan.paths
    found = carriers(job.schedule)
    return find_connection_routes(
        paths.network, job.placement, found.ends, found.channel, routing=routing or paths.routing, seed=paths.seed,
        hashed_channel=found.channel + 1000 * number,
    )  # fmt: skip
