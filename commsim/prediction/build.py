"""From a collective and a network to a plan: the kind of collective, built for the ranks that are there, and placed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.kept import Cache
from commsim.core.network import Network
from commsim.core.placement import RANK_ORDERS, Placement
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.spec import split_spec
from commsim.core.units import count_text
from commsim.extensions import house
from commsim.packets.aggregated.plan_aggregated import plan_aggregated
from commsim.prediction.collective_names import collective_entry, load_schedule
from commsim.prediction.good_parameters import PARTITIONS
from commsim.prediction.inputs import PACKED, load_network
from commsim.prediction.kind import COMMON, WorkKind
from commsim.prediction.plans.asked import CollectiveRequest, PlacedSchedule, placement_of, plan_dense, plan_schedule
from commsim.prediction.plans.cut_by_size import plan_partitions, plan_pieces
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.prediction.software import software
from commsim.sparse.plan_sparse import plan_sparse

# How the name of what is synthesized for an operation begins.
SYNTHESIZED = "synthesized_"
# Parameter of exchanges of experts, whose library costs time.
LIBRARY = "library"
# Plans of what was asked for last, with their networks, which so keep their id.
PLANS: Cache[tuple[Network, Plan]] = Cache(4, lambda kept: sum(len(b.body) for b in kept[1].schedule.blocks) <= 2**18)
__all__ = ["COLLECTIVE", "plan_collective", "prepare"]


def prepare(
    collective: str | Schedule,
    network: str | Network,
    *,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
) -> Plan:
    """Build and place a collective, and lay out its simulation.

    Parameters
    ----------
    collective : str or Schedule
        ``name:key=value,...`` of a registered collective, the .npz file of a schedule, or a schedule.
    network : str or Network
        ``name:key=value,...`` of a registered topology, a file, or a network.
    n_ranks : int, optional
        Default: as many as the placement has, or all hosts less those that helpers need.
    placement : str or Placement, optional
        ``packed``, ``spread``, ``random``, a file, or a placement. Default: what a file of a schedule says that it was
        made for, else ``packed``.
    routing : str, optional
        Routing in place of the network's own.
    seed : int
        Seed of random placement and of ECMP's hash.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that says of none that it can aggregate.

    Raises
    ------
    InputError
        If a name is unknown, a parameter is wrong, or the placement does not fit.
    """
    network = load_network(network) if isinstance(network, str) else network
    network, per_call = _with_software(collective, network) if network.software else (network, 0.0)
    notes: tuple[Remark, ...] = ()
    size = 0.0
    if isinstance(collective, str) and collective.endswith(".npz"):
        from commsim.core.files.schedule_file import own_size

        path, size = collective, own_size(collective)
        if placement is None:
            from commsim.core.files.schedule_file import read_placed_schedule

            collective, placement = read_placed_schedule(path, network)
            if placement is not None and placement.routes is not None:
                text = f"{path}: {len(placement.routes)} connections take the routes that it pins"
                notes = (Remark("routes-pinned", text),)
        else:
            collective = load_schedule(path)
    placement = PACKED if placement is None else placement
    if isinstance(collective, Schedule):
        where = placement_of(placement, network, collective, seed)
        ready = plan_schedule(PlacedSchedule(collective, {}, where, notes), network, routing, seed)
        ready = dataclasses.replace(ready, own_size=size)
    elif collective.startswith(SYNTHESIZED):
        ready = _synthesized(collective, network, n_ranks, placement=placement, routing=routing, seed=seed)
    else:
        entry, raw = collective_entry(collective)
        request = CollectiveRequest(entry, raw, network, n_ranks, placement, routing, seed, assume_programmable)
        has = {*entry.metadata["needs"], *(key for key, value in entry.metadata.items() if value)}
        has |= {PARTITIONS, LIBRARY} & entry.parameters.keys()
        ready = next((plan for mark, plan in KINDS.items() if mark in has), plan_dense)(request)
    if n_ranks is not None and n_ranks != ready.schedule.n_ranks:
        raise InputError(f"the schedule has {count_text(ready.schedule.n_ranks, 'rank')}, got n_ranks={n_ranks}")
    if network.software:
        software(network.software).refuse(network.machine[ready.placement.nodes])
    if not per_call:
        return ready
    if ready.posts_calls:
        return dataclasses.replace(ready, before=ready.before + per_call)
    remark = Remark(
        "call-left-out", f"{ready.schedule.name}: without the time of a call of software {network.software}"
    )
    return dataclasses.replace(ready, notes=(*ready.notes, remark))


def _with_software(collective: str | Schedule, network: Network) -> tuple[Network, float]:
    """Return the network as hosts add in a collective, and the time of a call, where its software was measured so."""
    known, name = software(network.software), collective if isinstance(collective, str) else collective.name
    if not known.is_measured_of(name.partition(":")[0]):
        return network, 0.0
    return known.adding(network), known.fixed


def plan_collective(scenario: Scenario) -> Plan:
    """Return the plan of a scenario's collective; that of a call of NCCL is kept for the same question again."""
    make = functools.partial(
        prepare, scenario.collective, scenario.network, n_ranks=scenario.n_ranks,
        assume_programmable=scenario.assume_programmable, **scenario.placing,
    )  # fmt: skip
    is_named = isinstance(scenario.collective, str) and "ccl" in scenario.collective
    key = _as_named(scenario) if is_named else None
    if key is None:
        return make()
    _, plan = PLANS.get(key, lambda: (scenario.network, make()))
    return dataclasses.replace(plan, _at={}, _bounds={})  # what is found at sizes takes memory, and is not kept


def _as_named(scenario: Scenario) -> Hashable:
    """Return what decides a plan that is kept: of a call of NCCL by name, placed by name, where no file is read."""
    name, where = scenario.collective, scenario.placement
    if not isinstance(name, str) or name.partition(":")[0] not in COLLECTIVES:
        return None
    if "nccl" not in COLLECTIVES[name.partition(":")[0]].metadata["needs"] or where not in (None, *RANK_ORDERS):
        return None
    from commsim.nccl.plans.nccl_files import READERS

    if set(READERS) & split_spec(name)[1].keys():
        return None
    return (
        id(scenario.network), name, scenario.n_ranks, where, scenario.routing, scenario.seed,
        scenario.assume_programmable,
    )  # fmt: skip


def _synthesized(name: str, network: Network, n_ranks: int | None, **placing: Any) -> Plan:
    """Return the plan of what is synthesized for an operation, which a higher package registers."""
    plan: Plan = house().services["synthesized plan"](Scenario(network, name, n_ranks, **placing))
    return plan


def _of_nccl(request: CollectiveRequest) -> Plan:
    from commsim.nccl.plans.plan_nccl import plan_nccl  # models of libraries take a third of a start

    return plan_nccl(request)


def _of_experts(request: CollectiveRequest) -> Plan:
    from commsim.experts.plan_experts import plan_experts

    return plan_experts(request)


# Kinds of registered collectives: what each has in the registry (a need, a key of the metadata, or a parameter), and
# what plans it. The first that fits is taken, else the collective is dense.
KINDS: Mapping[str, Callable[[CollectiveRequest], Plan]] = {
    "nccl": _of_nccl, "systems": plan_aggregated, "sparse": plan_sparse, LIBRARY: _of_experts,
    "pieces": plan_pieces, PARTITIONS: plan_partitions,
}  # fmt: skip
# One collective: what a scenario asks for that asks for nothing else.
COLLECTIVE = WorkKind(
    name="a collective",
    plan=plan_collective,
    honours=COMMON
    | {"collective", "n_ranks", "start_jitter", "trace", "method", "flaps", "watch", "capture", "tolerance"},
)
