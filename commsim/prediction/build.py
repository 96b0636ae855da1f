"""From a collective and a network to a plan: the kind of collective, built for the ranks that are there, and placed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from collectives import found_parameters
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.registry import Entry
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.spec import read_arguments
from commsim.core.units import count_text
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.extensions import house
from commsim.prediction.collective_names import OF_CHOOSING, chosen_by_library, collective_entry, load_schedule
from commsim.prediction.inputs import load_network, load_placement
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Scenario
from commsim.prediction.work_plan import Work, WorkPlan

# Parameter of collectives whose servers add partitions.
PARTITIONS = "n_partitions"
# How the name of what is synthesized for an operation begins.
SYNTHESIZED = "synthesized_"
# Parameter of exchanges of experts, whose library costs time.
LIBRARY = "library"
# What a registered collective of each kind has: a need, a key of the metadata, or a parameter. The first that fits is
# taken, and names its planner in ``house.planners``; without any, the collective is dense.
KINDS = ("nccl", "systems", "sparse", LIBRARY, "pieces", PARTITIONS)
__all__ = [
    "PARTITIONS", "CollectiveRequest", "CollectiveWork", "PlacedSchedule", "build_collective", "laid_out",
    "plan_collective", "plan_schedule", "prepare",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CollectiveRequest:
    """A registered collective as it is asked for; the rest is as in :func:`prepare`.

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
    where = load_network(network) if isinstance(network, str) else network
    work = CollectiveWork(collective, n_ranks)
    return plan_collective(Scenario(where, work, placement, routing, seed, assume_programmable))


def _plan_of_schedule(schedule: Schedule, network: Network, scenario: Scenario) -> Plan:
    """Plan a schedule; its helpers go where the placement of the ranks leaves room."""
    from commsim.prediction.helper_placement import placement_of

    asked = PACKED if scenario.placement is None else scenario.placement
    where = placement_of(asked, network, schedule, scenario.seed)
    return plan_schedule(PlacedSchedule(schedule, {}, where), network, scenario.routing, scenario.seed)


def _plan_of_file(path: str, network: Network, scenario: Scenario) -> Plan:
    """Plan the schedule of a file, placed as the file says where the scenario does not say it."""
    from commsim.core.files.schedule_file import own_size, read_placed_schedule

    size, notes = own_size(path), tuple[Remark, ...]()
    if scenario.placement is not None:
        schedule = load_schedule(path)
    else:
        schedule, placement = read_placed_schedule(path, network)
        scenario = dataclasses.replace(scenario, placement=placement)
        if placement is not None and placement.routes is not None:
            text = f"{path}: {len(placement.routes)} connections take the routes that it pins"
            notes = (Remark("routes-pinned", text),)
    return dataclasses.replace(_plan_of_schedule(schedule, network, scenario), own_size=size, notes=notes)


def _with_calls(plan: Plan, name: str, per_call: float) -> Plan:
    """Refuse machines that a software was not measured on, and add the time of a call where it posts calls."""
    from commsim.prediction.software import software

    software(name).refuse(plan.network.machine[plan.placement.nodes])
    if not per_call:
        return plan
    if plan.posts_calls:
        return dataclasses.replace(plan, before=plan.before + per_call)
    remark = Remark("call-left-out", f"{plan.schedule.name}: without the time of a call of software {name}")
    return dataclasses.replace(plan, notes=(*plan.notes, remark))


def _with_software(collective: str | Schedule, network: Network) -> tuple[Network, float]:
    """Return the network as hosts add in a collective, and the time of a call, where its software was measured so."""
    from commsim.prediction.software import software

    known, name = software(network.software), collective if isinstance(collective, str) else collective.name
    if not known.is_measured_of(name.partition(":")[0]):
        return network, 0.0
    return known.adding(network), known.fixed


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveWork(Work):
    """One collective; the base of what runs one in another way.

    Parameters
    ----------
    collective : str or Schedule
        ``name:key=value,...`` of a collective, a file of a schedule, or a schedule; empty where several are ranked.
    n_ranks : int, optional
        Number of ranks. Default: all that the placement or the network has.
    """

    NAME: ClassVar[str] = "a collective"
    TAKES: ClassVar[frozenset[str]] = Work.TAKES | {
        "start_jitter", "trace", "method", "flaps", "watch", "capture", "tolerance",
    }  # fmt: skip
    # Whether the schedule is of the operation that is asked for.
    KEEPS_OPERATION: ClassVar[bool] = True

    collective: str | Schedule = ""
    n_ranks: int | None = None

    def plan(self, scenario: Scenario) -> WorkPlan:
        """Return the plan of the collective; of a registered one that of its kind's planner."""
        collective, network, n_ranks = self.collective, scenario.network, self.n_ranks
        network, per_call = _with_software(collective, network) if network.software else (network, 0.0)
        placement = PACKED if scenario.placement is None else scenario.placement
        placing: dict[str, Any] = {"placement": placement, "routing": scenario.routing, "seed": scenario.seed}
        if isinstance(collective, Schedule):
            ready = _plan_of_schedule(collective, network, scenario)
        elif collective.endswith(".npz"):
            ready = _plan_of_file(collective, network, scenario)
        elif collective.startswith(SYNTHESIZED):
            ready = _synthesized(collective, network, n_ranks, **placing)
        elif collective.startswith(OF_CHOOSING) and chosen_by_library(collective):
            ready = house().services["plan of a library's choices"](collective, network, n_ranks, **placing)
        else:
            entry, raw = collective_entry(collective)
            request = CollectiveRequest(
                entry, raw, network, n_ranks, **placing, assume_programmable=scenario.assume_programmable
            )
            has = {*entry.metadata["needs"], *(key for key, value in entry.metadata.items() if value)}
            has |= {PARTITIONS, LIBRARY} & entry.parameters.keys()
            mark = next((mark for mark in KINDS if mark in has), None)
            if mark is None:
                ready = plan_schedule(build_collective(request), network, scenario.routing, scenario.seed)
            else:
                ready = house().planners[mark](request)
        if n_ranks not in (None, ready.schedule.n_ranks):
            raise InputError(f"the schedule has {count_text(ready.schedule.n_ranks, 'rank')}, got n_ranks={n_ranks}")
        return _with_calls(ready, network.software, per_call) if network.software else ready

    def with_collective(self, collective: str | Schedule) -> Self:
        """Return the work with another collective."""
        return dataclasses.replace(self, collective=collective)

    @property
    def title(self) -> str:
        """The collective, as it was named."""
        return self.collective if isinstance(self.collective, str) else self.collective.name

    @property
    def parts(self) -> Sequence[dict[str, str]]:
        """Nothing: a size has one result."""
        return ()

    @property
    def ranks_of_each(self) -> int:
        """Number of ranks that run it, where that is not all; else 0."""
        return 0


def plan_collective(scenario: Scenario) -> Plan:
    """Return the plan of a scenario's collective, without what else its work is."""
    if not isinstance(scenario.work, CollectiveWork):
        raise scenario.work.refusal("collective")
    plan = CollectiveWork.plan(scenario.work, scenario)
    assert isinstance(plan, Plan)
    return plan


def _synthesized(name: str, network: Network, n_ranks: int | None, **placing: Any) -> Plan:
    """Return the plan of what is synthesized for an operation, which a higher package registers."""
    plan: Plan = house().services["synthesized plan"](Scenario(network, CollectiveWork(name, n_ranks), **placing))
    return plan
