"""From a collective and a network to a plan: built for the ranks, groups and machines that are there, and placed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from collectives import BLOCKING, NEEDS, found_parameters
from collectives.pieces import sized_parameters
from commsim.core.errors import InputError
from commsim.core.locality import rank_grid, rank_levels
from commsim.core.network import Network
from commsim.core.placement import Placement, helper_nodes, is_strategy
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments
from commsim.core.units import counted
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import Job
from commsim.scenario.collective_names import collective_entry, load_schedule
from commsim.scenario.good_parameters import (
    PARTITIONS,
    SERVING,
    count_rails,
    servers_that_fit,
    with_partitions_that_fit,
)
from commsim.scenario.helper_placement import (
    helpers_sit_beside,
    machines_of,
    on_memories,
    ranks_left,
    require_seats,
    seat_aggregators,
    where_helpers_sit,
    with_helpers,
)
from commsim.scenario.inputs import PACKED, load_network, load_placement
from commsim.scenario.plans.cut_by_size import CutBySize
from commsim.scenario.plans.dense import Plan
from commsim.scenario.systems import split_system, usual_system

if TYPE_CHECKING:
    from commsim.scenario.plans.aggregation import Aggregation
    from commsim.scenario.plans.nccl_launch import NcclLaunch
    from commsim.scenario.plans.sparse_data import SparseData


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
    if isinstance(collective, str) and collective.endswith(".npz"):
        path = collective
        if placement is None:
            from commsim.files.schedule_file import read_placed_schedule

            collective, placement = read_placed_schedule(path, network)
            if placement is not None and placement.routes is not None:
                notes = (f"{path}: {len(placement.routes)} connections take the routes that it pins",)
        else:
            collective = load_schedule(path)
    placement = PACKED if placement is None else placement
    if isinstance(collective, Schedule):
        ready = laid_out(collective, network, placed(placement, network, collective, seed), routing, seed, {})
        ready = dataclasses.replace(ready, notes=notes)
    else:
        ready = _named(collective, network, n_ranks, placement, routing, seed, assume_programmable)
    if n_ranks is not None and n_ranks != ready.schedule.n_ranks:
        raise InputError(f"the schedule has {counted(ready.schedule.n_ranks, 'rank')}, got n_ranks={n_ranks}")
    return ready


def _named(
    text: str,
    network: Network,
    n_ranks: int | None,
    placement: str | Placement,
    routing: str | None,
    seed: int,
    assume_programmable: bool,
) -> Plan:
    """Build and place ``name:key=value,...`` of a registered collective; the rest is as in :func:`prepare`."""
    entry, raw = collective_entry(text)
    given = None
    if entry.metadata.get("sparse") is not None:
        from commsim.scenario.plans.sparse_data import split_data

        raw, given = split_data(entry, raw)
    spec = None
    if entry.metadata["systems"]:
        raw, spec = split_system(entry, raw)
    decided = None
    if "nccl" in entry.metadata["needs"]:
        from commsim.scenario.plans.nccl_files import split_files

        raw, decided = split_files(raw)
    parameters = read_arguments(entry.build, raw, given=found_parameters(entry.metadata["needs"]))
    if parameters.get(BLOCKING) and spec is not None:
        raise InputError(f"{entry.name}: switches add packets, which have no steps that wait; system=none sends steps")
    notes: list[str] = []
    aggregation = launch = None
    if decided is not None:
        from commsim.scenario.plans.nccl import launched

        schedule, where, launch = launched(entry, parameters, decided, network, n_ranks, placement, seed)
        notes += launch.notes
    elif not entry.metadata["systems"]:
        schedule, where = _build_and_place(entry, raw, parameters, network, n_ranks, placement, seed, notes)
    else:
        seated = seat_aggregators(
            entry.name,
            (spec or usual_system(entry)).at(),
            network,
            n_ranks=n_ranks,
            placement=placement,
            seed=seed,
            assume_programmable=assume_programmable,
        )
        network, where = seated.network, seated.placement
        notes += seated.notes
        if spec is not None and seated.aggregators is not None:
            from commsim.scenario.plans.aggregation import Aggregation, describe_packets

            notes.append(f"{entry.name}: as {describe_packets(spec)}")
            aggregation = Aggregation(entry.build, parameters.copy(), spec, seated.aggregators)
        parameters["tree"] = None if seated.aggregators is None else seated.aggregators.tree
        schedule = entry.build(seated.n_ranks, **parameters)
    data = _data(entry, schedule, parameters, given, notes)
    ready = laid_out(schedule, network, where, routing, seed, parameters, data)
    plan = dataclasses.replace(_of_kind(ready, entry, aggregation, launch), notes=tuple(notes))
    return with_partitions_that_fit(plan) if PARTITIONS in entry.parameters else plan


def _of_kind(plan: Plan, entry: Entry[Schedule], aggregation: Aggregation | None, launch: NcclLaunch | None) -> Plan:
    """Return the plan of the kind of work that a registered collective is."""
    common = {one.name: getattr(plan, one.name) for one in dataclasses.fields(Plan)}
    if launch is not None:
        from commsim.scenario.plans.nccl import NcclPlan

        return NcclPlan(**common, launched=launch)
    if aggregation is not None:
        from commsim.scenario.plans.aggregated import AggregatedPlan

        return AggregatedPlan(**common, aggregation=aggregation)
    if entry.metadata["pieces"] is not None and plan.parameters.get("n_chunks") is None:
        cut = functools.partial(sized_parameters, entry, plan.schedule.n_ranks, given=dict(plan.parameters))
        return CutBySize(**common, cut=cut)
    return plan


def laid_out(
    schedule: Schedule,
    network: Network,
    placement: Placement,
    routing: str | None,
    seed: int,
    parameters: Mapping[str, Any],
    data: SparseData | None = None,
) -> Plan:
    """Check a placement, and plan a schedule on it; parameters are those with which it was built."""
    placement.check(network, schedule.n_ranks, schedule.n_helpers)
    job = Job(schedule, placement, messages=None if data is None else data.messages)
    paths = FlowPaths(network, job, routing, seed)
    if data is None:
        return Plan(schedule, parameters, network, placement, paths)
    from commsim.scenario.plans.sparse import SparsePlan

    return SparsePlan(schedule, parameters, network, placement, paths, sparse=data)


def _build_and_place(
    entry: Entry[Schedule],
    raw: Mapping[str, str],
    parameters: dict[str, Any],
    network: Network,
    n_ranks: int | None,
    placement: str | Placement,
    seed: int,
    notes: list[str],
) -> tuple[Schedule, Placement]:
    """Build and place a collective without aggregators; adds to `parameters` and `notes` what locality decides."""
    name, needs = entry.name, entry.metadata["needs"]
    as_many_as_fit = n_ranks is None
    if n_ranks is None:
        n_ranks = len(network.endpoints) if isinstance(placement, str) else len(placement.nodes)
    serves = any(need in needs for need in SERVING)
    if serves and (not as_many_as_fit or helpers_sit_beside(network, placement)):  # the number of ranks stays
        fitting = servers_that_fit(entry, parameters, network, placement, n_ranks, seed)
        parameters |= fitting
        notes += [f"{name}: {key}={n}, on hosts beside the ranks" for key, n in fitting.items()]

    def build(n_ranks: int) -> tuple[Schedule, dict[str, Any]]:
        machines = machines_of(entry, network, placement, n_ranks, seed) if "machines" in needs else {}
        return _build_checked(entry.build, n_ranks, {**parameters, **machines}), machines

    schedule, machines = build(n_ranks)
    if as_many_as_fit and schedule.n_helpers and not helpers_sit_beside(network, placement):
        n_ranks = ranks_left(schedule, network, notes)
        schedule, machines = build(n_ranks)
    parameters |= machines
    for groups in machines.values():
        notes.append(f"{name}: {len(groups)} machines of {_sizes(groups)} ranks each")
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
            parameters["groups"] = groups
            rails = count_rails(network, where, groups) if "rails" in needs else None
            if rails is not None and parameters.get(NEEDS["rails"]) is None:
                parameters[NEEDS["rails"]] = rails
                notes.append(f"{name}: {NEEDS['rails']}={rails}, a ring for each rail of a machine")
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: groups are the {len(groups)} {level}s, of {_sizes(groups)} ranks each")
    if "dims" in needs and "dims" not in raw:
        dims = rank_grid(network, where, n_ranks)
        if dims is not None:
            parameters["dims"] = dims
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: dims are {'x'.join(map(str, dims))}, from the outermost level to the innermost")
    return schedule, where


def placed(placement: str | Placement, network: Network, schedule: Schedule, seed: int) -> Placement:
    """Return the placement, that of a file, or that of the ranks by a strategy with the helpers beside them."""
    if isinstance(placement, Placement):
        return placement
    if not is_strategy(placement):
        return load_placement(placement, network, schedule.n_participants, seed)
    ranks = load_placement(placement, network, schedule.n_ranks, seed)
    return with_helpers(schedule, network, ranks) if schedule.n_helpers else ranks


def _data(
    entry: Entry[Schedule],
    schedule: Schedule,
    parameters: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    notes: list[str],
) -> SparseData | None:
    """Bind a sparse collective to its data; adds to `notes` what that is."""
    form = entry.metadata.get("sparse")
    if form is None:
        return None
    if given is None:
        notes.append(f"{entry.name}: without density=... or gradients=FILE all data is dense, and sent without indices")
        return None
    from commsim.scenario.plans.sparse_data import SparseData

    data = SparseData(form, schedule, parameters, given)
    notes.append(f"{entry.name}: {data.note}")
    return data


def _sizes(groups: tuple[tuple[int, ...], ...]) -> str:
    return " or ".join(map(str, sorted({len(group) for group in groups})))


def _build_checked(build: Callable[..., Schedule], n_ranks: int, parameters: Mapping[str, Any]) -> Schedule:
    if n_ranks < 1:
        raise InputError(f"ranks must be at least 1, got {n_ranks}")
    return build(n_ranks, **parameters)
