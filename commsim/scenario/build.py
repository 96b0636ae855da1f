"""From a collective and a network to a plan: the kind of collective, built for the ranks that are there, and placed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collectives import NEEDS, found_parameters
from commsim.core.errors import InputError
from commsim.core.locality import rank_grid, rank_levels
from commsim.core.network import Network
from commsim.core.placement import Placement, helper_nodes, is_strategy
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.services import service
from commsim.core.spec import read_arguments
from commsim.core.units import counted
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import Job
from commsim.scenario.collective_names import collective_entry, load_schedule
from commsim.scenario.good_parameters import PARTITIONS, by_rails, count_rails, servers_that_fit
from commsim.scenario.helper_placement import (
    helpers_sit_beside,
    machines_of,
    on_memories,
    ranks_left,
    require_seats,
    where_helpers_sit,
    with_helpers,
)
from commsim.scenario.inputs import PACKED, load_network, load_placement
from commsim.scenario.kind import COMMON, Kind
from commsim.scenario.plans.dense import Plan
from commsim.scenario.scenario import Scenario

# How the name of what is synthesized for an operation begins.
SYNTHESIZED = "synthesized_"
# Parameter of exchanges of experts, whose library costs time.
LIBRARY = "library"
# Needs of collectives whose number of servers follows from the network; the number of ranks stays as it is.
SERVING = frozenset({"servers", "aggregators"})
__all__ = ["COLLECTIVE", "Asked", "Built", "built", "laid_out", "plan_collective", "prepare"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A registered collective as it is asked for; the rest is as in :func:`prepare`.

    Parameters
    ----------
    entry : Entry
        The collective.
    raw : mapping of str to str
        Its arguments, as text.
    """

    entry: Entry[Schedule]
    raw: Mapping[str, str]
    network: Network
    n_ranks: int | None
    placement: str | Placement
    routing: str | None
    seed: int
    assume_programmable: bool

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments, read; what network and placement decide is not among them."""
        return read_arguments(self.entry.build, self.raw, given=found_parameters(self.entry.metadata["needs"]))

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
class Built:
    """A schedule, placed.

    Parameters
    ----------
    schedule : Schedule
        Transfers.
    parameters : mapping of str to value
        Arguments with which it was built.
    placement : Placement
        Node of each participant.
    notes : tuple of str
        What was derived.
    """

    schedule: Schedule
    parameters: dict[str, Any]
    placement: Placement
    notes: tuple[str, ...] = ()


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
    notes: tuple[str, ...] = ()
    size = 0.0
    if isinstance(collective, str) and collective.endswith(".npz"):
        from commsim.files.schedule_file import own_size

        path, size = collective, own_size(collective)
        if placement is None:
            from commsim.files.schedule_file import read_placed_schedule

            collective, placement = read_placed_schedule(path, network)
            if placement is not None and placement.routes is not None:
                notes = (f"{path}: {len(placement.routes)} connections take the routes that it pins",)
        else:
            collective = load_schedule(path)
    placement = PACKED if placement is None else placement
    if isinstance(collective, Schedule):
        where = placed(placement, network, collective, seed)
        ready = _laid_out(Built(collective, {}, where, notes), network, routing, seed)
        ready = dataclasses.replace(ready, own_size=size)
    elif collective.startswith(SYNTHESIZED):
        ready = _synthesized(collective, network, n_ranks, placement=placement, routing=routing, seed=seed)
    else:
        entry, raw = collective_entry(collective)
        asked = Asked(entry, raw, network, n_ranks, placement, routing, seed, assume_programmable)
        has = {*entry.metadata["needs"], *(key for key, value in entry.metadata.items() if value)}
        has |= {PARTITIONS, LIBRARY} & entry.parameters.keys()
        ready = next((plan for mark, plan in KINDS.items() if mark in has), _dense)(asked)
    if n_ranks is not None and n_ranks != ready.schedule.n_ranks:
        raise InputError(f"the schedule has {counted(ready.schedule.n_ranks, 'rank')}, got n_ranks={n_ranks}")
    return ready


def plan_collective(scenario: Scenario) -> Plan:
    """Return the plan of a scenario's collective."""
    return prepare(
        scenario.collective, scenario.network, n_ranks=scenario.n_ranks,
        assume_programmable=scenario.assume_programmable, **scenario.placing,
    )  # fmt: skip


def _synthesized(name: str, network: Network, n_ranks: int | None, **placing: Any) -> Plan:
    """Return the plan of what is synthesized for an operation, which a higher package registers."""
    plan: Plan = service("synthesized plan")(Scenario(network, name, n_ranks, **placing))
    return plan


def _of_nccl(asked: Asked) -> Plan:
    from commsim.scenario.plans.nccl import plan_nccl

    return plan_nccl(asked)


def _in_switches(asked: Asked) -> Plan:
    from commsim.scenario.plans.aggregated import plan_aggregated

    return plan_aggregated(asked)


def _sparse(asked: Asked) -> Plan:
    from commsim.scenario.plans.sparse import plan_sparse

    return plan_sparse(asked)


def _of_experts(asked: Asked) -> Plan:
    from commsim.scenario.plans.experts import plan_experts

    return plan_experts(asked)


def _in_pieces(asked: Asked) -> Plan:
    from commsim.scenario.plans.cut_by_size import plan_pieces

    return plan_pieces(asked)


def _in_partitions(asked: Asked) -> Plan:
    from commsim.scenario.plans.cut_by_size import plan_partitions

    return plan_partitions(asked)


def _dense(asked: Asked) -> Plan:
    return laid_out(built(asked), asked)


# Kinds of registered collectives: what each has in the registry (a need, a key of the metadata, or a parameter), and
# what plans it. The first that fits is taken, else the collective is dense.
KINDS: Mapping[str, Callable[[Asked], Plan]] = {
    "nccl": _of_nccl, "systems": _in_switches, "sparse": _sparse, LIBRARY: _of_experts,
    "pieces": _in_pieces, PARTITIONS: _in_partitions,
}  # fmt: skip


def laid_out(made: Built, asked: Asked, **job: Any) -> Plan:
    """Check a placement, and plan a schedule on it; further fields are those of its job."""
    return _laid_out(made, asked.network, asked.routing, asked.seed, **job)


def _laid_out(made: Built, network: Network, routing: str | None, seed: int, **job: Any) -> Plan:
    schedule, placement = made.schedule, made.placement
    placement.check(network, schedule.n_ranks, schedule.n_helpers)
    paths = FlowPaths(network, Job(schedule, placement, **job), routing, seed)
    return Plan(schedule, made.parameters, network, placement, paths, made.notes)


def built(asked: Asked) -> Built:
    """Build and place a collective without aggregators, with the parameters that locality decides."""
    entry, network, placement, seed = asked.entry, asked.network, asked.placement, asked.seed
    name, needs = entry.name, entry.metadata["needs"]
    parameters, n_ranks, notes = asked.parameters, asked.all_ranks, list[str]()
    as_many_as_fit = asked.n_ranks is None
    if SERVING.intersection(needs) and (not as_many_as_fit or helpers_sit_beside(network, placement)):
        fitting = servers_that_fit(entry, parameters, network, placement, n_ranks, seed)
        parameters |= fitting
        notes += [f"{name}: {key}={n}, on hosts beside the ranks" for key, n in fitting.items()]

    def build(n_ranks: int) -> tuple[Schedule, dict[str, Any]]:
        machines = machines_of(entry, network, placement, n_ranks, seed) if "machines" in needs else {}
        return entry.build(n_ranks, **{**parameters, **machines}), machines

    schedule, machines = build(n_ranks)
    if as_many_as_fit and schedule.n_helpers and not helpers_sit_beside(network, placement):
        n_ranks, why = ranks_left(schedule, network)
        beside = "colocated" in entry.parameters and not parameters.get("colocated")
        notes.append(why + ("; colocated=true puts them beside the ranks" if beside else ""))
        schedule, machines = build(n_ranks)
    parameters |= machines
    notes += [f"{name}: {len(groups)} machines of {_sizes(groups)} ranks each" for groups in machines.values()]
    own = isinstance(placement, str)  # whether helpers go where it is usual
    if isinstance(placement, Placement) and schedule.n_helpers and len(placement.nodes) == n_ranks:
        placement, own = with_helpers(schedule, network, placement), True
    if schedule.n_helpers:
        require_seats(schedule, network, placement)
    where = placed(placement, network, schedule, seed)
    if "memories" in needs and parameters.get(NEEDS["memories"]) and own:
        where = on_memories(schedule, network, where, parameters.get("machines", (tuple(range(n_ranks)),)))
    if schedule.n_helpers and own and len(helper_nodes(network)):
        notes.append(where_helpers_sit(name, network, where, n_ranks))
    if "groups" in needs:
        for level, groups in rank_levels(network, where, n_ranks)[:1]:
            parameters["groups"] = by_rails(network, where, groups) if "rails" in needs else groups
            rails = count_rails(network, where, groups) if "rails" in needs else None
            if rails is not None and parameters.get(NEEDS["rails"]) is None:
                parameters[NEEDS["rails"]] = rails
                notes.append(f"{name}: {NEEDS['rails']}={rails}, a ring for each rail of a machine")
            schedule = entry.build(n_ranks, **parameters)
            notes.append(f"{name}: groups are the {len(groups)} {level}s, of {_sizes(groups)} ranks each")
    if "dims" in needs and "dims" not in asked.raw:
        dims = rank_grid(network, where, n_ranks)
        if dims is not None:
            parameters["dims"] = dims
            schedule = entry.build(n_ranks, **parameters)
            notes.append(f"{name}: dims are {'x'.join(map(str, dims))}, from the outermost level to the innermost")
    return Built(schedule, parameters, where, tuple(notes))


def placed(placement: str | Placement, network: Network, schedule: Schedule, seed: int) -> Placement:
    """Return the placement, that of a file, or that of the ranks by a strategy with the helpers beside them."""
    if isinstance(placement, Placement):
        return placement
    if not is_strategy(placement):
        return load_placement(placement, network, schedule.n_participants, seed)
    ranks = load_placement(placement, network, schedule.n_ranks, seed)
    return with_helpers(schedule, network, ranks) if schedule.n_helpers else ranks


def _sizes(groups: tuple[tuple[int, ...], ...]) -> str:
    return " or ".join(map(str, sorted({len(group) for group in groups})))


# One collective: what a scenario asks for that asks for nothing else.
COLLECTIVE = Kind(
    name="a collective",
    plan=plan_collective,
    honours=COMMON
    | {"collective", "n_ranks", "start_jitter", "trace", "method", "flaps", "watch", "capture", "tolerance"},
)
