"""Build a collective for the ranks, groups and machines that a network and a placement give it, and place it."""

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
from commsim.core.placement import Placement, helper_nodes
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.flow_plan import Job
from commsim.scenario.good_parameters import count_rails, servers_that_fit, with_partitions_that_fit
from commsim.scenario.helper_placement import (
    machines_of,
    on_memories,
    require_seats,
    seat_aggregators,
    usual_ranks,
    where_helpers_sit,
    with_helpers,
)
from commsim.scenario.inputs import collective_entry, load_placement
from commsim.scenario.plans.cut_by_size import CutBySize
from commsim.scenario.plans.dense import Plan
from commsim.scenario.systems import packets_of, split_system, usual_system

if TYPE_CHECKING:
    from commsim.scenario.plans.aggregation import Aggregation
    from commsim.scenario.plans.nccl_files import Decided
    from commsim.scenario.plans.nccl_launch import NcclLaunch
    from commsim.scenario.plans.sparse_data import SparseData


def build_named(
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
        schedule, where, launch = _launched(entry, parameters, decided, network, n_ranks, placement, seed)
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
            notes.append(f"{entry.name}: as {packets_of(spec)}")
            from commsim.scenario.plans.aggregation import Aggregation

            aggregation = Aggregation(entry.build, parameters.copy(), spec, seated.aggregators)
        parameters["tree"] = None if seated.aggregators is None else seated.aggregators.tree
        schedule = entry.build(seated.n_ranks, **parameters)
    data = _data(entry, schedule, parameters, given, notes)
    ready = laid_out(schedule, network, where, routing, seed, parameters, data)
    plan = dataclasses.replace(_of_kind(ready, entry, aggregation, launch), notes=tuple(notes))
    return with_partitions_that_fit(plan)


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
    name = entry.name
    if n_ranks is None:
        n_ranks = usual_ranks(entry, parameters, network, placement, seed, notes)
    else:  # servers that are not given must leave the number of ranks as it was asked for
        fitting = servers_that_fit(entry, parameters, network, placement, n_ranks, seed)
        parameters |= fitting
        notes += [f"{name}: {key}={n}, on hosts beside the ranks" for key, n in fitting.items()]
    parameters |= machines_of(entry, network, placement, n_ranks, seed)
    if "machines" in parameters:
        machines = parameters["machines"]
        notes.append(f"{name}: {len(machines)} machines of {_sizes(machines)} ranks each")
    schedule = _build_checked(entry.build, n_ranks, parameters)
    own = isinstance(placement, str)  # whether helpers go where it is usual
    if isinstance(placement, Placement) and schedule.n_helpers and len(placement.nodes) == n_ranks:
        placement, own = with_helpers(schedule, network, placement), True
    require_seats(schedule, network, placement)
    where = placed(placement, network, schedule, seed)
    if "memories" in entry.metadata["needs"] and parameters.get(NEEDS["memories"]) and own:
        where = on_memories(schedule, network, where, parameters.get("machines", (tuple(range(n_ranks)),)))
    if schedule.n_helpers and own and len(helper_nodes(network)):
        notes.append(where_helpers_sit(name, network, where, n_ranks))
    if "groups" in entry.metadata["needs"]:
        for level, groups in rank_levels(network, where, n_ranks)[:1]:
            parameters["groups"] = groups
            rails = count_rails(network, where, groups) if "rails" in entry.metadata["needs"] else None
            if rails is not None and parameters.get(NEEDS["rails"]) is None:
                parameters[NEEDS["rails"]] = rails
                notes.append(f"{name}: {NEEDS['rails']}={rails}, a ring for each rail of a machine")
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: groups are the {len(groups)} {level}s, of {_sizes(groups)} ranks each")
    if "dims" in entry.metadata["needs"] and "dims" not in raw:
        dims = rank_grid(network, where, n_ranks)
        if dims is not None:
            parameters["dims"] = dims
            schedule = _build_checked(entry.build, n_ranks, parameters)
            notes.append(f"{name}: dims are {'x'.join(map(str, dims))}, from the outermost level to the innermost")
    return schedule, where


def _launched(
    entry: Entry[Schedule],
    parameters: dict[str, Any],
    decided: Decided,
    network: Network,
    n_ranks: int | None,
    placement: str | Placement,
    seed: int,
) -> tuple[Schedule, Placement, NcclLaunch]:
    """Build and place what NCCL launches; adds to `parameters` what it takes for the array that is usual."""
    from commsim.scenario.plans.nccl_launch import nccl_launch

    if n_ranks is None:
        n_ranks = len(network.endpoints) if isinstance(placement, str) else len(placement.nodes)
    if n_ranks < 1:
        raise InputError(f"ranks must be at least 1, got {n_ranks}")
    where = placement if isinstance(placement, Placement) else load_placement(placement, network, n_ranks, seed)
    launch = nccl_launch(entry.build, entry.metadata["operation"], parameters, network, where, n_ranks, decided)
    parameters |= launch.parameters(parameters.get("n_bytes", entry.parameters["n_bytes"].default))
    schedule = _build_checked(entry.build, n_ranks, parameters)
    return schedule, launch.placed(schedule, parameters), launch


def placed(placement: str | Placement, network: Network, schedule: Schedule, seed: int) -> Placement:
    """Return the placement, or the one that a name or a file says."""
    if isinstance(placement, Placement):
        return placement
    return load_placement(placement, network, schedule.n_participants, seed, n_helpers=schedule.n_helpers)


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
